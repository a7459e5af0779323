"""Commands on columns that only some files of a table have, and on partition columns."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import explain, probe
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.parquet.column_names import ColumnNames
from support.calls import call
from support.tables import each


@pytest.fixture
def table(tmp_path) -> Path:
    """A table whose first file does not have the column `email`."""
    folder = tmp_path / "users"
    deltalake.write_deltalake(folder, pa.table({"id": range(100)}))
    later = pa.table({"id": range(100, 200), "email": [f"u{number}@x" for number in range(100)]})
    deltalake.write_deltalake(folder, later, mode="append", schema_mode="merge")
    return folder


@pytest.fixture
def partitioned(tmp_path) -> Path:
    folder = tmp_path / "orders"
    rows = pa.table({"id": range(100), "day": ["2026-01-01", "2026-01-02"] * 50})
    deltalake.write_deltalake(folder, rows, partition_by=["day"])
    return folder


def test_a_file_without_the_column_answers_absent(table, capsys):
    call(capsys, "add-filter", table, "-c", "email", "--in-place")
    code, out, _ = call(capsys, "probe", table, "email", "absent@x")
    assert (code, out) == (
        1,
        "Queried 1 value in 2 files: all of them are excluded (1 of the files lacks the column)\n",
    )
    assert call(capsys, "probe", table, "email", "u7@x")[0] == 0
    code, out, _ = call(capsys, "explain", table, "email", "absent@x")
    assert (code, out.splitlines()[-1]) == (1, "2 files: 2 done (1 of the files lacks the column)")


@each(
    "columns, answer, reason",
    [
        (ColumnNames(unmapped=frozenset({("id",), ("email",)})), "absent", "all its rows are null"),
        (
            ColumnNames(unmapped=frozenset({("id",), ("ID",)})),
            "cannot say",
            "in other upper and lower case",
        ),
        (
            ColumnNames(unmapped=frozenset({("email",)}), defaults=frozenset({("email",)})),
            "cannot say",
            "gives the column a value",
        ),
        (ColumnNames({1: ("email",)}), "cannot say", "no field ids"),
        (ColumnNames(unmapped=frozenset({("id",)})), "cannot say", "a column of this name"),
        (ColumnNames({1: ("email",)}, {("mail",): ("email",)}), "absent", "all its rows are null"),
    ],
)
def test_only_the_schema_of_the_table_makes_an_absence_certain(tmp_path, columns, answer, reason):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    name = "ID" if ("ID",) in columns.table_paths else "email"
    report = probe(TableFile(str(path), columns), name, "x")
    (value,) = report.values
    assert [(each.answer, reason in (each.reason or value.note)) for each in value.row_groups] == [
        (answer, True)
    ]
    assert bool(report.inconclusive) == (answer != "absent")
    assert explain(TableFile(str(path), columns), name, "x").absent == (answer == "absent")


def test_a_column_of_a_partition_answers_by_its_values(partitioned, capsys):
    code, out, _ = call(capsys, "probe", partitioned, "day", "2026-01-02")
    assert code == 0
    assert (
        out.splitlines()[-1]
        == "Queried 1 value in 2 files: 1 file may hold 1 of the values; 1 file cannot hold "
        "any of them (2 of the files lack the column)"
    )
    assert call(capsys, "probe", partitioned, "day", "2026-01-03")[0] == 1
    assert call(capsys, "explain", partitioned, "day", "2026-01-03")[0] == 1
