"""A second attempt of a task reports the changes of the first, whose rows were lost."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.runner.fill import build_split, fill_file, publish_file
from sbbf_tool.runner.retry import restore_row

SPEC, EDIT = FilterSpec(("user_id",)), Edit(in_place=True, jobs=1)


@pytest.fixture
def path(tmp_path, fixtures):
    return shutil.copy(fixtures / "events.parquet", tmp_path / "events.parquet")


def without_measurements(row):
    """Return the row without what only the attempt that built the filters can know."""
    filters = tuple(replace(each, values=0) for each in row.report.filters)
    return replace(row, seconds=0, report=replace(row.report, filters=filters, data_bytes_read=0, cross_checked=0, not_cross_checked=0))


@pytest.mark.parametrize("edit", [EDIT, replace(EDIT, append=True)], ids=["copy", "append"])
def test_the_second_attempt_reports_what_the_first_added(path, edit):
    size = path.stat().st_size
    first, second = fill_file(path, SPEC, edit), fill_file(path, SPEC, edit)
    assert (first.status, second.status) == ("ok", "skipped")
    restored = restore_row(second, path, edit, planned_bytes=size)
    assert len(restored.report.filters) == 3
    assert restored.report.undo is not None
    assert without_measurements(restored) == without_measurements(first)


def test_a_file_published_in_splits(path):
    with ParquetFile.open(path) as file:
        fingerprint = file.fingerprint
    chunks = list(build_split(path, fingerprint, range(3), SPEC, EDIT))
    first, second = publish_file(path, chunks, SPEC, EDIT), publish_file(path, chunks, SPEC, EDIT)
    restored = restore_row(second, path, EDIT, fingerprint=fingerprint)
    assert without_measurements(restored) == without_measurements(first)
    assert restore_row(second, path, EDIT, fingerprint="1-0") is second


def test_a_file_that_had_every_filter_before_the_run(path):
    fill_file(path, SPEC, EDIT)
    second = fill_file(path, SPEC, EDIT)
    assert restore_row(second, path, EDIT, planned_bytes=path.stat().st_size) is second
    assert restore_row(second, path, EDIT, planned_bytes=None) is second


def test_a_file_that_its_writer_gave_filters(fixtures, tmp_path):
    path = shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "written.parquet")
    row = fill_file(path, FilterSpec(("id",)), EDIT)
    assert row.status == "skipped"
    assert restore_row(row, path, EDIT, planned_bytes=1000) is row
