"""Partitions of tables compare as values of their type: in predicates of commands and declarations,
and as values to look up."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pyiceberg.partitioning import PartitionField as IcebergField
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, TimestamptzType

from extensions.tables.iceberg.iceberg_tables import source_of, sql_catalog
from sbbf_tool.cli import run
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.tables.delta.table import DeltaTable
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from sbbf_tool.extensions.tables.iceberg.table import IcebergTable
from sbbf_tool.file.partitions import Predicate
from sbbf_tool.running.table import Table
from support.ducklakes import SmallLake
from support.tables import each

UTC = datetime.UTC
START = datetime.datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = {
    "i": pa.array([9, 10], pa.int32()),
    "d": pa.array([Decimal("9.50"), Decimal("10.00")], pa.decimal128(9, 2)),
    "day": pa.array([datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]),
    "ts": pa.array([START, START + datetime.timedelta(days=1)], pa.timestamp("us", "UTC")),
    "local": pa.array(
        [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)], pa.timestamp("us")
    ),
    "flag": pa.array([False, True]),
    "real": pa.array([0.5, None]),
    "raw": pa.array([b"a", b"\x00\xff"]),
    "text": pa.array(["9", "10"]),
}
"""A partition column of each type, with the values of two partitions."""

# Stored values have no zone, which readers may take for local time.
PREDICATES = [
    ("i", "i >= '9'", 2), ("i", "i between '9' and '11'", 2), ("i", "i < '9.5'", 1),
    ("i", "i = '10.4'", 1), ("i", "i = 10.4", 0), ("i", "not i < '10.4'", 1),
    ("i", "i = 'x'", None),
    ("d", "d = '9.5'", 1), ("d", "d = '9.504'", 1), ("d", "d = '9.51'", 0),
    ("d", "d > 9", 2),
    ("day", "day > '2026-01-01'", 1),
    ("day", "day = 'today'", None),
    ("ts", "ts >= '2026-01-01T00:00:00Z'", 2), ("ts", "ts < '2026-01-02T01:00:00+01:00'", 2),
    ("ts", "ts < '2026-01-04T00:00:00Z'", 2), ("ts", "ts > '2026-01-04T00:00:00Z'", 0),
    ("ts", "ts = '2026-01-01T00:00:00.0000001Z'", 2), ("ts", "ts = 5", None),
    ("local", "local >= '2026-01-01T00:00:00'", 2), ("flag", "flag = true", 1),
    ("flag", "flag = 1", None), ("flag", "flag = 'yes'", None),
    ("raw", "raw = 'a'", 2), ("text", "text >= '9'", 1),
]  # fmt: skip


def make_table(folder: Path, column: str) -> str:
    table = pa.table({"id": [1, 2], column: COLUMNS[column]})
    deltalake.write_deltalake(folder / "t", table, partition_by=[column])
    return str(folder / "t")


def count_files(table: Table, predicate: str) -> int:
    accepts = Predicate(predicate).accepts_values
    return sum(
        accepts(file.partition, file.unknown, table.partition_types) for file in table.live_files()
    )


@each("column, predicate, count", PREDICATES)
def test_predicates_of_a_delta_table(tmp_path, capsys, column, predicate, count):
    name = make_table(tmp_path, column)
    if count is not None:
        assert count_files(DeltaTable(name), predicate) == count
    else:
        assert run(["inspect", name, "--where", predicate]) == 2
        assert "is not a value of type" in capsys.readouterr().err


@each("column, value, count", [
        ("i", "10", 1), ("i", "1e1", 1), ("i", "11", 0), ("i", "ten", None), ("d", "9.5", 1),
        ("day", "2026-01-02", 1), ("day", "2", None),
        ("ts", "2026-01-01T01:00:00+01:00", 2), ("ts", "2026-01-01 00:00:00", 1),
        ("local", "2026-01-01 00:00", 1), ("flag", "TRUE", 1),
        ("real", "0.50", 1), ("real", "0.1", 0),
        ("flag", "1", None), ("raw", "b", 2), ("text", "10", 1), ("text", "10.0", 0),
        ("text", "null", 2),
    ])  # fmt: skip
def test_values_of_a_partition_column(tmp_path, capsys, column, value, count):
    code = run(["probe", make_table(tmp_path, column), column, value, "--format", "json"])
    documents = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert code == (2 if count is None else int(count == 0))
    assert sum(
        bool(document.get("hits") or document.get("inconclusive")) for document in documents
    ) == (count or 0)


def test_partitions_of_an_iceberg_table(tmp_path):
    catalog = sql_catalog(tmp_path)
    schema = Schema(NestedField(1, "i", LongType()), NestedField(2, "ts", TimestamptzType()))
    spec = IcebergSpec(
        IcebergField(1, 1000, IdentityTransform(), "i"),
        IcebergField(2, 1001, IdentityTransform(), "ts"),
    )
    table = catalog.create_table("n.t", schema, partition_spec=spec)
    table.append(
        pa.table({"i": pa.array([9, 10]), "ts": COLUMNS["ts"]}, schema=table.schema().as_arrow())
    )
    for predicate, count in (
        ("i >= '9'", 2),
        ("ts >= '2026-01-01T00:00:00Z'", 2),
        ("ts < '2026-01-02T00:00:00Z' and i < '10'", 1),
    ):
        assert count_files(IcebergTable(source_of(catalog)), predicate) == count, predicate


def test_partitions_of_a_ducklake_table(tmp_path):
    lake = SmallLake(tmp_path, "sqlite")
    for index, transform in enumerate(("identity", "year")):
        lake.insert(
            "partition_column",
            partition_id=1,
            table_id=1,
            partition_key_index=index,
            column_id=1,
            transform=transform,
        )
    for key in ("9", "10"):
        lake.add_file(partition={0: key, 1: "2026"}, partition_id=1)
    for predicate, count in (
        ("user_id >= '9'", 2),
        ("user_id between '10' and '11'", 1),
        ("year > '999'", 2),
    ):
        assert count_files(DuckLakeTable(lake.events), predicate) == count, predicate
    with pytest.raises(
        UsageError,
        match="partition column year: 'x' is not a value of type int64; it takes a number",
    ):
        count_files(DuckLakeTable(lake.events), "year = 'x'")
