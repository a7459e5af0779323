"""hyparquet, the reader for browsers, with `useBloomFilters`: the same rows with our filters and
without, and fewer bytes fetched.

It runs in Node; npm installs the version that `hyparquet/package.json` names.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from interop.corpus_pairs import Pair, PairMaker
from sbbf_tool import add_filters
from support.environments import NotInstallableError, install_npm
from support.tables import each

pytestmark = [pytest.mark.engines, pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]

WRITERS = ["pyarrow-plain", "datafusion", "duckdb", "spark-plain"]
PROGRAM = Path(__file__).parent / "hyparquet"

INTEGERS, LONGS = {"i8", "i16", "i32", "u8", "u16", "u32"}, {"i64", "u64"}
FLOATS, TEXTS, BYTES = (
    {"f32", "f64", "f32_zero", "f64_zero"},
    {"text", "short", "bits", "bignum"},
    {"blob", "fixed4"},
)
USED = INTEGERS | LONGS | FLOATS | TEXTS | BYTES
"""Columns of types for which hyparquet queries filters: no times, no decimals, no UUIDs."""

Query = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="session")
def query(tmp_path_factory: pytest.TempPathFactory) -> Query:
    """`query(path, questions, bloom=...)`: the rows and the fetched bytes of each question."""
    try:
        installed = install_npm("hyparquet", (PROGRAM / "package.json").read_text())
    except NotInstallableError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("hyparquet")
    for name in ("package.json", "query.mjs"):
        shutil.copy(PROGRAM / name, folder)
    (folder / "node_modules").symlink_to(installed / "node_modules")

    def run(
        path: Path, questions: list[dict[str, Any]], *, bloom: bool = True, utf8: bool = False
    ) -> list[dict[str, Any]]:
        request = json.dumps(
            {"path": str(path), "bloom": bloom, "utf8": utf8, "questions": questions}
        )
        done = subprocess.run(
            ["node", "query.mjs"],
            cwd=folder,
            input=request,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    return run


def value(column: str, text: str) -> Any:
    """A text of the corpus as the JSON that `query.mjs` revives."""
    if column in INTEGERS:
        return int(text)
    if column in LONGS:
        return {"int": text}
    if column in FLOATS:
        return float(text)
    return {"hex": text[2:]} if column in BYTES else text


def columns_of(pair: Pair) -> list[str]:
    return sorted(path[0] for path in pair.stored if len(path) == 1 and path[0] in USED)


@each("writer", WRITERS[:3], heavy=WRITERS[3:])
def test_the_same_rows(query: Query, pairs: PairMaker, writer: str) -> None:
    pair = pairs(writer, "hyparquet")
    chance = random.Random(20261121)
    questions, present = [], []
    for number in range(100):
        column = columns_of(pair)[number % len(columns_of(pair))]
        many, there = chance.random() < 0.5, chance.random() < 0.5
        texts = chance.choices(pair.absent[column,], k=chance.choice([2, 5, 12]) if many else 1)
        if there:
            texts[0] = chance.choice(pair.stored[column,])
        questions.append(
            {"column": column, "values": [value(column, text) for text in texts], "many": many}
        )
        present.append(there)

    before, after = query(pair.before, questions), query(pair.after, questions)

    assert [entry["rows"] for entry in before] == [entry["rows"] for entry in after]
    assert [
        question
        for question, there, answer in zip(questions, present, before, strict=True)
        if there and not answer["rows"]
    ] == []


def test_bytes_that_are_no_text_are_lost_when_queried_as_text(query: Query, tmp_path: Path) -> None:
    """hyparquet 1.31 decodes unannotated bytes to text by default (`utf8`), compares the text, and
    hashes that text's bytes: where decoding loses something, a query for the text that it shows
    finds no row.
    """
    before, after = tmp_path / "before.parquet", tmp_path / "after.parquet"
    pq.write_table(pa.table({"n": [0, 1], "blob": [b"\xff", b"text"]}), before)
    add_filters(before, ["blob"], output=after)
    questions = [{"column": "blob", "values": ["\ufffd"]}, {"column": "blob", "values": ["text"]}]

    assert [answer["rows"] for answer in query(before, questions, utf8=True)] == [[0], [1]]
    assert [answer["rows"] for answer in query(after, questions, utf8=True)] == [[], [1]]
    assert query(after, [{"column": "blob", "values": [{"hex": "ff"}]}])[0]["rows"] == [0]
