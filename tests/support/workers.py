"""Which tests go to the same worker of pytest-xdist: those of a file, and those that start the same servers, so that each starts once.

`-n auto` of pyproject.toml starts a worker for each processor, at most four, and none for a run of one file or with `--pdb`.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_MOST_WORKERS = 4


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    files = {argument.partition("::")[0] for argument in config.args}
    if len(files) == 1 and all(file.endswith(".py") for file in files):
        return 0
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, _MOST_WORKERS)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    return Scheduling(config, log)


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return find_group(self.config.rootpath / super()._split_scope(nodeid))


@cache
def find_group(file: Path) -> str:
    """Return what the files have in common that one worker gets: query engines, the object store, or nothing but the one file."""
    if "mark.engines" in file.read_text():
        return "engines"
    return "objects" if file.parent.name == "objects" else str(file)
