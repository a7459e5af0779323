"""A change of many small files: the calls of the file system per file and per folder."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.lakes import assert_has_filters, small_files


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The number of calls of each function of `os` that the command then makes."""
    counts: Counter[str] = Counter()

    def count(name: str) -> None:
        function = getattr(os, name)

        def counting(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        monkeypatch.setattr(os, name, counting)

    for name in ("stat", "lstat", "fstat", "open", "fsync", "rename", "scandir", "listdir"):
        count(name)
    return counts


def add_filters(folder: Path) -> None:
    assert (
        run(["add-filter", str(folder), "-c", "id", "-c", "name", "--in-place", "--jobs", "1"]) == 0
    )


def per_file(folder: Path, calls: Counter[str], names: tuple[str, ...]) -> float:
    """The calls that each file adds, in a folder of 5 and in one of 25."""
    totals = []
    for count in (5, 25):
        small_files(folder / str(count), count)
        calls.clear()
        add_filters(folder / str(count))
        totals.append(sum(calls[name] for name in names))
        assert_has_filters(folder / str(count), ("id", "name"))
    return (totals[1] - totals[0]) / 20


def test_tables_are_looked_for_once_per_folder(tmp_path, calls):
    """A path of n folders takes 4 n calls of lstat to resolve it, and 10 calls of stat and lstat
    for the file itself."""
    depth = len(tmp_path.parts)
    assert per_file(tmp_path / "a", calls, ("stat", "lstat")) <= 4 * (depth + 2) + 10
    deeper = tmp_path / "/".join("abcdefghij")
    assert per_file(deeper, calls, ("stat", "lstat")) <= 4 * (depth + 11) + 10
