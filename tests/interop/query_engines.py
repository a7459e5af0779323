"""Six readers of Parquet with one interface, and for two of them a way to count the row groups that
they read.

    answers(path, questions)     for each question the sorted `n` of the rows that satisfy it
    scan(path, question)         the number of row groups that DuckDB or DataFusion decoded, as
                                 `Scan(read, total)`

A question is a condition on one leaf: `=` or IN for scalars and for leaves of structs, "contains"
for lists, the value under a key for maps. Values are text, and are cast to the type that the engine
says the column has: most engines cast a float column that is compared with a double, for example,
and then query no filter.

Everything else that may skip a row group (dictionaries, column indexes, and minimum and maximum
where possible) is off.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sbbf_tool.extensions.engine_runs.dialects import (
    ClickHouseDialect,
    DataFusionDialect,
    DuckDBDialect,
    SparkDialect,
    SqlDialect,
    parse_texts,
)
from sbbf_tool.writers.writer import write_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 40
"""Conditions in one statement: a union of as many scans, each with its own condition pushed
down."""


class Scan(NamedTuple):
    """The number of row groups that an engine decoded, and the number in the file."""

    read: int
    total: int


class Question(NamedTuple):
    """A condition: the leaf equals the value, or one of them where `many`; values are text. `key`
    is the key of a map."""

    path: tuple[str, ...]
    texts: tuple[str, ...]
    many: bool = False
    key: str | None = None


class Engine(ABC):
    """An engine with SQL: the package's dialect, and the values of maps. A column's type is queried
    once."""

    name: ClassVar[str]
    dialect: ClassVar[SqlDialect]

    def __init__(self) -> None:
        self._types: dict[tuple[Path, str], str] = {}

    @abstractmethod
    def type_of(self, path: Path, expression: str) -> str: ...

    @abstractmethod
    def pairs(self, path: Path, query: str) -> Iterable[tuple[int, int]]:
        """Run a query for the numbers of question and row."""

    def table(self, path: Path) -> str:
        return "t"

    def condition(self, path: Path, question: Question) -> str:
        column = self.dialect.reference(question.path)
        if question.key is not None:
            column = f"{self.dialect.reference(question.path[:1])}[{write_sql(question.key)}]"
        if (path, column) not in self._types:
            self._types[path, column] = self.type_of(path, column)
        return self.dialect.condition(
            column, self._types[path, column], question.texts, many=question.many
        )

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in questions]
        for start, query in self._queries(path, questions):
            for number, n in self.pairs(path, query):
                rows[start + number].append(n)
        return [sorted(row) for row in rows]

    def _queries(self, path: Path, questions: Sequence[Question]) -> Iterator[tuple[int, str]]:
        for start in range(0, len(questions), AT_ONCE):
            conditions = [
                self.condition(path, question) for question in questions[start : start + AT_ONCE]
            ]
            table = self.table(path)
            yield (
                start,
                " UNION ALL ".join(
                    f"SELECT {q} AS q, n FROM {table} WHERE {text}"
                    for q, text in enumerate(conditions)
                ),
            )


class DuckDB(Engine):
    """Reads filters whatever the settings, and reports scanned row groups in the profile."""

    name = "duckdb"
    dialect = DuckDBDialect()

    def __init__(self) -> None:
        import duckdb

        super().__init__()
        self.connection = duckdb.connect()
        for setting in ("TimeZone = 'UTC'", "threads = 1", "autoinstall_known_extensions = false"):
            with suppress(
                duckdb.Error
            ):  # TimeZone needs an extension that some releases do not include
                self.connection.execute(f"SET {setting}")

    def table(self, path: Path) -> str:
        return f"'{path}'"

    def type_of(self, path: Path, expression: str) -> str:
        ((kind,),) = self.connection.execute(
            f"SELECT column_type FROM (DESCRIBE SELECT {expression} FROM '{path}')"
        ).fetchall()
        return str(kind)

    def pairs(self, path: Path, query: str) -> list[tuple[int, int]]:
        return self.connection.execute(query).fetchall()

    def scan(self, path: Path, question: Question) -> Scan:
        condition = self.condition(path, question)
        ((_, profile),) = self.connection.execute(
            f"EXPLAIN (ANALYZE, FORMAT JSON) FROM '{path}' WHERE {condition}"
        ).fetchall()
        counts = json.loads(profile)["query"]
        return Scan(counts["total_row_groups_scanned"], counts["total_row_groups_to_scan"])


class DataFusion(Engine):
    """Reports how many row groups each means of pruning examined and kept."""

    name = "datafusion"
    dialect = DataFusionDialect()

    def context(self, path: Path) -> Any:
        from datafusion import SessionContext

        context = SessionContext(self._config())
        context.register_parquet("t", str(path))
        return context

    def _config(self) -> Any:
        from datafusion import SessionConfig

        for name in (
            "bloom_filter_on_read",
            "bloom_filter_enabled",
        ):  # the latter in old releases, where it is off by default
            try:
                return SessionConfig(
                    {
                        f"datafusion.execution.parquet.{name}": "true",
                        "datafusion.execution.target_partitions": "1",
                    }
                )
            except BaseException as error:  # a panic of Rust
                if isinstance(error, KeyboardInterrupt):
                    raise
        return SessionConfig()

    def type_of(self, path: Path, expression: str) -> str:
        (row,) = (
            self.context(path)
            .sql(f"SELECT arrow_typeof({expression}) AS kind FROM t LIMIT 1")
            .to_pylist()
        )
        return str(row["kind"])

    def pairs(self, path: Path, query: str) -> Iterator[tuple[int, int]]:
        return ((row["q"], row["n"]) for row in self.context(path).sql(query).to_pylist())

    def scan(self, path: Path, question: Question) -> Scan:
        condition = self.condition(path, question)
        context = self.context(path)
        plan = context.sql(f"SELECT * FROM t WHERE {condition}").execution_plan()
        for _ in context.execute(plan, 0):
            pass
        (metrics,) = (
            metrics
            for operator, metrics in plan.collect_metrics()
            if operator.startswith("DataSourceExec")
        )
        total = pruned_groups = 0
        for metric in metrics.metrics():
            if metric.name in ("row_groups_pruned_statistics", "row_groups_pruned_bloom_filter"):
                before, after = map(int, re.findall(r"\d+", str(metric)))  # "4 total → 1 matched"
                total = max(total, before)
                pruned_groups += before - after
        return Scan(total - pruned_groups, total)


class Spark(Engine):
    """parquet-java behind Spark's vectorized reader."""

    name = "spark"
    dialect = SparkDialect()
    disabled: tuple[str, ...] = ("stats", "dictionary", "columnindex")
    """What prunes beside filters, and is turned off."""

    def __init__(self, session: SparkSession) -> None:
        super().__init__()
        self._session = session.newSession()
        self._frames: dict[Path, DataFrame] = {}
        # For so few rows it takes longer to compile a plan than to interpret it.
        self._session.conf.set("spark.sql.codegen.wholeStage", False)

    def table(self, path: Path) -> str:
        """The file's schema is read once."""
        if path not in self._frames:
            reader = self._session.read
            for means in self.disabled:
                reader = reader.option(f"parquet.filter.{means}.enabled", False)
            self._frames[path] = reader.parquet(str(path))
        self._frames[path].createOrReplaceTempView("t")
        return "t"

    def type_of(self, path: Path, expression: str) -> str:
        self.table(path)
        return str(self._frames[path].selectExpr(expression).schema[0].dataType.simpleString())

    def pairs(self, path: Path, query: str) -> Iterator[tuple[int, int]]:
        return ((row["q"], row["n"]) for row in self._session.sql(query).collect())


