"""The same rows with our filters and without, in every engine that is installed here, for random
queries of columns of every type.

`before` is a file without filters, as its writer left it; `after` is the output of `add_filters`.
The queried values are stored, or absent and between minimum and maximum. `test_queries_faults.py`
has the rows that an engine loses by its own defects.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest
from _pytest.mark import ParameterSet

from interop.corpus_pairs import Pair, PairMaker
from interop.query_engines import AnyEngine, Question

pytestmark = [pytest.mark.engines, pytest.mark.timeout(1800)]

WRITERS = ["pyarrow-plain", "datafusion", "duckdb", "spark-plain"]
PRUNERS = ["duckdb", "datafusion", "clickhouse", "spark"]
SEED = 20261121

UNQUERYABLE = {"variant", "cube", "points", "tree", "array"}
"""Columns that no engine compares with a literal."""

CANNOT_ASK = {
    "duckdb": {"geometry"},
    "datafusion": {"span"},
    "clickhouse": {"geometry", "span", "json"},
    "spark": {"months", "elapsed"},
    "pyarrow": {"dict", "words", "span", "f16", "f16_zero"},
    "polars": {"dict", "words", "dec76", "json"},
}
"""Columns whose type the engine cannot be given a literal of."""

OUT_OF_RANGE = {
    "duckdb": r"^(1677|2262)-",
    "datafusion": r"^24:",
    "clickhouse": r"^(0001|1582|1677|2262|9999)-",
    "spark": r"^$",
}
"""Extremes of times that the engine has no literal for."""

LOSES = {"duckdb": {"f16", "f16_zero", "dec76"}}
"""Columns of which the engine loses rows by its own fault: see `test_queries_faults.py`."""


def askable(engine: AnyEngine, pair: Pair) -> list[tuple[str, ...]]:
    """Return the leaves that the engine can query; a map's by the path of its values."""
    left_out = UNQUERYABLE | CANNOT_ASK[engine.name]
    return sorted(
        path for path in pair.stored if path[0] not in left_out and path != ("dict", "key")
    )


def question(path: tuple[str, ...], texts: tuple[str, ...], *, many: bool) -> Question:
    if path == ("dict", "value"):  # the corpus has the value n under the key "kn"
        return Question(("dict",), texts, many, key=f"k{texts[0]}")
    return Question(path, texts[:1] if path == ("words",) else texts, many and path != ("words",))


def random_questions(
    engine: AnyEngine, pair: Pair, count: int, seed: int
) -> Iterator[tuple[Question, bool]]:
    """Questions, and whether at least one row must be found. Half are `=`, half IN, half of each
    for something that is stored."""
    chance = random.Random(seed)
    leaves = [path for path in askable(engine, pair) if path[0] not in LOSES.get(engine.name, ())]
    for number in range(count):
        path = leaves[number % len(leaves)]
        stored, absent = pair.stored[path], pair.absent.get(path) or pair.stored[path]
        many, present = chance.random() < 0.5, chance.random() < 0.5
        texts = chance.choices(absent, k=chance.choice([2, 3, 5, 12]) if many else 1)
        if present:
            texts[0] = chance.choice(stored)
        yield question(path, tuple(texts), many=many), present


def check(engine: AnyEngine, pair: Pair, count: int, seed: int) -> None:
    asking = list(random_questions(engine, pair, count, seed))
    questions = [question for question, _ in asking]

    before, after = engine.answers(pair.before, questions), engine.answers(pair.after, questions)

    differences = [
        question for question, was, now in zip(questions, before, after, strict=True) if was != now
    ]
    assert differences == []
    empty = [
        question
        for (question, present), answer in zip(asking, before, strict=True)
        if present and not answer
    ]
    assert empty == [], (
        "the engine does not find a stored value even without filters: the query is wrong"
    )


def with_writers(*engines: str) -> list[ParameterSet]:
    """Return every engine with every writer; two of them for Spark, which takes ten times as
    long."""
    heavy = [pytest.mark.heavy]
    cases = []
    for engine in engines:
        if engine == "spark":
            cases.append(pytest.param(engine, WRITERS[::3], id=engine, marks=heavy))
            continue
        marks = heavy if engine in ("clickhouse", "polars") else []
        cases.append(pytest.param(engine, WRITERS[:3], id=engine, marks=marks))
        cases.append(pytest.param(engine, WRITERS[3:], id=f"{engine}, files of Spark", marks=heavy))
    return cases


@pytest.mark.parametrize(
    ("engine", "writers"), with_writers(*PRUNERS, "pyarrow", "polars"), indirect=["engine"]
)
def test_the_same_rows(engine: AnyEngine, pairs: PairMaker, writers: list[str]) -> None:
    """Over all engines and writers 800 questions."""
    for writer in writers:
        check(engine, pairs(writer, engine.name), 20 if engine.name == "spark" else 40, SEED)


@pytest.mark.parametrize(("engine", "writers"), with_writers(*PRUNERS), indirect=["engine"])
def test_the_same_rows_for_extremes(
    engine: AnyEngine, pairs: PairMaker, writers: list[str]
) -> None:
    """Each stored value in a query of its own: least and greatest of each type, both zeros, NaNs,
    empty strings, the end of the day."""
    for writer in writers:
        check_extremes(engine, pairs(writer, engine.name, "extremes"))


def check_extremes(engine: AnyEngine, pair: Pair) -> None:
    left_out = LOSES.get(engine.name, set()) | {"dict", "words"}
    questions = [
        question(path, (text,), many=False)
        for path in askable(engine, pair)
        for text in sorted(set(pair.stored[path]))
        if path[0] not in left_out and not re.search(OUT_OF_RANGE[engine.name], text)
    ]
    if engine.name == "spark":
        questions = questions[::4]  # a question takes it ten times as long as the others

    before, after = engine.answers(pair.before, questions), engine.answers(pair.after, questions)

    assert [
        entry for entry, was, now in zip(questions, before, after, strict=True) if was != now
    ] == []
    assert sum(map(bool, before)) > 0.8 * len(questions)
