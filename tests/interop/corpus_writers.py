"""The corpus, written by each writer in the ways it has: with a dictionary and without, in its old
forms and its new ones.

Every writer writes Bloom filters wherever it can, of a suitable size, so that ours can be compared
with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from interop.corpus import (
    BOOLEANS,
    DAYS,
    DECIMALS,
    FIXED_BYTES,
    FLOATS,
    INTEGERS,
    MICROS,
    NESTED,
    NULL_EVERY,
    OTHER_MOMENTS,
    TEXTS,
    TIMES,
    WIDE_DECIMALS,
    ZEROS_AND_NANS,
    Kind,
    table,
)
from sbbf_tool.spark.session import quiet_about_pandas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ARROW = [
    *(*INTEGERS, *FLOATS, *ZEROS_AND_NANS, *DECIMALS, *WIDE_DECIMALS, *TEXTS, *FIXED_BYTES),
    *(*DAYS, *TIMES, *MICROS, *OTHER_MOMENTS, *NESTED, *BOOLEANS),
]
_SIGNED = [kind for kind in INTEGERS if not pa.types.is_unsigned_integer(kind.arrow)]
_FULL_FLOATS = [kind for kind in (*FLOATS, *ZEROS_AND_NANS) if not pa.types.is_float16(kind.arrow)]


@dataclass(frozen=True)
class Expression:
    """A column that only the writer's own SQL can make: an expression of `n`, and its extremes."""

    name: str
    sql: str
    extremes: tuple[str, ...]
    nullable: bool = True


@dataclass(frozen=True)
class Style:
    """One way of writing: the writer, the columns, and the options that set it apart."""

    name: str
    writer: str
    kinds: list[Kind]
    dictionary: bool
    options: dict[str, Any]
    expressions: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return self.name

    def without(self, names: Collection[str]) -> Style:
        """Return this style without these columns."""
        kinds = [kind for kind in self.kinds if kind.name not in names]
        return replace(
            self,
            kinds=kinds,
            expressions=tuple(
                expression for expression in self.expressions if expression.name not in names
            ),
        )


_DUCKDB_KINDS = [
    *(*INTEGERS, *_FULL_FLOATS, *DECIMALS, *TEXTS, *FIXED_BYTES),
    *(*DAYS, *TIMES, *MICROS, *OTHER_MOMENTS, *NESTED, *BOOLEANS),
]
_DUCKDB_TYPES = (
    Expression(
        "span",
        "to_months(CAST(n AS INTEGER)) + to_days(CAST(n * 7 AS INTEGER)) + to_milliseconds(n * "
        "12345678)",
        (
            "INTERVAL '0 days'",
            "INTERVAL '1 month'",
            "INTERVAL '30 days'",
            "INTERVAL '29 days 24 hours'",
            "INTERVAL '1 millisecond'",
            "INTERVAL '0.000001 seconds'",
            "to_months(2147483647) + to_days(2147483647) + to_hours(23)",
        ),
    ),
    Expression(
        "key",
        "CAST(md5(CAST(n AS VARCHAR)) AS UUID)",
        ("CAST(repeat('0', 32) AS UUID)", "CAST(repeat('f', 32) AS UUID)"),
    ),
    Expression(
        "huge",
        "CAST(n AS HUGEINT) * 1000000000000000000000",
        ("CAST(0 AS HUGEINT)", "CAST(-1 AS HUGEINT)"),
    ),
    Expression(
        "colour", "CAST(['red', 'green', 'blue'][1 + n % 3] AS ENUM ('red', 'green', 'blue'))", ()
    ),
    Expression(
        "json",
        """CAST('{"n": ' || n || '}' AS JSON)""",
        ("CAST('null' AS JSON)", "CAST('{}' AS JSON)"),
    ),
    Expression(
        "clock_tz",
        "CAST(CAST(local_us AS TIME) AS TIMETZ)",
        ("TIMETZ '00:00:00+00'", "TIMETZ '23:59:59.999999+00'"),
    ),
    Expression("local_s", "CAST(local_us AS TIMESTAMP_S)", ("CAST('1970-01-01' AS TIMESTAMP_S)",)),
    Expression("midnight", "CAST(clock_us AS TIME)", ("TIME '24:00:00'", "TIME '00:00:00'")),
    Expression("bits", "CAST(bin(n) AS BIT)", ("CAST('0' AS BIT)",)),
    Expression(
        "bignum",
        "CAST(n AS BIGNUM)",
        ("CAST('123456789012345678901234567890123456789012345' AS BIGNUM)",),
    ),
    Expression(
        "geometry",
        "CAST('POINT(' || n || ' 1)' AS GEOMETRY)",
        ("CAST('POINT(0 0)' AS GEOMETRY)", "CAST('POINT EMPTY' AS GEOMETRY)"),
    ),
    Expression(
        "array", "array_value(CAST(n AS INTEGER), -1)", ("array_value(0, NULL)",), nullable=False
    ),  # writes null ones wrongly
    Expression(
        "variant", "CAST(n AS VARIANT)", ("CAST('text' AS VARIANT)", "CAST([1, 2] AS VARIANT)")
    ),
)
_SPARK_KINDS = [*_SIGNED, *_FULL_FLOATS, *DECIMALS, *TEXTS, *DAYS, *MICROS, *NESTED, *BOOLEANS]
_SPARK_TYPES = (
    Expression(
        "months",
        "make_ym_interval(0, CAST(n AS INT))",
        ("INTERVAL '0-0' YEAR TO MONTH", "INTERVAL '-178956970-8' YEAR TO MONTH"),
    ),
    Expression(
        "elapsed",
        "make_dt_interval(CAST(n AS INT), 1, 2, 3.000004)",
        ("INTERVAL '0' DAY", "INTERVAL '-1 00:00:00.000001' DAY TO SECOND"),
    ),
    Expression(
        "local",
        "CAST(at_us AS TIMESTAMP_NTZ)",
        ("TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'9999-12-31 23:59:59'"),
    ),
    Expression("short", "CAST('v' || n AS VARCHAR(9))", ("CAST('' AS VARCHAR(9))",)),
    Expression("padded", "CAST('c' || n AS CHAR(9))", ("CAST('' AS CHAR(9))",)),
    Expression(
        "variant",
        """parse_json('{"a": ' || n || '}')""",
        ("parse_json('null')", "parse_json('[1, \"x\"]')"),
    ),
)