class ClickHouse(Engine):
    """ClickHouse inside this process (chdb). Its cache of footers is off: these tests rewrite
    files."""

    name = "clickhouse"
    dialect = ClickHouseDialect()
    settings: tuple[str, ...] = tuple(
        f"input_format_parquet_{means}_push_down = 0"
        for means in ("filter", "dictionary_filter", "page_filter")
    )

    def __init__(self) -> None:
        from chdb.session import Session

        super().__init__()
        self._session = Session()
        for setting in ("use_parquet_metadata_cache = 0", *self.settings):
            with suppress(Exception):  # a setting of other releases
                self.lines(f"SET {setting}")

    def close(self) -> None:
        self._session.close()

    def table(self, path: Path) -> str:
        return f"file('{path}', Parquet)"

    def lines(self, query: str, answer_format: str = "TSV") -> list[str]:
        try:
            return self._session.query(query, answer_format).bytes().decode().splitlines()
        except Exception:  # its class depends on the release
            self._session.query(
                "SELECT 1", "Null"
            )  # chdb 4.4 prefixes the next answer with the start of the failed one
            raise

    def type_of(self, path: Path, expression: str) -> str:
        (answer,) = self.lines(
            f"SELECT toTypeName({expression}) FROM {self.table(path)} LIMIT 1", "TSVRaw"
        )
        return re.sub(r"^Nullable\((.*)\)$", r"\1", answer)

    def pairs(self, path: Path, query: str) -> Iterator[tuple[int, int]]:
        return ((int(q), int(n)) for q, n in (line.split("\t") for line in self.lines(query)))


