"""The index of a Delta table: its live files, and those of later versions, which a query opens."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.types import LongType

from extensions.tables.iceberg.iceberg_tables import sql_catalog
from sbbf_tool import run
from sbbf_tool.cli import run as sbbf
from sbbf_tool.extensions.index.build import build_index, update_index
from sbbf_tool.extensions.index.lake_index import LakeIndex, prune_index
from sbbf_tool.verbs import Probe


def append(table: Path, day: str, start: int) -> None:
    rows = pa.table({"v": pa.array(range(start, start + 100), pa.int64()), "day": [day] * 100})
    deltalake.write_deltalake(table, rows, mode="append", partition_by=["day"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for number in range(6):
        append(tmp_path / "table", f"d{number % 3}", number * 100)
    return tmp_path / "table"


def ensure_same(table: Path, index: Path, value: int, **options: object) -> int:
    """Compare the answers of the table and of its index; return the number of files that the index
    left."""
    of_table = {
        row.path: row.report for row in run(Probe("v", [value], confirm=True), table, **options)
    }
    of_index = {
        row.path: row.report for row in run(Probe("v", [value], confirm=True), index, **options)
    }
    assert all(of_table[path] == report for path, report in of_index.items())
    assert all(
        report is not None and report.is_absent
        for path, report in of_table.items()
        if path not in of_index
    )
    return len(of_index)


def test_the_live_files_are_indexed_and_later_ones_are_opened(table, tmp_path, capsys):
    index = tmp_path / "table.sbbfx"
    report = build_index(table, "v", str(index))
    assert (report.files, report.new_files, report.files_without_filter) == (6, 6, 0)
    assert LakeIndex(str(index)).contents.table_version == "version 5"
    assert [ensure_same(table, index, value) for value in (5, 250, 599, 9999)] == [1, 1, 1, 1]
    append(table, "d1", 600)
    deltalake.DeltaTable(table).delete("v >= 100 AND v < 200")
    # The new file is opened for each value; the removed one is left out.
    assert [ensure_same(table, index, value) for value in (5, 150, 650)] == [2, 1, 1]
    assert len(prune_index(index, {"v": [150]})) == 1
    report = update_index(str(index))
    assert (report.files, report.new_files, report.vanished_files, report.segments) == (6, 1, 1, 2)
    assert LakeIndex(str(index)).contents.table_version == "version 7"
    assert [ensure_same(table, index, value) for value in (5, 150, 650)] == [1, 1, 1]
    assert prune_index(index, {"v": [150]}) == []
    assert ensure_same(table, index, 5, where="day = 'd0'") == 1
    capsys.readouterr()
    assert sbbf(["probe", str(index), "v", "650", "--confirm", "--format", "names"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert sbbf(["probe", str(index), "day", "d1", "--format", "names"]) == 0
    assert capsys.readouterr().out.count("\n") == 2


def test_rows_that_the_table_has_deleted_are_absent(table, tmp_path):
    index = tmp_path / "table.sbbfx"
    build_index(table, "v", str(index))
    deltalake.DeltaTable(table).delete("v = 5")
    rows = list(run(Probe("v", [5], confirm=True), index))
    assert all(row.report is not None and row.report.is_absent for row in rows)


def test_another_column_gets_the_name(tmp_path, capsys):
    catalog = sql_catalog(tmp_path)
    table = catalog.create_table("n.t", schema=pa.schema([("v", pa.int64()), ("w", pa.int64())]))
    for start in (0, 100, 200):
        table.append(
            pa.table({"v": range(start, start + 100), "w": range(start + 1000, start + 1100)})
        )
    root, index = table.location().removeprefix("file://"), str(tmp_path / "table.sbbfx")
    assert build_index(root, "v", index).files == 3
    assert [len(prune_index(index, {"v": [value]})) for value in (50, 1050)] == [1, 0]
    with table.update_schema() as update:
        update.rename_column("v", "old")
    with table.update_schema() as update:
        update.rename_column("w", "v")
    # The index is of the column that is `old` now.
    assert len(prune_index(index, {"v": [1050]})) == 3
    rows = {row.path: row.report for row in run(Probe("v", [1050], confirm=True), index)}
    assert [bool(report and report.hits) for report in rows.values()].count(True) == 1
    capsys.readouterr()
    assert sbbf(["probe", index, "v", "1050", "--quick"]) == 2
    assert "renamed the column" in capsys.readouterr().err
    assert (update_index(index).new_files, update_index(index).new_files) == (3, 0)
    assert [len(prune_index(index, {"v": [value]})) for value in (50, 1050)] == [0, 1]
    with table.update_schema() as update:
        update.add_column("more", LongType())
    assert [len(prune_index(index, {"v": [value]})) for value in (50, 1050)] == [0, 1]
    catalog.close()
