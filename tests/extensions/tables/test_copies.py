"""Abandoned copies: only ours, only those that no version refers to, and only of runs that are no longer at work."""

from __future__ import annotations

import os
import time
from pathlib import Path

from sbbf_tool.extensions.tables import copies
from sbbf_tool.extensions.tables.copies import OLD_SECONDS, RunMarker, delete_abandoned, find_unreferenced
from sbbf_tool.file.table_file import new_run
from support.tables import each
from tests.support.json_table import copies_in, make_table

RUN = "0123456789abcdef"
HOUR = 3600.0


def add_copy(folder: Path, name: str = f"sbbf-{RUN}-00000000-part-0.parquet", hours: float = 0) -> Path:
    path = folder / "day=0" / name
    path.write_bytes(b"copy")
    os.utime(path, (time.time() - hours * HOUR,) * 2)
    return path


def test_a_copy_without_a_marker_is_abandoned_once_it_is_old(tmp_path):
    table = make_table(tmp_path / "t", 1)
    path = add_copy(tmp_path / "t", hours=25)
    add_copy(tmp_path / "t", f"sbbf-{RUN}-11111111-part-0.parquet", hours=23)
    (copy,) = find_unreferenced(table, OLD_SECONDS)[0]
    assert (copy.path, copy.run, round(copy.age_seconds / HOUR)) == (str(path), RUN, 25)
    assert len(find_unreferenced(table, 0)[0]) == 2


def test_a_run_at_work_keeps_its_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "_RENEWAL_SECONDS", 0.05)
    table = make_table(tmp_path / "t", 1)
    add_copy(tmp_path / "t", hours=1000)
    with RunMarker(table.location, RUN):
        assert find_unreferenced(table, 2)[0] == []
        (first,) = (tmp_path / "t").glob("_sbbf-run-*")
        deadline = time.monotonic() + 10
        while first.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        (second,) = (tmp_path / "t").glob("_sbbf-run-*")
        assert second.name > first.name
    assert list((tmp_path / "t").glob("_sbbf-run-*")) == []
    assert len(find_unreferenced(table, 2)[0]) == 1


@each("seconds, is_abandoned", [(-60, False), (2, False), (290, False), (310, True)])
def test_a_marker_of_the_last_five_minutes_protects_copies_of_any_age(tmp_path, seconds, is_abandoned):
    table = make_table(tmp_path / "t", 1)
    path = add_copy(tmp_path / "t", hours=1000)
    marker = tmp_path / "t" / f"_sbbf-run-{RUN}-{int(time.time() - seconds)}"
    marker.touch()
    abandoned, younger = find_unreferenced(table, 0)
    assert [len(abandoned), len(younger)] == [is_abandoned, not is_abandoned]
    delete_abandoned(table, abandoned, 0)
    assert (path.exists(), marker.exists()) == (not is_abandoned,) * 2


def test_the_marker_of_a_killed_run_gets_old_and_is_deleted_with_its_copies(tmp_path):
    table = make_table(tmp_path / "t", 1)
    add_copy(tmp_path / "t")
    marker = tmp_path / "t" / f"_sbbf-run-{RUN}-{int(time.time() - 30 * HOUR)}"
    marker.touch()
    running = tmp_path / "t" / f"_sbbf-run-{new_run()}-{int(time.time())}"
    running.touch()
    abandoned = find_unreferenced(table, OLD_SECONDS)[0]
    delete_abandoned(table, abandoned)
    assert (len(abandoned), copies_in(table), marker.exists(), running.exists()) == (1, [], False, True)


def test_files_of_versions_and_of_others_stay(tmp_path):
    table = make_table(tmp_path / "t", 1)
    names = ["sbbf-report.parquet", f"sbbf-{RUN}-part.parquet", "part-9.parquet"]
    for name in (*names, f"sbbf-{RUN}-22222222-part-0.parquet"):
        add_copy(tmp_path / "t", name, hours=100)
    entries = table.entries()
    table.write([*entries, {"path": f"day=0/sbbf-{RUN}-22222222-part-0.parquet"}])
    table.write(entries)
    assert find_unreferenced(table, OLD_SECONDS)[0] == []
