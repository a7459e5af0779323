"""A file that is rewritten within the unit in which its file system counts is never taken for
unchanged, by an index or by a state."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run as sbbf
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.file_times import granularity_of, shows_changes
from support.places import disk_of_whole_seconds
from support.tables import each

NOW = 1_800_000_000.25
OLD, NEW = 11, 22


def write(path: Path, value: int) -> bytes:
    """Write a file whose length does not depend on the value; return its bytes."""
    pq.write_table(
        pa.table({"v": [value] * 10, "w": ["text"] * 10}),
        path,
        use_dictionary=False,
        bloom_filter_options={"v": True},
    )
    return path.read_bytes()


def rewrite(path: Path, data: bytes) -> None:
    """Replace the bytes of a file in place."""
    assert len(data) == path.stat().st_size
    with path.open("r+b") as stream:
        stream.write(data)


def wait_for_a_new_second() -> None:
    time.sleep(1.05 - time.time() % 1)


@each(
    "times, granularity, is_trusted",
    [
        ({}, 0, True),
        ({"etag": '"a"', "modified": NOW}, 0, True),
        ({"modified": NOW - 9, "change_time": NOW - 0.5}, 0.05, True),
        ({"modified": NOW - 9, "change_time": NOW - 0.01}, 0.05, False),
        ({"modified": NOW - 9, "change_time": NOW + 3000.1}, 0.05, False),
        ({"modified": NOW + 9, "change_time": NOW - 0.5}, 0.05, True),
        ({"modified": 1.0, "change_time": NOW // 1 - 1}, 2, False),
        ({"modified": 1.0, "change_time": NOW // 1 - 2}, 2, True),
        ({"modified": 1.0, "change_time": NOW // 1 + 3000}, 2, False),
        ({"modified": NOW // 1, "change_time": 0.0}, 2, False),
        ({"modified": NOW - 1}, 2, False),
        ({"modified": NOW - 3}, 2, True),
    ],
)
def test_a_time_without_a_fraction_is_coarse(times, granularity, is_trusted, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW)
    file = ListedFile("f.parquet", 100, **times)
    assert (granularity_of(file), shows_changes(file)) == (granularity, is_trusted)


@pytest.fixture
def disk(tmp_path: Path):
    with disk_of_whole_seconds(tmp_path / "disk") as folder:
        yield folder


@pytest.mark.heavy(1)
@each("clock", [0, -3600, 3600])  # seconds by which the clock of this machine is ahead
def test_an_index_of_a_disk_that_counts_in_seconds(clock, disk, tmp_path, monkeypatch):
    lake, index = disk / "lake", str(tmp_path / "lake.sbbfx")
    lake.mkdir()
    now = time.time
    path = lake / "f.parquet"
    new = write(path, NEW)
    write(lake / "a.parquet", 33)
    for number in range(2):
        wait_for_a_new_second()
        write(path, OLD)
        assert path.stat().st_ctime.is_integer(), "the disk has fractions of seconds"
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: now() + clock)
            if number:
                update_index(index)
            else:
                build_index(lake, "v", index)
            rewrite(path, new)
            assert sbbf(["probe", index, "v", str(NEW)]) == 0


@each("clock", [0, -3600])
def test_a_state_of_a_disk_that_counts_in_seconds(clock, disk, tmp_path, monkeypatch, capfd):
    lake, state = disk / "lake", str(tmp_path / "state.sqlite")
    lake.mkdir()
    path, now = lake / "f.parquet", time.time
    write(lake / "a.parquet", 33)
    wait_for_a_new_second()
    data = write(path, OLD)
    verify = ["verify", str(lake), "--state", state]
    monkeypatch.setattr(time, "time", lambda: now() + clock)
    assert sbbf(verify) == 0
    rewrite(path, data.replace(OLD.to_bytes(8, "little"), NEW.to_bytes(8, "little")))
    assert sbbf(verify) == 1


def test_what_a_run_has_written_is_trusted_no_earlier(disk, tmp_path, capfd):
    (disk / "lake").mkdir()
    add = ["add-filter", str(disk / "lake"), "-c", "w", "--in-place"]
    add += ["--state", str(tmp_path / "state.sqlite")]
    for number in range(2):
        write(disk / "lake" / f"{number}.parquet", OLD)
    wait_for_a_new_second()
    outputs = []
    for seconds in (0, 0, 2.5, 0):
        time.sleep(seconds)
        capfd.readouterr()
        assert sbbf(add) == 0
        outputs.append(capfd.readouterr().out)
    assert ["2 filters added" in text for text in outputs] == [True, False, False, False]
    assert ["unchanged" in text for text in outputs] == [False, False, False, True]
