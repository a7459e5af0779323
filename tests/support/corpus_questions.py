"""Queries of the columns of the corpus in each engine's own SQL, many in one statement, and the row groups that the engine reads for one.

A question is a condition on one leaf: `=` or IN for scalars and for leaves of structs, "contains" for lists, the value under a key for
maps. Values are written as `corpus_readers` writes them and cast to the type that the engine says the column has.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from sbbf_tool.extensions.engine_runs.dialects import (
    ClickHouseDialect,
    DataFusionDialect,
    Dialect,
    DuckDBDialect,
    SparkDialect,
    parse_texts,
    quote_text,
)
from support import engines
from support.engines import Scan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 40
"""Conditions in one statement: a union of as many scans, each with its own condition pushed down."""


class Question(NamedTuple):
    """A condition: the leaf equals the value, or one of them where `many`; values are text. `key` is the key of a map."""

    path: tuple[str, ...]
    texts: tuple[str, ...]
    many: bool = False
    key: str | None = None


class BatchEngine(Protocol):
    """An engine that answers batches of questions."""

    @property
    def name(self) -> str: ...

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        """Return for each question the sorted `n` of the rows that satisfy it."""


class BatchPruningEngine(BatchEngine, Protocol):
    def scans(self, path: Path, questions: Sequence[Question]) -> list[Scan]:
        """Return the row groups that were read for each question, run on its own."""


class _Typed(ABC):
    """The SQL of a condition: the package's dialect, and the values of maps. A column's type is queried once."""

    dialect: ClassVar[Dialect]
    under_key = "{column}[{key}]"
    _types: ClassVar[dict[Any, str]] = {}

    @abstractmethod
    def type_of(self, path: Path, expression: str) -> str: ...

    def condition(self, path: Path, question: Question) -> str:
        column = self.dialect.reference(question.path)
        if question.key is not None:
            column = self.under_key.format(column=self.dialect.reference(question.path[:1]), key=quote_text(question.key))
        return self.dialect.condition(column, self._known_type_of(path, column), question.texts, many=question.many)

    def _known_type_of(self, path: Path, expression: str) -> str:
        key = (type(self), path, expression)
        if key not in self._types:
            self._types[key] = self.type_of(path, expression)
        return self._types[key]


def _batches(questions: Sequence[Question]) -> Iterator[Sequence[Question]]:
    for start in range(0, len(questions), AT_ONCE):
        yield questions[start : start + AT_ONCE]


def _sorted(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(count)]
    for number, n in pairs:
        rows[number].append(n)
    return [sorted(row) for row in rows]


def _all_of(questions: Sequence[Question], condition: Callable[[Question], str], table: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {number} AS q, n FROM {table} WHERE {condition(question)}" for number, question in enumerate(questions)
    )


class BatchDuckDB(engines.DuckDB, _Typed):
    dialect = DuckDBDialect()

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        rows = []
        for batch in _batches(questions):
            query = _all_of(batch, lambda question: self.condition(path, question), f"'{path}'")
            rows += _sorted(len(batch), self._connection.execute(query).fetchall())
        return rows

    def scans(self, path: Path, questions: Sequence[Question]) -> list[Scan]:
        return [self.row_groups_read(path, "", self.condition(path, question)) for question in questions]

    def _select(self, path: Path, column: str, operand: Any) -> tuple[str, list[Any]]:
        return f"FROM '{path}' WHERE {operand}", []

    def type_of(self, path: Path, expression: str) -> str:
        ((kind,),) = self._connection.execute(f"SELECT column_type FROM (DESCRIBE SELECT {expression} FROM '{path}')").fetchall()
        return str(kind)


class BatchDataFusion(engines.DataFusion, _Typed):
    dialect = DataFusionDialect()

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        rows = []
        context = self._context(path, filters=True)
        for batch in _batches(questions):
            matches = context.sql(_all_of(batch, lambda question: self.condition(path, question), "t")).to_pylist()
            rows += _sorted(len(batch), ((row["q"], row["n"]) for row in matches))
        return rows

    def scans(self, path: Path, questions: Sequence[Question]) -> list[Scan]:
        return [self.row_groups_read(path, "", self.condition(path, question)) for question in questions]

    def _matching(self, path: Path, column: str, operand: Any, *, filters: bool = True) -> tuple[Any, Any]:
        context = self._context(path, filters=filters)
        return context, context.sql(f"SELECT * FROM t WHERE {operand}")

    def _context(self, path: Path, *, filters: bool) -> Any:
        from datafusion import SessionConfig, SessionContext

        settings = {"datafusion.execution.parquet.bloom_filter_on_read": str(filters).lower()}
        context = SessionContext(SessionConfig(settings).with_target_partitions(1))
        context.register_parquet("t", str(path))
        return context

    def type_of(self, path: Path, expression: str) -> str:
        (row,) = self._context(path, filters=True).sql(f"SELECT arrow_typeof({expression}) AS kind FROM t LIMIT 1").to_pylist()
        return str(row["kind"])


class BatchSpark(engines.Spark, _Typed):
    dialect = SparkDialect()

    def __init__(self, session: SparkSession) -> None:
        super().__init__(session.newSession())
        self._frames: dict[Path, DataFrame] = {}
        # For so few rows it takes longer to compile a plan than to interpret it.
        self._session.conf.set("spark.sql.codegen.wholeStage", False)

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        rows = []
        for batch in _batches(questions):
            matches = self._union(path, batch).collect()
            rows += _sorted(len(batch), ((row["q"], row["n"]) for row in matches))
        return rows

    def scans(self, path: Path, questions: Sequence[Question]) -> list[Scan]:
        """Count as `row_groups_read` does, for all the scans of one union."""
        results = []
        for batch in _batches(questions):
            frame = self._union(path, batch)
            frame.collect()
            leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
            rows = [leaves.apply(number).metrics().apply("numOutputRows").value() for number in range(leaves.size())]
            assert len(rows) == len(batch)
            results += [engines._row_groups_holding(path, count) for count in rows]
        return results

    def _union(self, path: Path, questions: Sequence[Question]) -> DataFrame:
        self._frame(path).createOrReplaceTempView("t")
        return self._session.sql(_all_of(questions, lambda question: self.condition(path, question), "t"))

    def _frame(self, path: Path) -> DataFrame:
        """Pruning by anything but filters is switched off, and the file's schema is read once."""
        if path not in self._frames:
            reader = self._session.read
            for means in ("stats", "dictionary", "columnindex"):
                reader = reader.option(f"parquet.filter.{means}.enabled", False)
            self._frames[path] = reader.parquet(str(path))
        return self._frames[path]

    def type_of(self, path: Path, expression: str) -> str:
        return str(self._frame(path).selectExpr(expression).schema[0].dataType.simpleString())


