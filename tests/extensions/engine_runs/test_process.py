"""An engine in a process of its own: crashes, hangs and failures are answers, and the other jobs run."""

from __future__ import annotations

from pathlib import Path

import pytest

from sbbf_tool.extensions.engine_runs.measure import Job, Request, Rows, count_row_groups
from sbbf_tool.extensions.engine_runs.process import run_jobs
from support.tables import each

pytestmark = pytest.mark.slow


def jobs(*names: str) -> list[Job]:
    return [Job(name, [], []) for name in names]


def test_a_crash_or_failure_ends_one_job() -> None:
    answers = run_jobs("support.odd_engine", Request(["c"], "1", "."), jobs("first", "crash", "fail", "exit", "last"), 120)

    assert answers.version == "1.0"
    assert answers.measurements.keys() == {"first", "last"}
    assert answers.measurements["last"]["rows"] == 1
    assert answers.measurements["first"]["digest"] == answers.measurements["last"]["digest"]
    assert answers.errors["crash"] == "the engine crashed (SIGSEGV)"
    assert answers.errors["fail"] == "cannot read this"
    assert answers.errors["exit"] == "the engine ended with exit code 7: noise on standard error"


def test_a_job_that_hangs_is_ended() -> None:
    answers = run_jobs("support.odd_engine", Request(["c"], "1", "."), jobs("hang"), 4)

    assert answers.measurements == {}
    assert "no answer within 4 seconds" in {answers.start_error, answers.errors.get("hang")}


def test_an_engine_that_does_not_start_answers_nothing() -> None:
    answers = run_jobs("support.odd_engine", Request(["c"], "no start", "."), jobs("first"), 120)

    assert answers.start_error == "there is no engine here"
    assert (answers.measurements, answers.errors) == ({}, {})


def test_modules_of_the_caller_hide_none_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "types.py").write_text("raise RuntimeError('hidden')\n")
    monkeypatch.syspath_prepend(tmp_path)
    answers = run_jobs("support.odd_engine", Request(["c"], "1", "."), jobs("first"), 120)

    assert (answers.start_error, answers.measurements.keys()) == (None, {"first"})


@pytest.mark.engines
def test_rows_of_a_type_without_python_values_are_an_error_that_names_it(tmp_path: Path) -> None:
    """DataFusion reads an INTERVAL column as Arrow's day-time intervals, for whose arrays pyarrow has no class."""
    duckdb, datafusion = pytest.importorskip("duckdb"), pytest.importorskip("datafusion")
    path = tmp_path / "f.parquet"
    duckdb.sql(f"COPY (SELECT INTERVAL 1 DAY AS v) TO '{path}' (FORMAT parquet)")
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    plan = context.sql("SELECT * FROM t").execution_plan()
    with pytest.raises(TypeError, match=r"no Python values for one of the column types .*interval"):
        Rows().add_batches(batch.to_pyarrow() for batch in context.execute(plan, 0))


@each(
    "rows, sizes, expected",
    [
        (0, [[100, 100]], 0),
        (200, [[100, 100, 100, 30]], 2),
        (130, [[100, 100, 100, 30]], 2),
        (150, [[100, 100, 100, 30]], None),
        (100, [[100], [50, 50]], None),  # one row group or two
        (160, [[100, 30], [100, 60]], 2),
        (400, [[100], [100], [100, 100, 0]], 4),
    ],
)
def test_rows_are_counted_as_row_groups(rows: int, sizes: list[list[int]], expected: int | None) -> None:
    assert count_row_groups(rows, sizes) == expected
