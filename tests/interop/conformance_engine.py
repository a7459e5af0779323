"""A reader for `sbbf conformance run`: a query engine, whose rows are the answer. Arguments: the
engine, and the file of questions.

It prints `maybe` if the engine returns rows for column = value, `absent` if it returns none, and
`cannot say` if it fails or has no such comparison. It runs alone: `python conformance_engine.py
duckdb {questions}`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from interop.query_engines import ENGINES, Engine, Question

NOT_COMPARABLE = ("list", "element", "key_value")


def open_engine(name: str) -> Engine:
    """Let the dialect of an engine take the plain bytes, the second text of a question, for columns
    that it reads as bytes."""
    engine: Any = ENGINES[name]()
    literal = engine.dialect.literal

    def write(kind: str, text: str) -> str:
        value, _, plain = text.partition("\0")
        return str(
            literal(
                kind,
                f"0x{plain}" if "Binary" in kind or kind == "BLOB" or "String" in kind else value,
            )
        )

    engine.dialect.literal = write
    return engine


def count_rows(engine: Engine, path: Path, question: Question) -> int:
    query = (
        f"SELECT 0 AS q, count(*) AS n FROM {engine.table(path)} WHERE "
        f"{engine.condition(path, question)}"
    )
    return sum(n for _, n in engine.pairs(path, query))


def answer(engine: Engine, question: dict[str, Any]) -> str:
    path = [part for part in question["path"] if part not in NOT_COMPARABLE]
    # The text of a half float is the shortest that rounds to it; engines widen the stored value.
    half = "FLOAT16" in question["type"] and str(
        float(np.frombuffer(bytes.fromhex(question["plain"]), "<f2")[0])
    )
    value = f"{half or question['value']}\0{question['plain']}"
    if "key_value" in question["path"] or "variant" in question["file"]:
        return "cannot say"
    try:
        rows = count_rows(engine, Path(question["file"]), Question(tuple(path), (value,)))
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"{question['file']} {value!r:.40}: {error!s:.200}", file=sys.stderr)
        return "cannot say"
    return "maybe" if rows else "absent"


def main(engine: str, questions: str) -> None:
    opened = open_engine(engine)
    for line in Path(questions).read_text().splitlines():
        print(answer(opened, json.loads(line)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