# Only DuckDB can read large unsigned integers in its version 2 pages.
STYLES = [
    Style("pyarrow", "pyarrow", _ARROW, True, {}),
    Style(
        "pyarrow-plain",
        "pyarrow",
        _ARROW,
        False,
        {"store_decimal_as_integer": True, "data_page_version": "2.0"},
    ),
    Style("pyarrow-int96", "pyarrow", MICROS, False, {"use_deprecated_int96_timestamps": True}),
    Style("datafusion", "datafusion", _ARROW, True, {}),
    Style("datafusion-plain", "datafusion", _ARROW, False, {"writer_version": "2.0"}),
    Style("duckdb", "duckdb", _DUCKDB_KINDS, True, {}, _DUCKDB_TYPES),
    Style("duckdb-plain", "duckdb", _DUCKDB_KINDS, False, {}, _DUCKDB_TYPES),
    Style(
        "duckdb-v2", "duckdb", _DUCKDB_KINDS, False, {"PARQUET_VERSION": "v2"}, _DUCKDB_TYPES
    ).without({"u32"}),
    Style("spark", "spark", _SPARK_KINDS, True, {}, _SPARK_TYPES),
    Style("spark-plain", "spark", _SPARK_KINDS, False, {}, _SPARK_TYPES),
    Style("spark-v2", "spark", _SPARK_KINDS, False, {"parquet.writer.version": "v2"}, _SPARK_TYPES),
    Style(
        "spark-legacy",
        "spark",
        [*DECIMALS, *NESTED],
        False,
        {"spark.sql.parquet.writeLegacyFormat": "true"},
    ),
    Style(
        "spark-int96",
        "spark",
        MICROS[:1],
        False,
        {"spark.sql.parquet.outputTimestampType": "INT96"},
    ),
    Style(
        "spark-millis",
        "spark",
        MICROS[:1],
        False,
        {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    ),
]
BY_NAME = {style.name: style for style in STYLES}


def write(
    style: Style,
    variant: str,
    path: Path,
    spark: Callable[[], SparkSession],
    *,
    filters: bool = True,
) -> Path:
    """Write the rows of `variant` to `path` in this style; `spark` starts the session where it is
    needed."""
    rows = table(style.kinds, variant)
    if style.writer == "pyarrow":
        _write_pyarrow(style, rows, path, filters)
    elif style.writer == "datafusion":
        _write_datafusion(style, rows, path, filters)
    elif style.writer == "duckdb":
        _write_duckdb(style, rows, variant, path, filters)
    else:
        _write_spark(style, rows, variant, path, spark(), filters)
    return path


def _write_pyarrow(style: Style, rows: pa.Table, path: Path, filters: bool) -> None:
    options: dict[str, Any] = {}
    if filters:
        # a filter on BOOLEAN is an error; leaves have the names of the file
        pq.write_table(rows.slice(0, 0), path)
        leaves = [
            pq.read_metadata(path).schema.column(n)
            for n in range(len(pq.read_metadata(path).schema))
        ]
        options = {
            leaf.path: {"ndv": 200, "fpp": 0.01}
            for leaf in leaves
            if leaf.physical_type != "BOOLEAN"
        }
    with pq.ParquetWriter(
        path,
        rows.schema,
        use_dictionary=style.dictionary,
        bloom_filter_options=options,
        **style.options,
    ) as writer:
        for batch in rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]:
            writer.write_batch(batch)