class BatchClickHouse(_Typed):
    name = "clickhouse"
    dialect = ClickHouseDialect()

    def __init__(self, engine: engines.ClickHouse) -> None:
        self._engine = engine

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        rows = []
        for batch in _batches(questions):
            query = _all_of(batch, lambda question: self.condition(path, question), f"file('{path}', Parquet)")
            lines = self._engine._ask(query, "TSV").decode().splitlines()
            rows += _sorted(len(batch), ((int(q), int(n)) for q, n in (line.split("\t") for line in lines)))
        return rows

    def scans(self, path: Path, questions: Sequence[Question]) -> list[Scan]:
        results = []
        for question in questions:
            before = self._engine._rows_compared()
            self._engine._ask(f"SELECT * FROM file('{path}', Parquet) WHERE {self.condition(path, question)}", "Null")
            results.append(engines._row_groups_holding(path, self._engine._rows_compared() - before))
        return results

    def type_of(self, path: Path, expression: str) -> str:
        answer = self._engine._ask(f"SELECT toTypeName({expression}) FROM file('{path}', Parquet) LIMIT 1", "TSVRaw").decode().strip()
        return re.sub(r"^Nullable\((.*)\)$", r"\1", answer)


class BatchPyArrow:
    """Prunes by statistics only, and by no leaf of a list or map."""

    name = "pyarrow"

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        data = ds.dataset(path)
        return [sorted(data.to_table(["n"], filter=self._condition(data, question))["n"].to_pylist()) for question in questions]

    def _condition(self, data: Any, question: Question) -> pc.Expression:
        values = parse_texts(question.texts, leaf_type(data.schema, question.path))
        column = pc.field(*question.path)
        return column.isin(values) if question.many else column == values[0]


class BatchPolars:
    """Prunes by statistics only."""

    name = "polars"

    def answers(self, path: Path, questions: Sequence[Question]) -> list[list[int]]:
        import polars as pl

        schema = pq.read_schema(path)
        frames = []
        for question in questions:
            values = pl.Series(pl.from_arrow(parse_texts(question.texts, leaf_type(schema, question.path))))
            column = pl.col(question.path[0])
            for name in question.path[1:]:
                column = column.struct.field(name)
            # An item of the series would lose nanoseconds.
            condition = column.is_in(values.implode()) if question.many else column == pl.lit(values)
            frames.append(pl.scan_parquet(path).filter(condition).select("n"))
        return [sorted(frame["n"].to_list()) for frame in pl.collect_all(frames)]


def leaf_type(schema: pa.Schema, path: tuple[str, ...]) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(name).type
    return kind
