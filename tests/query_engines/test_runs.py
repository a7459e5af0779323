"""The matrix of engines: the committed runs agree with the installed engines, and the table of
engines with the runs."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from engine_matrix import run_file
from engine_matrix.bounds import UNBOUNDED, judge_bounds, make_bounds_questions
from engine_matrix.environments import PACKAGES
from engine_matrix.outcomes import judge, put_questions
from engine_matrix.questions import (
    ABSENT,
    STORED,
    WITH,
    WITHOUT,
    Question,
    digest_of,
    make_questions,
)
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.engine_runs.catalog import RUNNABLE
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.statistics import bounds_by_form
from sbbf_tool.query_engines.runs import ReleaseRun, numbers_of, read_runs
from sbbf_tool.query_engines.table import parse_table, read_families
from sbbf_tool.query_engines.terms import CANNOT_COMPARE, EQUAL, FAILS, IN, LOSES_ROWS, UNUSED, USED
from sbbf_tool.query_engines.verdicts import find_release
from sbbf_tool.verbs.engines import engines
from sbbf_tool.verbs.probe import probe
from support.tables import each

FAMILIES = [family.id for family in read_families()]
FAST = ["duckdb", "datafusion", "clickhouse", "polars", "pyarrow", "fastparquet"]
"""Engines that answer all questions within seconds."""


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[Question]:
    return make_questions(tmp_path_factory.mktemp("matrix"))


class TestQuestions:
    def test_every_family_but_the_last_is_queried(self, questions):
        assert {question.family for question in questions} == set(FAMILIES[:-1])

    def test_the_files_are_the_same_every_time(self, questions, tmp_path):
        assert digest_of(make_questions(tmp_path)) == digest_of(questions)

    def test_filters_exclude_absent_values_only(self, questions):
        for question in questions:
            if (
                question.filters == WITH
                and question.predicate == IN
                and question.kind not in ("boolean", "int96")
            ):
                assert probe(question.file, "v", question.texts, filters_only=True).is_absent == (
                    question.role == ABSENT
                ), question


class TestCommittedRuns:
    """`runs.toml` is up to date with the questions, the releases and the installed engines."""

    def test_they_are_of_these_questions(self, questions):
        assert tomllib.loads(run_file.RUNS.read_text())["questions"] == digest_of(questions)

    def test_every_release_of_the_script_was_run(self):
        packages = {run.package for runs in read_runs().values() for run in runs}
        assert packages >= {
            f"{package.name} {release}"
            for package in PACKAGES.values()
            for release in package.releases.split()
        }

    def test_every_engine_that_can_be_installed_was_run(self):
        assert RUNNABLE.keys() <= read_runs().keys() == PACKAGES.keys()
        assert all(
            engine.evidence != "run" or engine.releases or engine.id == "parquet-java"
            for engine in engines().engines
        )

    @pytest.mark.engines
    @each("engine", FAST[:1], heavy=FAST[1:])
    def test_an_installed_engine_does_what_its_run_says(self, engine, questions, tmp_path):
        pytest.importorskip(RUNNABLE[engine].module if engine in RUNNABLE else engine)
        check_installed(engine, Path(sys.executable), questions, tmp_path)

    @pytest.mark.engines
    @pytest.mark.nightly(minutes=5)
    def test_spark_does_what_its_run_says(self, questions, tmp_path):
        pytest.importorskip("pyspark")
        check_installed("spark", Path(sys.executable), questions, tmp_path)

    def test_the_file_has_the_form_that_the_script_writes(self, tmp_path, questions):
        runs = [run for of_engine in read_runs().values() for run in of_engine]
        run_file.write_runs(tmp_path / "runs.toml", digest_of(questions), runs)
        assert (tmp_path / "runs.toml").read_text() == run_file.RUNS.read_text()


class TestBounds:
    """The table states which min and max an engine compares as the installed engine does."""

    @pytest.mark.engines
    @each("engine", FAST[:1], heavy=FAST[1:])
    def test_an_installed_engine_trusts_the_bounds_of_its_table(self, engine, tmp_path):
        pytest.importorskip(RUNNABLE[engine].module if engine in RUNNABLE else engine)
        check_bounds(engine, engine, tmp_path)

    @pytest.mark.engines
    @pytest.mark.nightly(minutes=5)
    def test_spark_trusts_the_bounds_of_its_table(self, tmp_path):
        pytest.importorskip("pyspark")
        check_bounds("spark", "spark-with-bounds", tmp_path)

    def test_files_show_each_form_of_bounds(self, tmp_path):
        """The questions are about the forms that the package distinguishes."""
        for question in make_bounds_questions(tmp_path):
            with ParquetFile.open(question.file) as file:
                forms = set(bounds_by_form(file.footer, 0, file.footer.columns[1]))
            expected = {question.filters} - {UNBOUNDED}
            assert forms <= expected or question.kind == "boolean", question


def check_bounds(engine: str, program: str, folder: Path) -> None:
    questions = make_bounds_questions(folder)
    _, answers = put_questions(program, Path(sys.executable), questions, folder)
    stated = find_release(engine).bounds
    assert stated is not None
    for form, trust in judge_bounds(questions, answers).items():
        assert len(trust.compared) > 8
        assert trust.compared.intersection(getattr(stated, form)) == trust.trusted, form


def check_installed(engine: str, python: Path, questions: Sequence[Question], folder: Path) -> None:
    """Compare an engine with the newest release up to its own that was run, or with the oldest."""
    engine_version, answers = put_questions(engine, python, questions, folder)
    older = [
        run for run in read_runs()[engine] if numbers_of(run.version) <= numbers_of(engine_version)
    ]
    expected = older[-1] if older else read_runs()[engine][0]
    actual = ReleaseRun(engine, engine_version, "", "", judge(questions, answers))
    message = (
        f"{engine} {engine_version} differs from {expected.version}: run "
        "tests/engine_matrix/run.py with this release"
    )
    assert {family: actual.predicates_of(family) for family in FAMILIES} == {
        family: expected.predicates_of(family) for family in FAMILIES
    }, message
    assert {family: actual.outcome_of(family) for family in FAMILIES} == {
        family: expected.outcome_of(family) for family in FAMILIES
    }, message


ROW, NONE, ERROR = {"rows": [1]}, {"rows": []}, {"error": "E"}


@each(
    "stored_with, stored_without, absent_with, absent_without, outcome",
    [
        (ROW, ROW, NONE, ERROR, USED),
        (ROW, ROW, ERROR, ERROR, UNUSED),
        (ROW, ROW, NONE, ROW, USED),
        (ROW, ROW, NONE, NONE, CANNOT_COMPARE),  # nothing shows whether it reads the pages
        (NONE, ROW, NONE, ERROR, LOSES_ROWS),
        (ERROR, ROW, NONE, ERROR, FAILS),
        (ERROR, ERROR, NONE, ERROR, CANNOT_COMPARE),
        (NONE, NONE, NONE, ERROR, CANNOT_COMPARE),
    ],
)
def test_answers_are_judged(stored_with, stored_without, absent_with, absent_without, outcome):
    answers = {
        (STORED, WITH): stored_with,
        (STORED, WITHOUT): stored_without,
        (ABSENT, WITH): absent_with,
        (ABSENT, WITHOUT): absent_without,
    }
    queries = [
        Question(
            "k",
            "int32",
            "INT32",
            EQUAL,
            role,
            filters,
            "",
            "",
            ["v"],
            [1] if role == STORED else [],
        )
        for role, filters in answers
    ]
    # Another type that works, because an engine that answers nothing is an error.
    control = [
        Question(
            "o",
            "int64",
            "INT64",
            EQUAL,
            role,
            filters,
            "",
            "",
            ["v"],
            [1] if role == STORED else [],
        )
        for role, filters in answers
    ]
    judged = judge([*queries, *control], [*answers.values(), ROW, ROW, NONE, ERROR])
    assert judged == {EQUAL: {"int32": outcome, "int64": USED}}


def made_run(
    version: str, *on_int32: str, of_in: Sequence[str] = (), int64: str = USED
) -> ReleaseRun:
    by_predicate = {EQUAL: {"int32": on_int32[0], "int64": int64}} | {
        name: {"int32": USED, "int64": USED} for name in of_in
    }
    return ReleaseRun("duckdb", version, f"duckdb {version}", "2026-11-24", by_predicate)


def table_of(*runs: ReleaseRun, rows: Sequence[dict[str, Any]] = ()) -> Any:
    """Return the report of an engine with these runs, and rows that explain them."""
    row = {"on": ["int32", "int64"], "verdict": "used", "explanation": "It hashes the value."}
    facts = {
        "id": "duckdb",
        "name": "DuckDB",
        "aliases": [],
        "places": ["top"],
        "source": "https://x",
        "default_explanation": "No hash.",
    }
    families = [
        {"id": name, "name": name.upper(), "types": [name.upper()]} for name in ("int32", "int64")
    ]
    return parse_table(
        {"families": families, "engine": [{**facts, "row": [row, *rows]}]}, {"duckdb": runs}
    ).engines[0]


HARM = {
    "on": ["int32"],
    "verdict": "harm",
    "effect": "loses rows",
    "explanation": "it hashed text",
    "fix": "use 3.0",
}


class TestTableFromRuns:
    def test_an_outcome_without_an_explanation_is_rejected(self):
        with pytest.raises(
            ValueError, match=r"duckdb 1.0: loses rows on int32, .* a row explains it"
        ):
            table_of(made_run("1.0", LOSES_ROWS))

    def test_an_explanation_without_a_run_is_rejected(self):
        with pytest.raises(ValueError, match="no run shows"):
            table_of(made_run("1.0", USED), rows=[HARM])

    @each("fact", ["version", "predicates", "evidence"])
    def test_facts_that_runs_show_are_not_stated(self, fact):
        data = tomllib.loads(
            Path(sys.modules[parse_table.__module__].__file__ or "")
            .with_name("engines.toml")
            .read_text()
        )
        next(row for row in data["engine"] if row["id"] == "duckdb")[fact] = "run"
        with pytest.raises(ValueError, match=f"duckdb: runs show {fact}"):
            parse_table(data, read_runs())


class TestReleases:
    @each(
        "text, engine, release",
        [
            ("duckdb-1.4", "duckdb", "1.4.5"),
            ("duckdb-1.4.2", "duckdb", "1.4.0"),
            ("DuckDB 1.5.5", "duckdb", "1.5.5"),
            ("duckdb-99", "duckdb", "2.0.0"),
            ("duckdb", "duckdb", "2.0.0"),
            ("spark-3.5", "spark", "3.5.9"),
            ("pyspark-3.5.9", "spark", "3.5.9"),
            ("chdb-3.7", "clickhouse", "25.8.2"),
            ("clickhouse-25.8", "clickhouse", "25.8.2"),
            ("hyparquet-1.25.8", "hyparquet", "1.25.8"),
            ("trino", "trino", "main of August 2026"),
        ],
    )
    def test_a_release_is_the_newest_up_to_it_that_was_run(self, text, engine, release):
        report = find_release(text)
        assert (report.id, report.version) == (engine, release)

    @each(
        "text, message",
        [
            (
                "duckdb-0.9",
                "DuckDB 0.9 is older than the releases that were run; the oldest is DuckDB 1.1.3",
            ),
            (
                "trino-440",
                "no release of Trino was run; name it without a version, for main of August 2026",
            ),
            (
                "delta-rs-1.0",
                "the versions of delta-rs are not those of DataFusion; "
                "name a version of datafusion",
            ),
            (
                "chdb-1.0",
                "ClickHouse 1.0 is older than the releases that were run; the oldest is chdb 3.1.2",
            ),
            ("xyzzy-1.4", "unknown engine 'xyzzy'; known names: parquet-java, spark"),
        ],
    )
    def test_a_release_that_is_not_known_is_an_error(self, text, message):
        with pytest.raises(UsageError) as caught:
            find_release(text)
        assert f"{caught.value}".startswith(message)