def _write_datafusion(style: Style, rows: pa.Table, path: Path, filters: bool) -> None:
    from datafusion import ParquetWriterOptions, SessionConfig, SessionContext

    path.unlink(missing_ok=True)
    context = SessionContext(SessionConfig().with_target_partitions(1))
    sizes = (
        {"bloom_filter_ndv": 200, "bloom_filter_fpp": 0.01} if filters else {}
    )  # a size requests filters
    options = ParquetWriterOptions(
        bloom_filter_on_write=filters,
        **sizes,
        dictionary_enabled=style.dictionary,
        max_row_group_size=_rows_per_group(rows),
        **style.options,
    )
    context.from_arrow(rows).write_parquet_with_options(path, options)


def _write_duckdb(style: Style, rows: pa.Table, variant: str, path: Path, filters: bool) -> None:
    import duckdb

    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = true")
        connection.register("rows", rows)
        options = {"FORMAT": "parquet", "WRITE_BLOOM_FILTER": str(filters).lower(), **style.options}
        options["ROW_GROUP_SIZE"] = _rows_per_group(rows)
        options["DICTIONARY_SIZE_LIMIT"] = 100_000 if style.dictionary else 1
        selected = ", ".join(["*", *_select(style.expressions, variant, "[{}][{}]", "//")])
        settings = ", ".join(f"{name} {value}" for name, value in options.items())
        connection.execute(f"COPY (SELECT {selected} FROM rows) TO '{path}' ({settings})")


def _write_spark(
    style: Style, rows: pa.Table, variant: str, path: Path, spark: SparkSession, filters: bool
) -> None:
    settings = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
    settings |= {name: value for name, value in style.options.items() if name.startswith("spark.")}
    options = {
        name: value for name, value in style.options.items() if not name.startswith("spark.")
    }
    options["parquet.enable.dictionary"] = style.dictionary
    options["parquet.block.row.count.limit"] = _rows_per_group(rows)
    if filters:
        options |= {"parquet.bloom.filter.enabled": True, "parquet.bloom.filter.max.bytes": 256}
    session = spark.newSession()  # a session with its own settings
    for name, value in settings.items():
        session.conf.set(name, value)
    with quiet_about_pandas():
        frame = session.createDataFrame(rows)
        frame = frame.selectExpr(
            "*",
            *_select(style.expressions, variant, "element_at(array({}), CAST({} AS INT))", "DIV"),
        )
        folder = path.with_suffix(".folder")
        frame.coalesce(1).write.mode("overwrite").options(**options).parquet(str(folder))
    (part,) = folder.glob("part-*.parquet")
    part.rename(path)


def _rows_per_group(rows: pa.Table) -> int:
    return max(1, len(rows["n"].chunk(0)))


def _select(
    expressions: tuple[Expression, ...], variant: str, element: str, divide: str
) -> list[str]:
    """Return SQL for these columns; `element` takes an element of a list by its number, from 1;
    `divide` divides integers."""
    columns = []
    for expression in expressions:
        sql = expression.sql
        if variant == "extremes" and expression.extremes:
            number = f"1 + (n + n {divide} {NULL_EVERY}) % {len(expression.extremes)}"
            sql = element.format(", ".join(expression.extremes), number)
        null = (
            "false"
            if not expression.nullable
            else "true"
            if variant == "nulls"
            else f"n % {NULL_EVERY} = 3"
        )
        columns.append(f"CASE WHEN {null} THEN NULL ELSE {sql} END AS {expression.name}")
    return columns
