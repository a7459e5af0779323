"""The rows that have the keys of a DataFrame are those of Spark's own join, whoever wrote the
files; what is not searched is said."""

from __future__ import annotations

import logging
import math
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.running.discover import path_of
from support.lakes import small_files
from support.tables import each

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool.spark import discover, key_rows, probe_keys

pytestmark = [pytest.mark.engines, pytest.mark.heavy]

ROWS = 120
NAN = math.nan
COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "id": (pa.int64(), [None, 7, -1, 1 << 40, *range(30)]),
    "small": (pa.int16(), [None, 7, -1, *range(30)]),
    "name": (pa.string(), [None, "", "null", "0x61", "ä", *(f"u{number}" for number in range(30))]),
    "bytes": (pa.binary(), [None, b"", b"\0", b"0x61", *(b"%d" % number for number in range(30))]),
    "fixed": (pa.binary(4), [None, *(number.to_bytes(4, "big") for number in range(30))]),
    "x": (pa.float64(), [None, 0.0, -0.0, NAN, math.inf, *(number / 3 for number in range(30))]),
    "y": (pa.float32(), [None, 0.0, -0.0, NAN, 0.5, *(number / 4 for number in range(30))]),
    "price": (pa.decimal128(10, 2), [None, *(Decimal(number) / 4 for number in range(30))]),
    "day": (pa.date32(), [None, *(date(2024, 1, number) for number in range(1, 30))]),
    "at": (
        pa.timestamp("us", "UTC"),
        [None, *(datetime(2024, 1, number, tzinfo=UTC) for number in range(1, 30))],
    ),
    "flag": (pa.bool_(), [None, True, False]),
}
TYPES = {
    "id": "bigint",
    "small": "smallint",
    "name": "string",
    "bytes": "binary",
    "fixed": "binary",
    "x": "double",
    "y": "float",
    "price": "decimal(10,2)",
    "day": "date",
    "at": "timestamp",
    "flag": "boolean",
}
"""Type of the keys of each column."""


def table(seed: int) -> pa.Table:
    arrays = {}
    for name, (kind, values) in COLUMNS.items():
        chosen = [values[(row * 7 + seed * 11) % len(values)] for row in range(ROWS)]
        arrays[name] = pa.array(chosen, kind)
    return pa.table(arrays)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Path:
    """Files of several writers, with and without filters."""
    folder = tmp_path_factory.mktemp("lake [1]")
    pq.write_table(table(1), folder / "bare.parquet", row_group_size=50)
    pq.write_table(
        table(2),
        folder / "plain.parquet",
        use_dictionary=False,
        row_group_size=30,
        compression="zstd",
    )
    pq.write_table(table(3), folder / "newer.parquet", data_page_version="2.0")
    delta = dict.fromkeys(("id", "small"), "DELTA_BINARY_PACKED")
    pq.write_table(table(4), folder / "delta.parquet", use_dictionary=False, column_encoding=delta)
    for name in ("plain", "newer", "delta"):
        columns = [column for column in COLUMNS if column != "flag"]
        add_filters(folder / f"{name}.parquet", columns, in_place=True)
    written = folder.parent / f"{folder.name}-spark"
    pq.write_table(table(5), folder.parent / "source.parquet")
    source = spark.read.parquet(str(folder.parent / "source.parquet"))
    source.coalesce(1).write.option("parquet.bloom.filter.enabled", "true").parquet(str(written))
    (part,) = written.glob("*.parquet")
    part.rename(folder / "spark.parquet")
    return folder


def expected_rows(spark: Any, lake: Path, column: str, keys: Any) -> list[tuple[str, ...]]:
    """Return path, row group, row and key of Spark's own join."""
    expected = []
    for path in sorted(lake.glob("*.parquet")):
        pattern = str(path).replace("[", "\\[").replace("]", "\\]")
        rows = spark.read.parquet(pattern).selectExpr(
            f"`{column}` AS stored", "_metadata.file_path", "_metadata.row_index"
        )
        distinct = keys.selectExpr("key").distinct()
        joined = rows.join(distinct, rows["stored"] == distinct["key"])
        ends = list(_ends(path))
        for row in joined.collect():
            group = sum(end <= row["row_index"] for end in ends)
            place = (path_of(row["file_path"]), str(group), str(row["row_index"]))
            expected.append((*place, repr(row["key"])))
    return sorted(expected)


def _ends(path: Path) -> Iterator[int]:
    metadata = pq.read_metadata(path)
    end = 0
    for number in range(metadata.num_row_groups):
        end += metadata.row_group(number).num_rows
        yield end


def found_rows(frame: Any) -> list[tuple[str, ...]]:
    rows = frame.where("status = 'present'").collect()
    return sorted(
        (row["path"], str(row["row_group"]), str(row["row"]), repr(row["key"])) for row in rows
    )


def keys_of(spark: Any, kind: str, values: list[Any]) -> Any:
    return spark.createDataFrame([(value,) for value in values], f"key {kind}")


@each("column", list(COLUMNS))
def test_the_rows_are_those_of_sparks_join(spark, lake, column):
    _, values = COLUMNS[column]
    stored = values[:9]
    absent = {"name": ["absent", "NULL"], "bytes": [b"absent"], "fixed": [b"none", b"too long"]}
    values = [*stored, *stored[:3], *absent.get(column, [])]
    if column == "x":
        values += [123.0, -math.inf]
    keys = keys_of(spark, TYPES[column], values)
    expected = expected_rows(spark, lake, column, keys)
    assert expected
    frame = probe_keys(discover(spark, str(lake)), column, keys, confirm=True)
    assert {row["status"] for row in frame.select("status").collect()} == {"present"}
    assert found_rows(frame) == expected


