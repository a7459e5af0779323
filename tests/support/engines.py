"""Seven readers of Parquet with one interface, and for four of them a way to count the row groups that they read.

    rows(path, column, operand)              the rows of the file whose `column` equals `operand`, or is IN it if it is a list
    row_groups_read(path, column, operand)   the number of row groups that the engine decoded for this: `Scan(read, total)`

Engines count their reads in different units: DuckDB and DataFusion count row groups, Spark and ClickHouse count rows. Everything
else that may skip a row group (dictionaries, column indexes, and minimum and maximum where possible) is switched off, so that
with a value inside every row group's range any difference between `read` and `total` comes from Bloom filters.

Columns are top-level ones. Values are sent as the column's own type: most engines cast a float column that is compared with a
double, for example, and then query no filter.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sbbf_tool.spark.session import quiet_about_pandas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Scan(NamedTuple):
    """The number of row groups that an engine decoded, and the number in the file."""

    read: int
    total: int


class Engine(Protocol):
    """A reader that returns the matching rows of a file in the file's order and schema."""

    name: str

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table: ...


class PruningEngine(Engine, Protocol):
    """An engine that skips row groups by their Bloom filters. `filters=False` disables that where the engine can."""

    can_ignore_filters: bool

    def row_groups_read(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> Scan: ...


class DuckDB:
    """Reads filters whatever the settings, reports scanned row groups in the profile, and has a function that queries filters directly."""

    name = "duckdb"
    can_ignore_filters = False

    def __init__(self) -> None:
        import duckdb

        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'; SET threads = 1")  # several threads hand out rows in any order

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        query, parameters = self._select(path, column, operand)
        return _in_schema_of(path, self._connection.sql(query, params=parameters).to_arrow_table())

    def row_groups_read(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> Scan:
        assert filters, "DuckDB has no setting to ignore Bloom filters"
        query, parameters = self._select(path, column, operand)
        ((_, profile),) = self._connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", parameters).fetchall()
        counts = json.loads(profile)["query"]
        return Scan(counts["total_row_groups_scanned"], counts["total_row_groups_to_scan"])

    def _select(self, path: Path, column: str, operand: Any) -> tuple[str, list[Any]]:
        columns = self._connection.execute("DESCRIBE FROM read_parquet(?)", [str(path)]).fetchall()
        kind = next(column_type for name, column_type, *_ in columns if name == column)
        condition = _condition(operand, [f"CAST(? AS {kind})"] * len(_values(operand)))
        return f'FROM read_parquet(?) WHERE "{column}" {condition}', [str(path), *_values(operand)]


class DataFusion:
    """Reports how many row groups each means of pruning examined and kept."""

    name = "datafusion"
    can_ignore_filters = True

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        _, frame = self._matching(path, column, operand)
        return _in_schema_of(path, frame.to_arrow_table())

    def row_groups_read(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> Scan:
        context, frame = self._matching(path, column, operand, filters=filters)
        plan = frame.execution_plan()
        for _ in context.execute(plan, 0):
            pass
        (scan,) = (metrics for operator, metrics in plan.collect_metrics() if operator.startswith("DataSourceExec"))
        total = pruned_groups = 0
        for metric in scan.metrics():
            if metric.name in ("row_groups_pruned_statistics", "row_groups_pruned_bloom_filter"):
                before, after = map(int, re.findall(r"\d+", str(metric)))  # "4 total → 1 matched"
                total = max(total, before)
                pruned_groups += before - after
        return Scan(total - pruned_groups, total)

    def _matching(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> tuple[Any, Any]:
        from datafusion import SessionConfig, SessionContext, col, functions, lit

        settings = {"datafusion.execution.parquet.bloom_filter_on_read": str(filters).lower()}
        context = SessionContext(SessionConfig(settings).with_target_partitions(1))
        literals = [lit(value) for value in _typed(path, column, operand)]
        condition = functions.in_list(col(f'"{column}"'), literals) if _is_list(operand) else col(f'"{column}"') == literals[0]
        return context, context.read_parquet(path).filter(condition)


class Spark:
    """parquet-java behind Spark's vectorized reader, which counts every row of a row group that it did not skip."""

    name = "spark"
    can_ignore_filters = True

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        with quiet_about_pandas():
            return _in_schema_of(path, self._matching(path, column, operand).toArrow())

    def row_groups_read(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> Scan:
        frame = self._matching(path, column, operand, filters=filters)
        frame.collect()
        scan = frame._jdf.queryExecution().executedPlan().collectLeaves().apply(0)  # the metrics have no public API
        return _row_groups_holding(path, scan.metrics().apply("numOutputRows").value())

    def _matching(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> DataFrame:
        from pyspark.sql.functions import col, lit

        reader = self._session.read.option("parquet.filter.bloom.enabled", filters)
        for means in ("stats", "dictionary", "columnindex"):
            reader = reader.option(f"parquet.filter.{means}.enabled", False)
        frame = reader.parquet(str(path))
        literals = [lit(value).cast(frame.schema[column].dataType) for value in _values(operand)]
        return frame.where(col(f"`{column}`").isin(literals) if _is_list(operand) else col(f"`{column}`") == literals[0])


class ClickHouse:
    """ClickHouse inside this process (chdb).

    A row group that a Bloom filter rules out still counts in its event `ParquetReadRowGroups`; the rows on which the condition
    was computed, `ParquetRowsFilterExpression`, are exact. Its cache of footers is off: these tests rewrite files.
    """

    name = "clickhouse"
    can_ignore_filters = True

    def __init__(self) -> None:
        from chdb.session import Session

        self._session = Session()
        for setting in (
            "input_format_parquet_filter_push_down = 0",
            "input_format_parquet_dictionary_filter_push_down = 0",
            "input_format_parquet_page_filter_push_down = 0",
            "input_format_parquet_preserve_order = 1",
            "use_parquet_metadata_cache = 0",
            "output_format_arrow_compression_method = 'none'",
            "output_format_arrow_string_as_string = 0",
        ):
            self._session.query(f"SET {setting}")

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        return _in_schema_of(path, pa.ipc.open_stream(self._select(path, column, operand, filters=True)).read_all())

    def row_groups_read(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> Scan:
        before = self._rows_compared()
        self._select(path, column, operand, filters=filters)
        return _row_groups_holding(path, self._rows_compared() - before)

    def close(self) -> None:
        self._session.close()

    def _rows_compared(self) -> int:
        return int(self._ask("SELECT sum(value) FROM system.events WHERE event = 'ParquetRowsFilterExpression'", "TSV"))

    def _select(self, path: Path, column: str, operand: Any, *, filters: bool) -> bytes:
        source = "file({path:String}, Parquet)"
        kind = self._ask(f"SELECT toTypeName(`{column}`) FROM {source} LIMIT 1", "TSVRaw", path=str(path)).decode().strip()
        parameters, literals = {"path": str(path)}, []
        for number, value in enumerate(_values(operand)):
            if isinstance(value, bytes):
                parameters[f"value{number}"] = value.hex()
                literals.append(f"unhex({{value{number}:String}})")
            else:
                parameters[f"value{number}"] = str(value).removesuffix("+00:00")
                literals.append(f"{{value{number}:{kind}}}")
        condition = _condition(operand, literals)
        settings = f"input_format_parquet_bloom_filter_push_down = {int(filters)}"
        return self._ask(f"SELECT * FROM {source} WHERE `{column}` {condition} SETTINGS {settings}", "ArrowStream", **parameters)

    def _ask(self, query: str, answer_format: str, **parameters: str) -> bytes:
        try:
            return self._session.query(query, answer_format, params=parameters).bytes()
        except RuntimeError:  # sessions raise another class than chdb.ChdbError
            self._session.query("SELECT 1", "Null")  # chdb 4.4 prefixes the next answer with the start of the failed one
            raise


class PyArrow:
    """Prunes by statistics only."""

    name = "pyarrow"

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        values = _typed(path, column, operand)
        condition = pc.field(column).isin(values) if _is_list(operand) else pc.field(column) == values[0]
        return _in_schema_of(path, ds.dataset(path).to_table(filter=condition))


class Polars:
    """Prunes by statistics only."""

    name = "polars"

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        import polars as pl

        frame = pl.scan_parquet(path)
        values = pl.Series(_values(operand), dtype=frame.collect_schema()[column])
        condition = pl.col(column).is_in(values.implode()) if _is_list(operand) else pl.col(column) == values[0]
        return _in_schema_of(path, frame.filter(condition).collect().to_arrow())


class FastParquet:
    """Prunes by statistics only.

    The file is opened here because it leaves open what it opens itself, and a single value is queried with IN because its `==`
    stumbles over nulls in a column of integers.
    """

    name = "fastparquet"

    def rows(self, path: Path, column: str, operand: Any) -> pa.Table:
        from fastparquet import ParquetFile

        with path.open("rb") as file:
            frame = ParquetFile(file).to_pandas(filters=[[(column, "in", _values(operand))]], row_filter=True)
        return pa.Table.from_pandas(frame, pq.read_schema(path).remove_metadata(), preserve_index=False)


def _is_list(operand: Any) -> bool:
    return isinstance(operand, list)


def _values(operand: Any) -> list[Any]:
    return operand if _is_list(operand) else [operand]


def _typed(path: Path, column: str, operand: Any) -> pa.Array:
    return pa.array(_values(operand), pq.read_schema(path).field(column).type)


def _condition(operand: Any, literals: list[str]) -> str:
    """Return the right side of a comparison in SQL."""
    return f"IN ({', '.join(literals)})" if _is_list(operand) else f"= {literals[0]}"


def _in_schema_of(path: Path, table: pa.Table) -> pa.Table:
    """Cast the rows to the schema of the file, because engines return other types of strings and bytes and other nullability."""
    return table.cast(pq.read_schema(path).remove_metadata()).combine_chunks()


def _row_groups_holding(path: Path, rows: int) -> Scan:
    """Convert a count of rows to a count of row groups, which must be of equal size."""
    metadata = pq.read_metadata(path)
    sizes = {metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)}
    (size,) = sizes
    assert rows % size == 0, f"{rows} rows are not whole row groups of {size}"
    return Scan(rows // size, metadata.num_row_groups)
