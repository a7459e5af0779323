"""A column to which a table has given a wider type after its files were written: a value of the
table's type is one of the column, and a file answers whether it has the value."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import DecimalType, DoubleType, FloatType, IntegerType, LongType, NestedField

from extensions.tables.iceberg.iceberg_tables import source_of, sql_catalog
from sbbf_tool import probe
from sbbf_tool.cli import run
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable
from sbbf_tool.file.table_file import TableFile
from support.delta_logs import add, metadata, protocol, write_version
from support.ducklakes import SmallLake
from support.tables import each

DAYS = pa.array([dt.date(1969, 12, 31), dt.date(2024, 1, 2)])
INT32 = pa.array([7, -5], pa.int32())
FLOAT = pa.array([0.1, 0.5], pa.float32())
PRICES = pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(9, 2))
CASES: list[tuple[str, pa.Array, dict[str, int | None]]] = [
    # Type in the table, stored values, the exit code by value: 0, 1, or 2 for no value of the type.
    ("long", INT32, {"7": 0, "3500000000": 1, "-3500000000": 1, "1.5": 2, "x": 2, str(1 << 63): 2}),
    ("long", pa.array([7, -5], pa.int8()), {"7": 0, "300": 1, "x": 2}),
    ("double", INT32, {"7": 0, "7.0": 0, "7.5": 1, "1e300": 1, "inf": 1, "nan": 1, "x": 2}),
    ("double", FLOAT, {"0.5": 0, "0.10000000149011612": 0, "0.1": 0, "0.75": 1, "1e300": 1,
        "x": 2}),
    ("decimal(20,4)", INT32, {"7": 0, "7.0000": 0, "7.0001": 1, "12345678901.5": 1, "x": 2}),
    ("decimal(20,4)", PRICES, {"1.5": 0, "1.5000": 0, "1.5001": 1, "12345678901234.5": 1, "x": 2}),
    ("timestamp_ntz", DAYS, {
        "2024-01-02": 0, "2024-01-02 00:00:00": 0, "1969-12-31T00:00:00": 0,
        "2024-01-02T00:00:01": 1,
        "2024-01-03T00:00:00": 1, "2024-01-02T00:00:00Z": 2, "x": 2,
    }),
]  # fmt: skip


def write_delta(folder: Path, type_name: str, stored: pa.Array) -> str:
    folder.mkdir()
    pq.write_table(pa.table({"t": stored}), folder / "a.parquet", use_dictionary=False)
    fields = [{"name": "t", "type": type_name, "nullable": True, "metadata": {}}]
    features = ["typeWidening", "timestampNtz"]
    size = (folder / "a.parquet").stat().st_size
    actions = [protocol(features=features), metadata(fields=fields), add("a.parquet", size=size)]
    write_version(folder, 0, *actions)
    return str(folder)


def rows_listed(capsys: pytest.CaptureFixture[str]) -> list[Any]:
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [row["row"] for document in documents for row in document.get("rows", ())]


@each("type_name, stored, codes", CASES)
def test_files_of_a_delta_table(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    type_name: str,
    stored: pa.Array,
    codes: dict[str, int],
) -> None:
    table = write_delta(tmp_path / "t", type_name, stored)
    for filtered in (False, True):
        if filtered:
            assert run(["add-filter", table, "-c", "t", "--in-place"]) == 0
        for value, code in codes.items():
            assert run(["probe", table, "t", value]) == code, value
            assert run(["probe", table, "t", value, "--confirm"]) == code, value
            assert run(["explain", table, "t", value]) == code, value
    capsys.readouterr()
    if type_name == "double" and stored is FLOAT:
        # 0.1 as a DOUBLE is no stored value, but close to one.
        for value, rows in (("0.1", []), ("0.10000000149011612", [0]), ("0.5", [1])):
            assert run(["probe", table, "t", value, "--rows", "--format", "json"]) == 0
            assert rows_listed(capsys) == rows


def test_files_of_an_iceberg_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    catalog: SqlCatalog = sql_catalog(tmp_path)
    fields = [
        NestedField(1, "i", IntegerType()),
        NestedField(2, "f", FloatType()),
        NestedField(3, "d", DecimalType(9, 2)),
    ]
    table = catalog.create_table("n.t", Schema(*fields))
    table.append(pa.table({"i": INT32, "f": FLOAT, "d": PRICES}))
    with table.update_schema() as update:
        update.update_column("i", LongType())
        update.update_column("f", DoubleType())
        update.update_column("d", DecimalType(20, 2))
    ours = IcebergTable(source_of(catalog))
    (live,) = ours.live_files()
    file = TableFile(live.path, ours.columns)
    for column, value, is_absent in (
        ("i", "3500000000", True),
        ("i", "7", False),
        ("f", "1e300", True),
        ("f", "0.5", False),
        ("d", "123456789012345678.25", True),
        ("d", "1.5", False),
    ):
        report = probe(file, column, [value], strict=False, confirm=True)
        assert (report.is_absent, report.unfit) == (is_absent, ()), value
    assert [each.value for each in probe(file, "i", ["x"], strict=False).unfit] == ["x"]


def test_files_of_a_ducklake_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = SmallLake(tmp_path, "sqlite")
    lake.add_file()
    lake.run(
        "update ducklake_column set column_type = 'decimal(30,2)' where column_name = 'user_id'"
    )
    assert run(["probe", lake.events, "user_id", "123456789012345678901.5"]) == 1
    assert run(["probe", lake.events, "user_id", "x"]) == 2
