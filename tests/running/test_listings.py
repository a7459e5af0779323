"""How often a run over many files lists their folders."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from sbbf_tool.running import local
from sbbf_tool.storage.leftovers import TEMPORARY_SUFFIX
from support.lakes import assert_has_filters, small_files
from support.tables import each

pytestmark = pytest.mark.slow

FILES = 25


@pytest.fixture
def lake(tmp_path):
    lake = tmp_path / "lake"
    for day in (1, 2):
        small_files(lake / f"day={day}", FILES)
    return lake


@pytest.fixture
def listings(tmp_path, monkeypatch):
    """Counts the listings of each folder, also those of processes that are forked."""
    log = tmp_path / "listings"
    log.touch()

    def noting(function):
        def noted(path=".", *more):
            with open(log, "a") as stream:
                stream.write(f"{os.fspath(path)}\n")
            return function(path, *more)

        return noted

    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, noting(getattr(os, name)))
    return lambda folder: Counter(log.read_text().splitlines())[str(folder)]


def left_behind(lake: Path) -> list[Path]:
    """Temporary files of runs that were killed, for some files of each folder."""
    paths = [path for folder in lake.iterdir() for path in sorted(folder.glob("*.parquet"))[::10]]
    leftovers = [path.with_name(f".{path.name}.0123456789ab{TEMPORARY_SUFFIX}") for path in paths]
    for path in leftovers:
        path.write_bytes(b"half of it")
    return leftovers


@each(
    "command, processes",
    [
        (["add-filter", "--in-place", "-c", "id"], 1),
        (["add-filter", "--in-place", "--append", "-c", "id"], 1),
        (["repair", "--in-place", "--quick"], 1),
        (["add-filter", "--in-place", "--jobs", "1", "-c", "id"], 1),
        (["add-filter", "--in-place", "--jobs", "2", "-c", "id"], 3),
    ],
)
def test_a_folder_is_listed_once_and_not_for_each_file(
    lake, listings, capsys, monkeypatch, command, processes
):
    monkeypatch.setattr(local, "_FILES_WITHOUT_PROCESSES", 100 if processes == 1 else 1)
    monkeypatch.setattr(local, "_FILES_PER_TASK", 10)
    leftovers = left_behind(lake)
    before = {folder: listings(folder) for folder in lake.iterdir()}
    assert run([*command, str(lake)]) == 0
    for folder, count in before.items():
        # Once to find its files, and once by each process to find what killed ones left.
        assert 2 <= listings(folder) - count <= 1 + processes
    assert not any(path.exists() for path in leftovers)
    if "repair" not in command:
        assert_has_filters(lake, ("id",))


def test_individually_named_files_belong_to_one_run(lake, listings, capsys):
    folder = lake / "day=1"
    files = sorted(map(str, folder.glob("*.parquet")))
    before = listings(folder)
    assert run(["add-filter", "--in-place", "-c", "id", *files]) == 0
    assert listings(folder) == before + 1