@each("column, values", [("x", [0.0, 1 / 3, 123.0]), ("y", [0.25, 7.0]), ("price", [Decimal(1)])])
def test_what_only_filters_answered_is_read(spark, lake, column, values):
    keys = keys_of(spark, TYPES[column], values)
    expected = expected_rows(spark, lake, column, keys)
    assert expected
    frame = probe_keys(discover(spark, str(lake)), column, keys, confirm=True)
    assert found_rows(frame) == expected


@each(
    "column, kind, values",
    [
        ("id", "string", ["7", "007", "12"]),
        ("small", "bigint", [7, 1 << 40]),
        ("y", "double", [0.5, 0.1, NAN]),
        ("day", "timestamp", [datetime(2024, 1, 7)]),
        ("price", "int", [1, 2]),
        ("at", "timestamp", [datetime(2024, 1, 7), datetime(1850, 1, 1)]),
        ("name", "binary", [b"u7", b"\xff"]),
        ("x", "bigint", [1, (1 << 53) + 1]),
    ],
)
def test_what_spark_converts_is_joined_by_spark(spark, lake, caplog, column, kind, values):
    keys = keys_of(spark, kind, values)
    with caplog.at_level(logging.INFO, logger="sbbf_tool"):
        frame = probe_keys(discover(spark, str(lake)), column, keys, confirm=True)
    expected = expected_rows(spark, lake, column, keys)
    assert expected
    assert found_rows(frame) == expected
    assert frame.where("status <> 'present'").isEmpty()
    if (column, kind) in {("day", "timestamp"), ("at", "timestamp"), ("x", "bigint")}:
        assert f"Spark compares the keys with column {column} itself: 5 files" in caplog.text


def test_too_many_keys_are_joined_by_spark(spark, lake, monkeypatch):
    monkeypatch.setattr(key_rows, "MOST_KEYS", 10)
    keys = keys_of(spark, "bigint", list(range(20)))
    frame = probe_keys(discover(spark, str(lake)), "id", keys, confirm=True)
    assert found_rows(frame) == expected_rows(spark, lake, "id", keys)


def test_files_of_many_rows_that_match(spark, tmp_path):
    small_files(tmp_path, 3)
    keys = spark.range(0, 500)
    frame = probe_keys(discover(spark, str(tmp_path)), "id", keys, confirm=True)
    assert frame.count() == 500
    assert frame.selectExpr("count(distinct key)", "max(row)").first() == (500, 199)


def test_no_keys_and_nulls_alone(spark, lake):
    files = discover(spark, str(lake))
    assert probe_keys(files, "id", keys_of(spark, "bigint", []), confirm=True).isEmpty()
    assert probe_keys(files, "id", keys_of(spark, "bigint", [None]), confirm=True).isEmpty()


def test_text_as_keys_of_uuids(spark, tmp_path):
    ids = [uuid.UUID(int=number) for number in range(10)]
    values = pa.array([*(each.bytes for each in ids), None], pa.uuid())
    pq.write_table(pa.table({"id": values}), tmp_path / "a.parquet")
    keys = keys_of(spark, "string", [str(ids[3]), str(ids[7]), str(uuid.UUID(int=99))])
    frame = probe_keys(discover(spark, str(tmp_path)), "id", keys, confirm=True)
    assert sorted(tuple(row) for row in frame.select("row", "key", "status").collect()) == [
        (3, str(ids[3]), "present"),
        (7, str(ids[7]), "present"),
    ]


def test_files_that_cannot_be_searched_are_reported(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 3)
    (lake / "broken.parquet").write_bytes(b"PAR1 no footer")
    path = lake / "part-00001.parquet"
    with pq.ParquetFile(path) as file:
        chunk = file.metadata.row_group(0).column(0)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    pq.write_table(pa.table({"other": [1]}), lake / "other.parquet")
    keys = spark.createDataFrame([(7,), (207,), (407,)], "key long")
    for key_frame in (keys, keys.selectExpr("cast(key AS string) AS key")):
        frame = probe_keys(discover(spark, str(lake)), "id", key_frame, confirm=True)
        present = frame.where("status = 'present'").orderBy("path").select("row", "key")
        assert [(row, int(key)) for row, key in present.collect()] == [(7, 7), (7, 407)]
        others = frame.where("status <> 'present'").orderBy("path").collect()
        names = [Path(row["path"]).name for row in others]
        assert names == ["broken.parquet", "part-00001.parquet"]
        assert {row["status"] for row in others} == {"failed"}
        assert all(row["reason"] for row in others)


def test_what_filters_say_is_bounded(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 2)
    for path in lake.iterdir():
        add_filters(path, ["id"], in_place=True)
    rows = probe_keys(discover(spark, str(lake)), "id", spark.range(0, 200)).collect()
    by_name = {Path(row["path"]).name: row["report"] for row in rows}
    assert len(by_name["part-00000.parquet"]["hits"]) == 100
    assert by_name["part-00000.parquet"]["notes"] == [
        "more keys may be there: only the first 100 of each row group are listed"
    ]
    assert not by_name["part-00001.parquet"]["notes"]
