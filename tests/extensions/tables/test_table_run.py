"""A change of a table: copies, one commit, and copies that no commit contains are deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import RefusedError, UncertainWriteError, UsageError
from sbbf_tool.extensions.tables import copies
from sbbf_tool.extensions.tables.copies import (
    OLD_SECONDS,
    RunMarker,
    delete_abandoned,
    find_unreferenced,
)
from sbbf_tool.extensions.tables.table_run import TableRun
from sbbf_tool.file.context import Context
from sbbf_tool.file.table_file import copy_name, new_run, run_of_copy
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.reports.rows import OK, REFUSED
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import Change
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.verify import Verify
from support.json_table import JsonTable, copies_in, make_table, rows_of
from support.tables import each

RUN = "0123456789abcdef"


def change_with(
    table: JsonTable, work: Work, *columns: str, jobs: int = 1, **options: object
) -> tuple[TableRun, list]:
    run = TableRun(table, Change("ADD BLOOM FILTERS", columns), edit=Edit(in_place=True, **options))
    return run, list(run.rows(LocalRunner(jobs).run, work))


def add(*columns: str, **options: object) -> Work:
    return Work(AddFilter(FilterSpec(columns)), Context(), Edit(in_place=True, **options))


def columns_with_filter(path: str) -> set[str]:
    return {chunk.column for chunk in sbbf_tool.inspect(path).filters}


@each(
    "base",
    ["part-0.parquet", "x" * 255, "é" * 127, f"sbbf-{RUN}-00000000-part.parquet", "sbbf-part"],
)
def test_names_of_copies(base):
    name = copy_name(RUN, base)
    assert run_of_copy(name) == RUN
    assert len(os.fsencode(name)) <= 255
    assert name.endswith(base.removeprefix(f"sbbf-{RUN}-00000000-")[-60:])
    assert run_of_copy("sbbf-part") is None


def test_names_of_the_table_are_in_reports_and_the_copies_have_those_of_the_file(tmp_path):
    names = ColumnNames(by_path={("id",): ("user",), ("name",): ("id",)})
    table = make_table(tmp_path / "t", columns=names)
    _, rows = change_with(table, add("user"), "user", jobs=2)
    assert {chunk.column for row in rows for chunk in row.report.filters} == {"user"}
    assert columns_with_filter(rows[0].report.output) == {"id"}
    fresh = JsonTable(Path(table.location), names)
    answers = [
        *LocalRunner(1).run(
            Selection(table.name, table=fresh), Work(Probe("user", ["7"]), Context())
        )
    ]
    assert [[hit.value for hit in row.report.hits] for row in answers] == [["7"], [], []]
    verified = [*LocalRunner(1).run(Selection(table.name, table=fresh), Work(Verify(), Context()))]
    assert {row.report.filters[0].column for row in verified} == {"user"}
    with pytest.raises(
        UsageError, match="there is no column 'nothing'; the columns of the table are id, user"
    ):
        list(
            LocalRunner(1).run(
                Selection(table.name, table=fresh), Work(Probe("nothing", ["7"]), Context())
            )
        )


# Copies that no commit contains


@each("damage", [os.unlink, lambda path: os.truncate(path, 100)])
@each("files_per_commit", [None, 2])
def test_a_copy_that_was_deleted_or_cut_before_the_commit_is_left_out(
    tmp_path, damage, files_per_commit
):
    """As by a clean-up of the table's folder: a commit that named the copy would lose the rows of
    its file."""
    table = make_table(tmp_path / "t", 4)
    before = rows_of(table)
    run = TableRun(
        table,
        Change("ADD BLOOM FILTERS", ("id",)),
        edit=Edit(in_place=True, files_per_commit=files_per_commit),
    )
    for row in run.rows(LocalRunner(1).run, add("id")):
        if row.path.endswith(("part-0.parquet", "part-2.parquet")):
            damage(row.report.output)
    assert [os.path.basename(path) for path in run.files_without_copy] == [
        "part-0.parquet",
        "part-2.parquet",
    ]
    assert (run.vanished, sum(commit.num_files for commit in run.commits)) == (
        run.files_without_copy,
        2,
    )
    assert rows_of(table) == before


@each("is_dry", [False, True])
def test_a_file_of_another_length_than_the_table_records_is_refused(tmp_path, is_dry):
    table = make_table(tmp_path / "t", 2)
    path = Path(table.location, table.entries()[0]["path"])
    pq.write_table(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), path)
    run, rows = change_with(table, add("id", dry_run=is_dry), "id", dry_run=is_dry)
    assert [(row.status, row.exit_code) for row in rows] == [(REFUSED, 4), (OK, 0)]
    assert rows[0].reason.startswith(
        f"the file has {path.stat().st_size:,} bytes, but the table records "
    )
    assert ([commit.num_files for commit in run.commits], len(copies_in(table))) == (
        ([], 0) if is_dry else ([1], 1)
    )


def test_the_marker_stays_if_workers_may_still_write(tmp_path):
    """After an interrupt on Spark, a clean-up must not take copies that a worker is writing."""
    table = make_table(tmp_path / "t", 2)
    for on_cluster in (False, True):
        rows = TableRun(table, Change("ADD BLOOM FILTERS", ("id",)), on_cluster=on_cluster).rows(
            LocalRunner(1).run, add("id")
        )
        next(rows)
        with pytest.raises(KeyboardInterrupt):
            rows.throw(KeyboardInterrupt())
        assert (len(list(tmp_path.rglob("_sbbf-run-*"))), copies_in(table)) == (on_cluster, [])


def test_copies_are_deleted_if_the_commit_is_refused(tmp_path):
    table = make_table(tmp_path / "t")
    table.before_commit = (tmp_path / "t" / "_frozen").touch
    with pytest.raises(RefusedError, match="frozen"):
        change_with(table, add("id"), "id")
    assert (copies_in(table), table.versions()) == ([], [0])
    with pytest.raises(RefusedError, match="frozen"):
        change_with(table, add("id"), "id")


@each("error", [UncertainWriteError("the connection broke"), KeyboardInterrupt()])
def test_copies_stay_if_it_is_unknown_whether_the_commit_succeeded(tmp_path, error):
    def fail() -> None:
        raise error

    table = make_table(tmp_path / "t", before_commit=fail)
    with pytest.raises(type(error)):
        change_with(table, add("id"), "id")
    assert len(copies_in(table)) == 3


def test_a_copy_whose_row_was_lost_is_deleted(tmp_path):
    """A worker that is killed after it wrote its copy returns no row; the task is run again, and
    makes a second copy."""
    table = make_table(tmp_path / "t")
    runner = LocalRunner(1)

    def run_twice(selection: Selection, work: Work):
        list(runner.run(selection, work))
        return runner.run(selection, work)

    run = TableRun(table, Change("ADD BLOOM FILTERS", ("id",)))
    assert [row.status for row in run.rows(run_twice, add("id"))] == [OK] * 3
    assert len(copies_in(table)) == 3


def test_copies_in_a_folder_with_two_names_stay(tmp_path):
    """As by a link, or by a whole path in the log: what a version refers to was deleted as the copy
    that no commit contains."""
    table = make_table(tmp_path / "t", 1)
    before = rows_of(table)
    (tmp_path / "t" / "link").symlink_to("day=0")
    Path(table.location, "day=0", "other.parquet").write_bytes(
        Path(table.location, "day=0", "part-0.parquet").read_bytes()
    )
    (entry,) = table.entries()
    table.write(
        [
            {**entry, "path": "link/part-0.parquet"},
            {**entry, "path": "day=0/other.parquet", "unchangeable": "for a test"},
        ]
    )
    table = JsonTable(tmp_path / "t")
    run, _ = change_with(table, add("id"), "id")
    assert [commit.num_files for commit in run.commits] == [1]
    assert rows_of(table) == before * 2
    assert find_unreferenced(table, -HOUR)[0] == []


HOUR = 3600.0


def add_copy(
    folder: Path, name: str = f"sbbf-{RUN}-00000000-part-0.parquet", hours: float = 0
) -> Path:
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
def test_a_marker_of_the_last_five_minutes_protects_copies_of_any_age(
    tmp_path, seconds, is_abandoned
):
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
    assert (len(abandoned), copies_in(table), marker.exists(), running.exists()) == (
        1,
        [],
        False,
        True,
    )


def test_files_of_versions_and_of_others_stay(tmp_path):
    table = make_table(tmp_path / "t", 1)
    names = ["sbbf-report.parquet", f"sbbf-{RUN}-part.parquet", "part-9.parquet"]
    for name in (*names, f"sbbf-{RUN}-22222222-part-0.parquet"):
        add_copy(tmp_path / "t", name, hours=100)
    entries = table.entries()
    table.write([*entries, {"path": f"day=0/sbbf-{RUN}-22222222-part-0.parquet"}])
    table.write(entries)
    assert find_unreferenced(table, OLD_SECONDS)[0] == []
