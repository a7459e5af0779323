"""Which tests go to the same worker of pytest-xdist: those of a file, and those that start the same
servers, so that each starts once.

The groups that take longest start first, so that the workers end at about the same time. `-n auto`
of pyproject.toml starts one worker more than there are processors, as tests wait for disks, servers
and processes; at most four. A run of one file, or with `--pdb`, has none.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_MOST_WORKERS = 4
_SLOW_TEST = 30
"""How many other tests take about as long as one that is marked `slow`."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    files = {argument.partition("::")[0] for argument in config.args}
    if len(files) == 1 and all(file.endswith(".py") for file in files):
        return 0
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return min(processors + 1, _MOST_WORKERS)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # Workers compare what they collected; a run without them would not see the difference.
    if addressed := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(
            f"names of tests have addresses, which differ in each process: {addressed[0]}"
        )
    if hasattr(config, "workerinput"):
        groups = {item: find_group(item.path) for item in items}
        weights: Counter[str] = Counter()
        for item, group in groups.items():
            weights[group] += _SLOW_TEST if item.get_closest_marker("slow") else 1
        items.sort(key=lambda item: (groups[item] != SPARK, -weights[groups[item]], groups[item]))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling:
    config.option.loadscopereorder = False  # the groups are in order already
    return Scheduling(config, log)


class Scheduling(LoadFileScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return find_group(self.config.rootpath / super()._split_scope(nodeid))


SPARK = "spark"


@cache
def find_group(file: Path) -> str:
    """Return what the files have in common that one worker gets: the session of Spark, the object
    store, or nothing but the one file."""
    if re.search(r'def \w+\([^)]*\bspark\b|getfixturevalue\("spark', file.read_text()):
        return SPARK
    return "objects" if file.parent.name == "objects" else str(file)
