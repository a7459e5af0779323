"""A reader for `sbbf conformance run`: a query engine, whose rows are the answer. Arguments: the engine, and the file of questions.

It prints `maybe` if the engine returns rows for column = value, `absent` if it returns none, and `cannot say` if it fails or has no such
comparison. It runs alone: `python conformance_engine.py duckdb {questions}`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import engines
from support.corpus_questions import BatchClickHouse, BatchDataFusion, BatchDuckDB, Question

Count = Callable[[Path, Question], int]
NOT_COMPARABLE = ("list", "element", "key_value")


def _write_bytes_as_hexadecimal(engine: Any) -> Any:
    """Let the dialect of an engine take the plain bytes, the second text of a question, for columns that it reads as bytes."""
    dialect = engine.dialect
    literal = dialect.literal

    def write(kind: str, text: str) -> str:
        value, _, plain = text.partition("\0")
        return str(literal(kind, f"0x{plain}" if "Binary" in kind or kind == "BLOB" or "String" in kind else value))

    dialect.literal = write
    return engine


def _count_with_duckdb() -> Count:
    engine = _write_bytes_as_hexadecimal(BatchDuckDB())

    def count(path: Path, question: Question) -> int:
        ((rows,),) = engine._connection.execute(f"SELECT count(*) FROM '{path}' WHERE {engine.condition(path, question)}").fetchall()
        return int(rows)

    return count


def _count_with_datafusion() -> Count:
    engine = _write_bytes_as_hexadecimal(BatchDataFusion())

    def count(path: Path, question: Question) -> int:
        context = engine._context(path, filters=True)
        (row,) = context.sql(f"SELECT count(*) AS rows FROM t WHERE {engine.condition(path, question)}").to_pylist()
        return int(row["rows"])

    return count


def _count_with_clickhouse() -> Count:
    engine = engines.ClickHouse()
    dialect = _write_bytes_as_hexadecimal(BatchClickHouse(engine))

    def count(path: Path, question: Question) -> int:
        query = f"SELECT count() FROM file('{path}', Parquet) WHERE {dialect.condition(path, question)}"
        return int(engine._ask(f"{query} SETTINGS input_format_parquet_bloom_filter_push_down = 1", "TSV"))

    return count


ENGINES = {"duckdb": _count_with_duckdb, "datafusion": _count_with_datafusion, "clickhouse": _count_with_clickhouse}


def answer(count: Count, question: dict[str, Any]) -> str:
    path = [part for part in question["path"] if part not in NOT_COMPARABLE]
    # The text of a half float is the shortest that rounds to it; engines widen the stored value.
    half = "FLOAT16" in question["type"] and str(float(np.frombuffer(bytes.fromhex(question["plain"]), "<f2")[0]))
    value = f"{half or question['value']}\0{question['plain']}"
    if "key_value" in question["path"] or "variant" in question["file"]:
        return "cannot say"
    try:
        rows = count(Path(question["file"]), Question(tuple(path), (value,)))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{question['file']} {value!r:.40}: {error!s:.200}", file=sys.stderr)
        return "cannot say"
    return "maybe" if rows else "absent"


def main(engine: str, questions: str) -> None:
    count = ENGINES[engine]()
    for line in Path(questions).read_text().splitlines():
        print(answer(count, json.loads(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