class PyArrow:
    """Prunes by statistics only, and by no leaf of a list or map."""

    name = "pyarrow"

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        data = ds.dataset(path)
        return [
            sorted(data.to_table(["n"], filter=self._condition(data, question))["n"].to_pylist())
            for question in questions
        ]

    def _condition(self, data: Any, question: Question) -> pc.Expression:
        values = parse_texts(question.texts, _leaf_type(data.schema, question.path))
        column = pc.field(*question.path)
        return column.isin(values) if question.many else column == values[0]


class Polars:
    """Prunes by statistics only."""

    name = "polars"

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        import polars as pl

        schema = pq.read_schema(path)
        frames = []
        for question in questions:
            values = pl.Series(
                pl.from_arrow(parse_texts(question.texts, _leaf_type(schema, question.path)))
            )
            column = pl.col(question.path[0])
            for name in question.path[1:]:
                column = column.struct.field(name)
            is_old = [int(number) for number in pl.__version__.split(".")[:2]] < [1, 30]
            if question.many:
                condition = column.is_in(values if is_old else values.implode())
            else:
                # Only a literal that is no series prunes by bounds.
                kind = pl.scan_parquet(path).select(column).collect_schema().dtypes()[0]
                condition = column == (pl.lit(values) if is_old else _polars_literal(values, kind))
            frames.append(pl.scan_parquet(path).filter(condition).select("n"))
        return [sorted(frame["n"].to_list()) for frame in pl.collect_all(frames)]


def _polars_literal(values: Any, kind: Any) -> Any:
    """Return the one value of a series as a literal of the column's type: text where Polars reads
    text and pyarrow bytes, and times as their number of units, because Python's have no
    nanoseconds."""
    import polars as pl

    if kind == pl.String:
        values = values.cast(kind)
    item = values.to_physical() if values.dtype.is_temporal() else values
    return pl.lit(item.item(), dtype=values.dtype)


AnyEngine = Engine | PyArrow | Polars
ENGINES: dict[str, Callable[[], AnyEngine]] = {
    "duckdb": DuckDB,
    "datafusion": DataFusion,
    "clickhouse": ClickHouse,
    "pyarrow": PyArrow,
    "polars": Polars,
}
"""All but Spark, which needs a session."""


def _leaf_type(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind
