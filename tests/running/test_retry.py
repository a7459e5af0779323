"""An attempt that finds the work done reports what an earlier one, whose rows were lost, has
written after the listing."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from sbbf_tool import FilterSpec, add_filters
from sbbf_tool.editing.edit import Edit
from sbbf_tool.file.context import Context
from sbbf_tool.running.discover import list_file
from sbbf_tool.running.lost_rows import restore_row
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.apply import Apply
from sbbf_tool.verbs.remove_filter import RemoveFilter
from sbbf_tool.verbs.repair import Repair
from sbbf_tool.verbs.resize import Resize
from support.defects import DEFECTS
from support.tables import each

SPEC, EDIT = FilterSpec(("user_id",)), Edit(in_place=True)
DECLARATION = FilterSpec(("user_id",), fpp=0.01)


@pytest.fixture
def path(tmp_path, fixtures):
    return shutil.copy(fixtures / "events.parquet", tmp_path / "events.parquet")


def comparable(row):
    """Return the row without what only the attempt that built the filters can know."""
    filters = tuple(replace(each, values=0) for each in row.report.filters)
    report = replace(row.report, filters=filters)
    if hasattr(report, "columns"):
        report = replace(
            report,
            columns=tuple(replace(each, estimated_bytes=0) for each in report.columns),
            data_bytes=0,
            estimated_seconds=0,
        )
    else:
        report = replace(report, data_bytes_read=0, cross_checked=0, not_cross_checked=0)
    return replace(row, seconds=0, report=report)


EARLIER = {
    "no filters": lambda path: None,
    "filters of another column": lambda path: add_filters(path, ["session"], in_place=True),
    "filters of other columns, by two runs": lambda path: [
        add_filters(path, [name], in_place=True) for name in ("session", "amount")
    ],
    "appended filters": lambda path: add_filters(path, ["session"], in_place=True, append=True),
}
WORKS = {
    "add": Work(AddFilter(SPEC), Context(), EDIT),
    "add, append": Work(AddFilter(SPEC), Context(), replace(EDIT, append=True)),
    "add, replace": Work(AddFilter(SPEC, rebuild="all"), Context(), EDIT),
    "add, ensure": Work(AddFilter(SPEC, rebuild="weak"), Context(), EDIT),
    "apply": Work(Apply([DECLARATION]), Context(strict=False), EDIT),
}


@pytest.mark.slow
@each("work", WORKS)
@each("before", EARLIER)
def test_the_second_attempt_reports_what_the_first_added(path, before, work):
    before(path)
    listed = list_file(str(path))
    first = work(str(path))
    assert restore_row(first, listed, work) is first
    second = work(str(path))
    restored = restore_row(second, listed, work)
    assert (first.status, len(restored.report.filters)) == ("ok", 3)
    assert comparable(restored) == comparable(first)
    if hasattr(first.report, "undo"):
        assert restored.report.undo == first.report.undo
    # A third attempt finds the same.
    assert comparable(restore_row(work(str(path)), listed, work)) == comparable(first)


def test_filters_that_replaced_those_of_an_earlier_run(path):
    """Nothing shows the old end; the file is counted as changed all the same."""
    add_filters(path, ["user_id"], fpp=0.5, in_place=True, force=True)
    listed, work = (
        list_file(str(path)),
        Work(AddFilter(SPEC, rebuild="weak"), Context(), EDIT),
    )
    first, second = work(str(path)), work(str(path))
    restored = restore_row(second, listed, work)
    assert (second.status, restored.status, len(restored.report.filters)) == (
        "skipped",
        "ok",
        len(first.report.filters),
    )
    assert (restored.report.bytes_added, restored.report.undo) == (first.report.bytes_added, None)


@each("work", WORKS)
def test_a_file_that_had_every_filter_before_the_run(path, work):
    work(str(path))
    listed, row = list_file(str(path)), work(str(path))
    assert restore_row(row, listed, work) is row
    assert restore_row(row, replace(listed, bytes=None), work) is row


def test_a_file_of_another_writer_that_was_replaced_meanwhile(fixtures, tmp_path):
    path, work = (
        shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "written.parquet"),
        Work(AddFilter(FilterSpec(("id",))), Context(), EDIT),
    )
    row = work(str(path))
    restored = restore_row(row, replace(list_file(str(path)), bytes=1000), work)
    assert (restored.status, restored.report.filters) == ("skipped", ())
    assert "changed after it was listed" in restored.report.warnings[-1]


WRITTEN = "pyarrow-filters.parquet"
"""A file whose filters another writer has written."""


def restored_twice(path, verb, edit=EDIT):
    """Return the rows of the first attempt, of the second, and what the second one restores."""
    listed = list_file(str(path))
    work = Work(verb, Context(), edit)
    first = work(str(path))
    assert first.status == "ok"
    assert restore_row(first, listed, work) is first
    second = work(str(path))
    return first, second, restore_row(second, listed, work)


@each(
    "verb",
    {
        "remove": RemoveFilter(),
        "remove one column": RemoveFilter(["id"]),
        "resize": Resize(max_bytes=64),
        "resize one column": Resize(["id"], max_bytes=64),
    },
)
def test_a_change_after_the_old_file_is_restored(fixtures, tmp_path, verb):
    """The file begins with the old one, so what the verb does to that is known."""
    path = shutil.copy(fixtures / WRITTEN, tmp_path / "written.parquet")
    first, second, restored = restored_twice(path, verb, Edit(in_place=True, force=True))
    assert first.report.filters
    assert not getattr(second.report, "filters", ())
    assert restored.report == first.report
    assert (restored.status, restored.reason, restored.exit_code) == ("ok", None, 0)


@each("drop", {"rebuild": False, "drop": True})
@each("defect", ["false-negatives", "missing-length", "wrong-length", "unreadable-filter"])
def test_a_repair_is_restored(tmp_path, defect, drop):
    path = tmp_path / "broken.parquet"
    DEFECTS[defect].make(path)
    first, second, restored = restored_twice(path, Repair(drop=drop))
    assert first.report.steps
    assert not second.report.steps
    assert restored.report.steps == first.report.steps
    assert replace(restored.report, cross_checked=first.report.cross_checked) == first.report


@each("verb", {"remove": RemoveFilter(), "restore": RemoveFilter(ours=True)})
def test_removed_filters_are_unknown_if_the_file_was_cut(path, verb):
    add_filters(path, ["user_id"], in_place=True)
    first, second, restored = restored_twice(path, verb)
    assert second.status == "skipped"
    sizes = (restored.report.old_bytes, restored.report.new_bytes)
    assert sizes == (first.report.old_bytes, first.report.new_bytes)
    assert (restored.status, restored.report.filters) == ("ok", ())
    assert "does not show which filters it removed" in restored.report.warnings[-1]


def test_old_sizes_are_unknown_if_the_old_filters_were_dropped(path):
    add_filters(path, ["user_id"], in_place=True)
    first, _, restored = restored_twice(path, Resize(fpp=0.2))
    unknown = {"old_bytes": None, "old_fpp": None}
    expected = tuple(replace(each, **unknown) for each in first.report.filters)
    assert (restored.status, restored.report.filters) == ("ok", expected)
    assert "does not show the old sizes" in restored.report.warnings[-1]


def test_a_refusal_of_what_a_first_attempt_could_not_resize(path):
    """The second attempt refuses, because nothing is left that can be resized."""
    add_filters(path, ["user_id"], ndv=50_000, in_place=True)
    add_filters(path, ["session"], in_place=True)
    listed = list_file(str(path))
    work = Work(Resize(fpp=0.000001), Context(), EDIT)
    first, second = work(str(path)), work(str(path))
    assert (first.status, second.status) in {("ok", "refused"), ("refused", "refused")}
    restored = restore_row(second, listed, work)
    assert restored.status == first.status
