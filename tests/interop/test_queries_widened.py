"""The same rows when a column is read as a wider type than it is stored in, or compared with a
literal of one.

Tables outlive their schemas: an INT column becomes BIGINT, and its old files still hold, and hash,
four bytes. An engine that queries the filter with the bytes of the wide value loses every row;
Trino and Hudi did. None of these does.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from support.tables import each

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines

ROWS = range(0, 800, 2)
A_DAY = dt.datetime(2024, 1, 1)


class Wide(NamedTuple):
    """A column, a stored value of it as SQL writes it, and a wider type."""

    stored: pa.Array
    literal: str
    sql: str


PRICES = pa.array([Decimal(n * 131).scaleb(-2) for n in ROWS], pa.decimal128(9, 2))
COLUMNS = {
    "i8": Wide(pa.array([n % 100 for n in ROWS], pa.int8()), "4", "BIGINT"),
    "i32": Wide(pa.array([n * 7 for n in ROWS], pa.int32()), "1414", "BIGINT"),
    "i32_as_double": Wide(pa.array([n * 7 for n in ROWS], pa.int32()), "1414", "DOUBLE"),
    "f32": Wide(pa.array([n * 0.25 for n in ROWS], pa.float32()), "50.5", "DOUBLE"),
    "d9": Wide(PRICES, "264.62", "DECIMAL(18,2)"),
    "d9_scale": Wide(PRICES, "264.62", "DECIMAL(20,4)"),
    "day": Wide(
        pa.array([A_DAY.date() + dt.timedelta(days=n) for n in ROWS]),
        "'2024-02-02 00:00:00'",
        "TIMESTAMP",
    ),
    "millis": Wide(
        pa.array([A_DAY + dt.timedelta(hours=n) for n in ROWS], pa.timestamp("ms")),
        "'2024-01-02 08:00:00'",
        "TIMESTAMP",
    ),
    "text": Wide(pa.array([f"t{n}" for n in ROWS]), "'t8'", "VARCHAR"),
}
"""`text` is no wider, but bytes are another type."""

CLICKHOUSE = {
    "BIGINT": "Int64",
    "DOUBLE": "Float64",
    "TIMESTAMP": "DateTime64(6)",
    "VARCHAR": "String",
}
SPARK = {"TIMESTAMP": "timestamp_ntz", "VARCHAR": "binary"}
"""Types that another engine names otherwise."""

every_column = each("name", list(COLUMNS))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Without filters and with ours."""
    folder = tmp_path_factory.mktemp("widened")
    before, after = folder / "before.parquet", folder / "after.parquet"
    table = pa.table(
        {"n": pa.array(ROWS, pa.int64()), **{name: wide.stored for name, wide in COLUMNS.items()}}
    )
    pq.write_table(
        table,
        before,
        store_decimal_as_integer=True,
        row_group_size=100,
        use_dictionary=False,
        store_schema=False,
    )
    add_filters(before, list(COLUMNS), output=after, fpp=0.001)
    return before, after


def check(was: list[Any], now: list[Any]) -> None:
    assert was == now
    assert was != []


@every_column
def test_duckdb(files: tuple[Path, Path], name: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    wide = COLUMNS[name]
    literal = f"CAST({wide.literal} AS {wide.sql})"
    for condition in (
        f"{name} = {literal}",
        f"{name} IN ({literal}, {literal})",
        f"CAST({name} AS {wide.sql}) = {literal}",
    ):
        check(
            *(
                duckdb.sql(f"SELECT n FROM '{path}' WHERE {condition} ORDER BY n").fetchall()
                for path in files
            )
        )


@every_column
def test_datafusion(files: tuple[Path, Path], name: str) -> None:
    datafusion = pytest.importorskip("datafusion")
    wide = COLUMNS[name]

    def rows(path: Path, declared_type: str, condition: str) -> list[int]:
        context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
        context.sql(
            f"CREATE EXTERNAL TABLE t ({declared_type}) STORED AS PARQUET LOCATION '{path}'"
        )
        return sorted(
            row["n"] for row in context.sql(f"SELECT n FROM t WHERE {condition}").to_pylist()
        )

    literal = f"CAST({wide.literal} AS {wide.sql})"
    for condition in (f"{name} = {literal}", f"{name} IN ({literal}, {literal})"):
        check(*(rows(path, f"n BIGINT, {name} {wide.sql}", condition) for path in files))


@every_column
def test_clickhouse(files: tuple[Path, Path], engines: Any, name: str) -> None:
    wide = COLUMNS[name]
    kind = CLICKHOUSE.get(wide.sql, wide.sql.title())
    literal = f"CAST({wide.literal} AS {kind})"
    for condition in (f"{name} = {literal}", f"{name} IN ({literal}, {literal})"):
        query = (
            f"SELECT n FROM file('{{}}', Parquet, 'n Int64, {name} {kind}') WHERE "
            f"{condition} ORDER BY n"
        )
        check(*(engines("clickhouse").lines(query.format(path)) for path in files))


@pytest.mark.heavy
@every_column
def test_spark(files: tuple[Path, Path], spark: SparkSession, name: str) -> None:
    wide = COLUMNS[name]
    kind = SPARK.get(wide.sql, wide.sql)

    def rows(path: Path, condition: str) -> list[int]:
        frame = spark.read.schema(f"n bigint, {name} {kind}").parquet(str(path))
        return sorted(row["n"] for row in frame.where(condition).collect())

    literal = f"CAST({wide.literal} AS {kind})"
    check(*(rows(path, f"{name} IN ({literal}, {literal})") for path in files))
