"""Program that puts questions to one query engine: `python program.py ENGINE QUESTIONS ANSWERS`.

It runs in an environment that has the engine and pyarrow, and no other dependency of this package. Both files have one line of JSON per
question; an answer has the numbers of the rows that the engine returns, or the error that it raises. The first line of the answers has the
version of the engine. An engine that crashes or hangs leaves the answers before it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from sbbf_tool.extensions.engine_runs import dialects
from sbbf_tool.query_engines.terms import EQUAL, NULL_SAFE

REPOSITORY = Path(__file__).parents[2]
_LETTERS = 160


class NoPredicateError(Exception):
    """The engine has no such predicate."""


class _SqlEngine:
    """An engine with a dialect; subclasses run a condition, and return the type of the column as the engine names it."""

    dialect: dialects.SqlDialect
    null_safe = "{column} IS NOT DISTINCT FROM {literal}"

    def rows(self, question: dict[str, Any]) -> list[int]:
        column, kind, texts = self.dialect.reference(["v"]), self.type_of(question["sound_file"]), question["texts"]
        if question["predicate"] == NULL_SAFE:
            condition = self.null_safe.format(column=column, literal=self.dialect.literal(kind, texts[0]))
        else:
            condition = self.dialect.condition(column, kind, texts, many=question["predicate"] != EQUAL)
        return self.select(question["file"], condition)

    def type_of(self, path: str) -> str:
        raise NotImplementedError

    def select(self, path: str, condition: str) -> list[int]:
        raise NotImplementedError


class DuckDB(_SqlEngine):
    dialect = dialects.DuckDBDialect()

    def __init__(self) -> None:
        import duckdb

        self.version = duckdb.__version__
        self._connection = duckdb.connect()
        for setting in ("TimeZone = 'UTC'", "threads = 1", "autoinstall_known_extensions = false"):
            try:
                self._connection.execute(f"SET {setting}")
            except duckdb.Error:  # TimeZone needs an extension that some releases do not include
                continue

    def type_of(self, path: str) -> str:
        ((kind,),) = self._connection.execute(f"SELECT column_type FROM (DESCRIBE SELECT v FROM '{path}')").fetchall()
        return str(kind)

    def select(self, path: str, condition: str) -> list[int]:
        return [n for (n,) in self._connection.execute(f"SELECT n FROM '{path}' WHERE {condition}").fetchall()]


class DataFusion(_SqlEngine):
    dialect = dialects.DataFusionDialect()

    def __init__(self) -> None:
        self.version = version("datafusion")

    def type_of(self, path: str) -> str:
        (row,) = self._context(path).sql("SELECT arrow_typeof(v) AS kind FROM t LIMIT 1").to_pylist()
        return str(row["kind"])

    def select(self, path: str, condition: str) -> list[int]:
        return [row["n"] for row in self._context(path).sql(f"SELECT n FROM t WHERE {condition}").to_pylist()]

    def _context(self, path: str) -> Any:
        from datafusion import SessionContext

        context = SessionContext(self._config())
        context.register_parquet("t", path)
        return context

    def _config(self) -> Any:
        from datafusion import SessionConfig

        for name in ("bloom_filter_on_read", "bloom_filter_enabled"):  # the latter in old releases, where it is off by default
            try:
                return SessionConfig({f"datafusion.execution.parquet.{name}": "true", "datafusion.execution.target_partitions": "1"})
            except BaseException as error:  # a panic of Rust
                if isinstance(error, KeyboardInterrupt):
                    raise
        return SessionConfig()


class Spark(_SqlEngine):
    dialect = dialects.SparkDialect()
    null_safe = "{column} <=> {literal}"

    def __init__(self) -> None:
        import pyspark
        from pyspark.sql import SparkSession

        self.version = pyspark.__version__
        builder = SparkSession.builder.master("local[1]")
        for name, value in {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.driver.host": "localhost",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.warehouse.dir": os.path.abspath("warehouse"),
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.timeType.enabled": "true",
            "spark.sql.adaptive.enabled": "false",
        }.items():
            builder = builder.config(name, value)
        self._session = builder.getOrCreate()
        self._session.sparkContext.setLogLevel("OFF")

        self._frames: dict[str, Any] = {}

    def type_of(self, path: str) -> str:
        return str(self._frame(path).schema["v"].dataType.simpleString())

    def select(self, path: str, condition: str) -> list[int]:
        return [row["n"] for row in self._frame(path).where(condition).select("n").collect()]

    def _frame(self, path: str) -> Any:
        if path not in self._frames:  # a job of its own reads the schema
            self._frames[path] = self._session.read.parquet(path)
        return self._frames[path]


class ClickHouse(_SqlEngine):
    dialect = dialects.ClickHouseDialect()

    def __init__(self) -> None:
        from chdb import session

        self._session = session.Session()
        self.version = ".".join(self._ask("SELECT version()").split(".")[:3])
        for setting in ("use_parquet_metadata_cache = 0", "input_format_parquet_bloom_filter_push_down = 1", "session_timezone = 'UTC'"):
            try:
                self._ask(f"SET {setting}")
            except RuntimeError:  # a setting of other releases
                continue

    def type_of(self, path: str) -> str:
        kind = self._ask(f"SELECT toTypeName(v) FROM file('{path}', Parquet) LIMIT 1").strip()
        return kind.removeprefix("Nullable(").removesuffix(")") if kind.startswith("Nullable(") else kind

    def select(self, path: str, condition: str) -> list[int]:
        answer = self._ask(f"SELECT n FROM file('{path}', Parquet) WHERE {condition}")
        return [int(line) for line in answer.splitlines()]

    def _ask(self, query: str) -> str:
        try:
            return str(self._session.query(query, "TSVRaw").bytes().decode())
        except Exception as error:
            self._session.query("SELECT 1", "Null")  # chdb 4.4 prefixes the next answer with the start of the failed one
            raise RuntimeError(str(error)) from error


class Polars:
    def __init__(self) -> None:
        import polars

        self.version = polars.__version__

    def rows(self, question: dict[str, Any]) -> list[int]:
        import polars as pl

        values = pl.Series(pl.from_arrow(_parse(question)))
        column = pl.col("v")
        if question["predicate"] == NULL_SAFE:
            condition = column.eq_missing(pl.lit(values))
        elif question["predicate"] == EQUAL:
            condition = column == pl.lit(values)
        else:
            is_old = [int(number) for number in pl.__version__.split(".")[:2]] < [1, 30]
            condition = column.is_in(values if is_old else values.implode())
        frame = pl.scan_parquet(question["file"]).filter(condition).select("n").collect()
        return [int(n) for n in frame["n"].to_list()]


class PyArrow:
    def __init__(self) -> None:
        import pyarrow

        self.version = pyarrow.__version__

    def rows(self, question: dict[str, Any]) -> list[int]:
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        values, column = _parse(question), pc.field("v")
        if question["predicate"] == NULL_SAFE:
            raise NoPredicateError
        condition = column.isin(values) if question["predicate"] != EQUAL else column == values[0]
        return [int(n) for n in ds.dataset(question["file"]).to_table(["n"], filter=condition)["n"].to_pylist()]


class FastParquet:
    def __init__(self) -> None:
        self.version = version("fastparquet")

    def rows(self, question: dict[str, Any]) -> list[int]:
        from fastparquet import ParquetFile

        if question["predicate"] == NULL_SAFE:
            raise NoPredicateError
        values = _parse(question).to_pylist()
        with open(question["file"], "rb") as file:
            frame = ParquetFile(file).to_pandas(filters=[[("v", "in", values)]], row_filter=True)
        return [int(n) for n in frame["n"]]


class Hyparquet:
    """Runs in Node, in the current folder, which has its package."""

    def __init__(self) -> None:
        package = json.loads(Path("node_modules/hyparquet/package.json").read_text())
        self.version = package["version"]
        shutil.copy(REPOSITORY / "tests" / "interop" / "hyparquet" / "query.mjs", "query.mjs")
        self._node = self._start()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(["node", "query.mjs"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)

    def rows(self, question: dict[str, Any]) -> list[int]:
        if question["predicate"] == NULL_SAFE:
            raise NoPredicateError
        values = [_json_value(question["type"], text) for text in question["texts"]]
        query = {"column": "v", "values": values, "many": question["predicate"] != EQUAL}
        request = {"path": question["file"], "bloom": True, "questions": [query]}
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        print(json.dumps(request), file=self._node.stdin, flush=True)
        line = self._node.stdout.readline()
        if not line:
            self._node = self._start()
            raise RuntimeError("Node ended")
        answers = json.loads(line)
        if "error" in answers:
            raise RuntimeError(answers["error"])
        return [int(n) for n in answers[0]["rows"]]


def _json_value(type_name: str, text: str) -> Any:
    """Return the value as JSON that `query.mjs` revives."""
    physical, _, logical = type_name.partition(" ")
    if physical == "BOOLEAN":
        return text == "true"
    if logical.startswith("DECIMAL") or physical in ("FLOAT", "DOUBLE") or logical == "FLOAT16":
        return float(text)
    if logical.startswith(("DATE", "TIMESTAMP")) or physical == "INT96":
        return {"date": text}
    if physical in ("INT32", "INT64") and (not logical or logical.startswith("INT")):
        return int(text) if physical == "INT32" else {"int": text}
    if logical == "UUID":
        return str(uuid.UUID(text[2:]))
    if logical == "ENUM":
        return {"hex": text.encode().hex()}
    return {"hex": text[2:]} if text.startswith("0x") else text


def _parse(question: dict[str, Any]) -> Any:
    import pyarrow.parquet as pq

    return dialects.parse_texts(question["texts"], pq.read_schema(question["file"]).field("v").type)


ENGINES: dict[str, Callable[[], Any]] = {
    "duckdb": DuckDB,
    "datafusion": DataFusion,
    "spark": Spark,
    "clickhouse": ClickHouse,
    "hyparquet": Hyparquet,
    "polars": Polars,
    "pyarrow": PyArrow,
    "fastparquet": FastParquet,
}


def answer(engine: Any, question: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"rows": sorted(engine.rows(question))}
    except NoPredicateError:
        return {"error": "no such predicate"}
    except BaseException as error:  # pyo3's panics are no exceptions
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"[:_LETTERS]}


def main(name: str, questions: str, answers: str) -> None:
    warnings.simplefilter("ignore")
    engine = ENGINES[name]()
    if isinstance(engine, _SqlEngine):
        engine.type_of = cache(engine.type_of)  # type: ignore[method-assign]
    with open(questions) as lines, open(answers, "w", buffering=1) as output:
        print(json.dumps({"version": engine.version}), file=output)
        for line in lines:
            print(json.dumps(answer(engine, json.loads(line))), file=output)
    os._exit(0)  # some engines crash or wait when they end in order


if __name__ == "__main__":
    main(*sys.argv[1:])
