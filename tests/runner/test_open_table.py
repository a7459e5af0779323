"""`open_table`: the verbs on a table in Python; a change is committed after its last report."""

from __future__ import annotations

import deltalake
import pyarrow as pa
import pytest

import sbbf_tool


@pytest.fixture
def folder(tmp_path):
    for part in range(2):
        rows = pa.table({"id": range(part * 100, part * 100 + 100), "day": [f"d{part}"] * 100})
        deltalake.write_deltalake(tmp_path / "t", rows, mode="append", partition_by=["day"])
    return tmp_path / "t"


def test_a_change_is_committed_after_its_last_report(folder):
    table = sbbf_tool.open_table(folder)
    reports = table.add_filters("id", in_place=True)
    assert len(next(reports).filters) == 1
    assert deltalake.DeltaTable(folder).version() == 1
    assert len(list(reports)) == 1
    (commit,) = table.commits
    assert (commit.num_files, deltalake.DeltaTable(folder).version()) == (2, 2)
    fresh = sbbf_tool.open_table(folder, where="day = 'd1'")
    assert [report.is_sound for report in fresh.verify()] == [True]
    assert len(sbbf_tool.open_table(folder).advise().columns) >= 1
    assert len(list(sbbf_tool.open_table(folder).remove_filters(in_place=True))) == 2
    assert deltalake.DeltaTable(folder).version() == 3


def test_a_run_that_the_caller_stops_changes_nothing(folder):
    reports = sbbf_tool.open_table(folder).add_filters("id", in_place=True)
    next(reports)
    reports.close()
    assert deltalake.DeltaTable(folder).version() == 1
    assert not list(folder.rglob("*sbbf*"))


def test_what_is_no_table_is_an_error(tmp_path, folder):
    with pytest.raises(sbbf_tool.UsageError, match="no table"):
        sbbf_tool.open_table(tmp_path)
    with pytest.raises(sbbf_tool.UsageError, match="output does not apply"):
        sbbf_tool.open_table(folder).remove_filters(output="x")
    with pytest.raises(sbbf_tool.UsageError, match="Delta has no properties"):
        sbbf_tool.open_table(folder).add_filters("id", in_place=True, also_new_files=True)
