"""Program that puts questions to one query engine: `python program.py ENGINE QUESTIONS ANSWERS`.

It runs in an environment that has the engine and pyarrow, and no other dependency of this package.
Both files have one line of JSON per question; an answer has the numbers of the rows that the engine
returns, or the error that it raises. The first line of the answers has the version of the engine.
An engine that crashes or hangs leaves the answers before it.
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
sys.path.insert(1, str(Path(__file__).parents[1]))

from interop import query_engines
from sbbf_tool.extensions.engine_runs import dialects
from sbbf_tool.query_engines.terms import EQUAL, NULL_SAFE

_LETTERS = 160


class NoPredicateError(Exception):
    """The engine has no such predicate."""


class _Engine:
    """An engine of the tests of queries, with the column `v`."""

    def __init__(self, engine: query_engines.AnyEngine, engine_version: str) -> None:
        self.version = engine_version
        self._engine = engine

    def rows(self, question: dict[str, Any]) -> list[int]:
        if question["predicate"] == NULL_SAFE:
            return self.rows_of_null_safe(question)
        asked = query_engines.Question(
            ("v",), tuple(question["texts"]), question["predicate"] != EQUAL
        )
        return self._engine.answers(question["file"], [asked])[0]

    def rows_of_null_safe(self, question: dict[str, Any]) -> list[int]:
        raise NoPredicateError


class _SqlEngine(_Engine):
    """An engine with a dialect. The file without filters shows the type of the column."""

    _engine: query_engines.Engine

    null_safe = "{column} IS NOT DISTINCT FROM {literal}"

    def __init__(self, engine: query_engines.Engine, engine_version: str) -> None:
        super().__init__(engine, engine_version)
        self._type_of = cache(engine.type_of)

    def rows(self, question: dict[str, Any]) -> list[int]:
        dialect, texts = self._engine.dialect, question["texts"]
        column, kind = dialect.reference(["v"]), self._type_of(question["sound_file"], "v")
        if question["predicate"] == NULL_SAFE:
            condition = self.null_safe.format(
                column=column, literal=dialect.literal(kind, texts[0])
            )
        else:
            condition = dialect.condition(column, kind, texts, many=question["predicate"] != EQUAL)
        query = f"SELECT 0 AS q, n FROM {self._engine.table(question['file'])} WHERE {condition}"
        return [n for _, n in self._engine.pairs(question["file"], query)]


def start_duckdb() -> _Engine:
    import duckdb

    return _SqlEngine(query_engines.DuckDB(), duckdb.__version__)


class _SparkWithBounds(query_engines.Spark):
    disabled = ()


def start_spark(kind: type[query_engines.Spark] = query_engines.Spark) -> _Engine:
    import pyspark
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "localhost",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.warehouse.dir": os.path.abspath("warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.adaptive.enabled": "false",
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    engine = _SqlEngine(kind(session), pyspark.__version__)
    engine.null_safe = "{column} <=> {literal}"
    return engine


class _ClickHouse(query_engines.ClickHouse):
    settings = ("input_format_parquet_bloom_filter_push_down = 1", "session_timezone = 'UTC'")


def start_clickhouse() -> _Engine:
    engine = _ClickHouse()
    return _SqlEngine(engine, ".".join(engine.lines("SELECT version()")[0].split(".")[:3]))


class Polars(_Engine):
    def __init__(self) -> None:
        super().__init__(query_engines.Polars(), version("polars"))

    def rows_of_null_safe(self, question: dict[str, Any]) -> list[int]:
        import polars as pl

        condition = pl.col("v").eq_missing(pl.lit(pl.Series(pl.from_arrow(_parse(question)))))
        return [
            int(n)
            for n in pl.scan_parquet(question["file"])
            .filter(condition)
            .select("n")
            .collect()["n"]
            .to_list()
        ]


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
        shutil.copy(Path(__file__).parents[1] / "interop" / "hyparquet" / "query.mjs", "query.mjs")
        self._node = self._start()

    def _start(self) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            ["node", "query.mjs"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
        )

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
    "duckdb": start_duckdb,
    "datafusion": lambda: _SqlEngine(query_engines.DataFusion(), version("datafusion")),
    "spark": start_spark,
    "spark-with-bounds": lambda: start_spark(_SparkWithBounds),
    "clickhouse": start_clickhouse,
    "hyparquet": Hyparquet,
    "polars": Polars,
    "pyarrow": lambda: _Engine(query_engines.PyArrow(), version("pyarrow")),
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
    with open(questions) as lines, open(answers, "w", buffering=1) as output:
        print(json.dumps({"version": engine.version}), file=output)
        for line in lines:
            print(json.dumps(answer(engine, json.loads(line))), file=output)
    os._exit(0)  # some engines crash or wait when they end in order


if __name__ == "__main__":
    main(*sys.argv[1:])
