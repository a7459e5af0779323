"""Killed at any call that writes, a command on an index leaves the old index or the new one, and
the next command goes on from there."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faults.failing_system import AFTER, Killer, moments_of
from faults.write_paths import INDEX, INDEX_PATHS, LAKE
from sbbf_tool.cli import run
from sbbf_tool.extensions.index import contents
from sbbf_tool.extensions.index.lake_index import LakeIndex

OLD, NEW = "old", "new"


def write(path: Path, number: int) -> None:
    pq.write_table(
        pa.table({"v": range(number * 100, number * 100 + 100)}), path, row_group_size=50
    )


def lay_out(folder: Path, way: str) -> Path:
    """Write a lake of files of which each holds its own hundred values, and the index before the
    command."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / LAKE).mkdir(parents=True)
    for number in range(4):
        write(folder / LAKE / f"{number}.parquet", number)
    if way != "build":
        _index(folder, LAKE, "-c", "v", "-o", INDEX)
        write(folder / LAKE / "4.parquet", 4)
        (folder / LAKE / "0.parquet").unlink()
    if way == "compact":
        _index(folder, INDEX)
        (folder / LAKE / "1.parquet").unlink()
    return folder


def _index(folder: Path, *arguments: str) -> None:
    before = os.getcwd()
    os.chdir(folder)
    try:
        assert run(["index", *arguments, "--jobs", "1"]) == 0
    finally:
        os.chdir(before)


def assert_sound(folder: Path) -> None:
    """No file is excluded for a value that it holds, and each is for most others; all that the
    index names is whole."""
    index = LakeIndex(str(folder / INDEX))
    for entry in index.contents.segments:
        assert (
            sum(1 for _ in entry.open(index.folder).read_units("path", "fingerprint"))
            == entry.units
        )
    indexed = set(index.find_paths([None]))
    for path in (folder / LAKE).glob("*.parquet"):
        number = int(path.stem)
        for value in (number * 100, number * 100 + 99):
            assert str(path) in set(index.find_paths([value])) or str(path) not in indexed
    assert run(["probe", str(folder / INDEX), "v", "399", "--confirm", "--quiet"]) == 0


@pytest.mark.heavy
@pytest.mark.parametrize("way", INDEX_PATHS)
def test_killed_at_every_call_that_writes(way, killer: Killer, tmp_path):
    folder = tmp_path / "it"
    calls = killer.calls(way, lay_out(folder, way))
    assert_sound(folder)
    assert len(calls) > 10
    for at, when in [*moments_of(calls), (len(calls) - 1, AFTER)]:
        before = None if way == "build" else contents.read(str(lay_out(folder, way) / INDEX))
        if way == "build":
            lay_out(folder, way)
        assert killer.kill_at(way, folder, at, when), f"{when} {calls[at]}, number {at}"
        if before is not None:
            after = contents.read(str(folder / INDEX))
            assert after == before or after.segments != before.segments
        if (folder / INDEX / contents.CURRENT).exists():
            assert_sound(folder)
            _index(folder, INDEX)
        else:
            _index(folder, LAKE, "-c", "v", "-o", INDEX)
        assert_sound(folder)
        assert set(LakeIndex(str(folder / INDEX)).find_paths([None])) == {
            str(path) for path in (folder / LAKE).iterdir()
        }


def test_files_that_nothing_names_are_removed(tmp_path):
    """Those of a killed command, and nothing else of the folder."""
    folder = lay_out(tmp_path / "it", "update")
    left = folder / INDEX / f"_segment-{'a' * 16}.units.parquet"
    foreign = folder / INDEX / "_segment-mine.units.parquet"
    for path in (left, foreign):
        path.write_bytes(b"")
    _index(folder, INDEX)
    assert (left.exists(), foreign.exists()) == (False, True)
    foreign.unlink()
    assert_sound(folder)
