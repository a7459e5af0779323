"""Engines, each in a process of its own: what runs show of filters, and crashes, hangs and
failures."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from extensions.engine_runs.questions import absent_value, present_value
from sbbf_tool import UsageError, add_filters
from sbbf_tool.cli import run as run_cli
from sbbf_tool.extensions.engine_runs import catalog, run_engines
from sbbf_tool.extensions.engine_runs.measure import (
    Job,
    QueryCondition,
    RowDigest,
    count_row_groups,
)
from sbbf_tool.extensions.engine_runs.process import run_jobs
from sbbf_tool.extensions.engine_runs.reports import EngineRunsReport
from sbbf_tool.file.parquet_file import ParquetFile
from support.delta_logs import add, metadata, protocol, write_version
from support.json_schemas import validate
from support.tables import each

engines = pytest.mark.engines

PRUNING = {"duckdb", "datafusion", "clickhouse", "spark"}
INSTALLED = [engine.id for engine in catalog.RUNNABLE.values() if engine.is_installed]
FIXTURES = Path(__file__).parents[3] / "fixtures"
WITH_FILTERS = FIXTURES / "pyarrow-filters.parquet"


def need(*names: str) -> list[str]:
    """The engines of these that are installed; skips if there is none."""
    installed = [name for name in names if name in INSTALLED]
    if not installed:
        pytest.skip(f"none of {', '.join(names)} is installed")
    return installed


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A file whose filters have no bit set: they exclude every value."""
    path = tmp_path / "broken.parquet"
    shutil.copy(WITH_FILTERS, path)
    with ParquetFile.open(path) as file, path.open("r+b") as stream:
        for number in range(file.footer.num_row_groups):
            for column in file.footer.columns:
                if (stored := file.stored_filter(number, column)) is not None:
                    stream.seek(stored.end - stored.header.num_bytes)
                    stream.write(bytes(stored.header.num_bytes))
    return path


@engines
@each(
    "name",
    [name for name in INSTALLED if name != "spark"],
    heavy=[name for name in INSTALLED if name == "spark"],
)
def test_a_type_that_engines_use(name: str) -> None:
    before = hashlib.sha256(WITH_FILTERS.read_bytes()).digest()
    report = run_engines(WITH_FILTERS, "id", absent_value(WITH_FILTERS, "id"), name)

    (run,) = report.engines
    assert (report.exit_code, run.outcome, run.reason) == (0, "equal", None)
    assert run.with_filters is not None
    assert run.with_filters.rows == 0
    assert run.uses_filters == (name in PRUNING)
    assert run.evidence == ("metric" if name in PRUNING else "zeroed pages")
    if name in PRUNING:
        assert run.without_filters is not None
        assert (run.without_filters.row_groups_read, run.with_filters.row_groups_read) == (4, 0)
        assert run.with_filters.bytes_read is not None
    assert (report.row_groups, report.filters, report.excluded_by_filters) == (4, 4, 4)
    assert hashlib.sha256(WITH_FILTERS.read_bytes()).digest() == before


@pytest.mark.heavy
@engines
@pytest.mark.slow
def test_spark_leaves_out_columns_of_types_that_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need("spark")
    path = tmp_path / "half.parquet"
    rows = {
        "id": range(0, 2000, 2),
        "half": pa.array([np.float16(n % 9) for n in range(1000)]),
        "name": ["x"] * 1000,
    }
    pq.write_table(pa.table(rows), path, row_group_size=250, use_dictionary=False)
    add_filters(path, ["id"], in_place=True, fpp=1e-6)

    assert run_cli(["explain", str(path), "id", "501", "--run", "spark"]) == 0
    assert (
        "Spark: equal rows, without column half, whose type it cannot read; it uses the filters "
        "and skips" in capsys.readouterr().out
    )
    (run,) = run_engines(path, "half", 3.0, "spark").engines
    assert run.outcome == "failed"
    assert run.reason is not None
    assert "FLOAT16" in run.reason


@engines
def test_a_note_says_why_nothing_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ",".join(need("duckdb"))
    path = tmp_path / "numbers.parquet"
    pq.write_table(
        pa.table({"id": range(0, 2000, 2), "other": range(1000)}),
        path,
        row_group_size=500,
        use_dictionary=False,
    )
    add_filters(path, ["id"], in_place=True, fpp=1e-6)
    rule = (
        "note: whether an engine uses the filters shows on row groups that min and max "
        "leave, and dictionaries if it reads them"
    )
    between = (
        "query a value that is not stored, but between min and max of the row groups, "
        "or another column"
    )

    for column, value, note in (
        ("id", "5001", f"{rule}, and here they leave none: {between}"),
        (
            "id",
            "1002",
            f"{rule}, and the filters exclude none of these 1: query a value that is not stored",
        ),
        (
            "other",
            "5",
            "note: column other has no filters, so there is nothing to measure: add filters to "
            "it, or query another column",
        ),
    ):
        assert run_cli(["explain", str(path), column, value, "--run", names]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert re.fullmatch(
            r"\d filters?; .* [0-2] row groups? more than min, max and dictionaries, "
            r"which not every engine queries",
            lines[1],
        )
        assert lines[2] == note
    assert run_engines(path, "id", 501, names.split(",")).note is None


@engines
@pytest.mark.heavy
@each("column", ["dec38", "u64", "at_utc"])
def test_stored_values_of_other_types(column: str) -> None:
    path = FIXTURES / "pyarrow-types-filters.parquet"
    report = run_engines(
        path,
        column,
        present_value(path, column),
        need("duckdb", "datafusion", "clickhouse", "polars", "pyarrow"),
    )

    assert [
        (run.outcome, run.with_filters and run.with_filters.rows) for run in report.engines
    ] == [("equal", 1)] * len(report.engines)


@engines
def test_the_command_fails_loudly_for_false_negatives(
    broken: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = need("duckdb", "datafusion", "pyarrow")
    arguments = [
        "explain",
        str(broken),
        "id",
        str(present_value(broken, "id")),
        "--run",
        ",".join(names[:2]),
        "--run",
        names[-1],
    ]
    assert run_cli([*arguments, "--format", "json"]) == 1

    output = capsys.readouterr()
    document = json.loads(output.out)
    validate(document)
    assert [run["engine"] for run in document["engines"]] == names
    assert "WRONG RESULT with filters: 0 rows with filters, 1 without" in output.err
    assert run_cli([*arguments[:4], "--run", "pyarrow"]) == 0
    assert "it does not use the filters, shown by zeroed pages" in capsys.readouterr().out


def write_table_files(table: Path) -> None:
    """Write two files with filters, with the numbers below 2000 and 4000 that are multiples of 2
    and 4, and one without the column."""
    for step in (2, 4):
        rows = pa.table({"id": range(0, 1000 * step, step), "n": range(1000)})
        pq.write_table(rows, table / f"{step}.parquet", row_group_size=250, use_dictionary=False)
        add_filters(table / f"{step}.parquet", ["id"], in_place=True, fpp=1e-6)


@pytest.mark.heavy
@engines
@each("name", ["clickhouse", "polars", "pyarrow"])
def test_engines_read_delta_tables(name: str, tmp_path: Path) -> None:
    deltalake = pytest.importorskip(
        "deltalake", reason="the Python package deltalake is not installed"
    )
    need(name)
    table = tmp_path / "table"
    table.mkdir()
    write_table_files(table)
    deltalake.convert_to_deltalake(str(table))
    deltalake.write_deltalake(
        table, pa.table({"n": pa.array([7])}), mode="append", schema_mode="merge"
    )
    deltalake.DeltaTable(table).delete(
        "id = 2"
    )  # a file without filters takes the place of the first
    before = {path: path.stat() for path in table.rglob("*")}

    report = run_engines(table, "id", 501, name)
    (run,) = report.engines
    assert (report.table_format, report.exit_code, run.outcome, run.reads) == (
        "Delta",
        0,
        "equal",
        "table",
    )
    evidence = "metric" if name in PRUNING else "zeroed pages"
    assert (run.uses_filters, run.evidence, report.filters) == (name in PRUNING, evidence, 4)
    (run,) = run_engines(table, "id", 2, name).engines
    assert (run.outcome, run.reads, run.with_filters and run.with_filters.rows) == (
        "equal",
        "table",
        0,
    )
    (run,) = run_engines(table, "id", 1004, name).engines
    assert (run.outcome, run.reads, run.with_filters and run.with_filters.rows) == (
        "equal",
        "table",
        2,
    )
    assert {path: path.stat().st_mtime_ns for path in table.rglob("*")} == {
        path: stat.st_mtime_ns for path, stat in before.items()
    }


@engines
def test_columns_that_a_table_renames(tmp_path: Path) -> None:
    """ClickHouse reads the table; the others read its files, where the column has another name."""
    names = need("clickhouse", "duckdb", "datafusion")
    write_table_files(tmp_path)
    mapping = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "id"}
    fields = [{"name": "key", "type": "long", "nullable": True, "metadata": mapping}]
    files = [
        add(f"{step}.parquet", size=(tmp_path / f"{step}.parquet").stat().st_size)
        for step in (2, 4)
    ]
    write_version(
        tmp_path, 0, protocol(2, 5), metadata({"delta.columnMapping.mode": "name"}, fields), *files
    )

    report = run_engines(tmp_path, "key", 1004, names)
    assert (report.exit_code, report.column) == (0, "key")
    assert [
        (run.outcome, run.with_filters and run.with_filters.rows) for run in report.engines
    ] == [("equal", 2)] * len(names)
    assert {run.engine: run.reads for run in report.engines} == {
        name: "table" if name == "clickhouse" else "files" for name in names
    }


@pytest.mark.slow
def test_engines_that_are_not_installed_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        catalog, "find_spec", lambda module: None if module in ("chdb", "datafusion") else object()
    )

    with pytest.raises(
        UsageError,
        match="none of the named query engines is installed; install one: ClickHouse: pip "
        "install chdb",
    ):
        run_engines(WITH_FILTERS, "id", 1, ["clickhouse"])
    with pytest.raises(UsageError, match="no query engine was named"):
        run_engines(WITH_FILTERS, "id", 1, [])
    report = run_engines(WITH_FILTERS, "id", 1, ["clickhouse", "pyarrow"])
    assert [run.outcome for run in report.engines] == ["not installed", "equal"]
    assert report.engines[0].install == "pip install chdb"
    assert report.exit_code == 0
    assert isinstance(report, EngineRunsReport)
    assert report.to_arrow().column("outcome").to_pylist() == ["not installed", "equal"]
    assert run_cli(["explain", str(WITH_FILTERS), "id", "1", "--run", "datafusion,pyarrow"]) == 0
    assert (
        "DataFusion is not installed; to install it: pip install datafusion"
        in capsys.readouterr().err
    )


pytestmark = pytest.mark.slow


def jobs(*names: str) -> list[Job]:
    return [Job(name, [], []) for name in names]


def test_a_crash_or_failure_ends_one_job() -> None:
    answers = run_jobs(
        "extensions.engine_runs.odd_engine:Driver",
        QueryCondition(["c"], "1", "."),
        jobs("first", "crash", "fail", "exit", "last"),
        120,
    )

    assert answers.version == "1.0"
    assert answers.measurements.keys() == {"first", "last"}
    assert answers.measurements["last"]["rows"] == 1
    assert answers.measurements["first"]["digest"] == answers.measurements["last"]["digest"]
    assert answers.errors["crash"] == "the engine crashed (SIGSEGV)"
    assert answers.errors["fail"] == "cannot read this"
    assert answers.errors["exit"] == "the engine ended with exit code 7: noise on standard error"


@each("value, outcome, exit_code", [("same", "equal", 0), ("differ", "rows differ", 1)])
def test_rows_are_compared_by_their_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, outcome: str, exit_code: int
) -> None:
    monkeypatch.setattr(catalog.Runnable, "driver", "extensions.engine_runs.odd_engine:Driver")
    path = tmp_path / "f.parquet"
    pq.write_table(pa.table({"c": ["differ", "same"]}), path)

    report = run_engines(path, "c", value, "pyarrow")

    (run,) = report.engines
    assert (run.outcome, report.exit_code) == (outcome, exit_code)
    if exit_code:
        assert run.reason == "the same number of rows (1) has other values with filters"


def test_a_job_that_hangs_is_ended() -> None:
    answers = run_jobs(
        "extensions.engine_runs.odd_engine:Driver", QueryCondition(["c"], "1", "."), jobs("hang"), 4
    )

    assert answers.measurements == {}
    assert "no answer within 4 seconds" in {answers.start_error, answers.errors.get("hang")}


def test_an_engine_that_does_not_start_answers_nothing() -> None:
    answers = run_jobs(
        "extensions.engine_runs.odd_engine:Driver",
        QueryCondition(["c"], "no start", "."),
        jobs("first"),
        120,
    )

    assert answers.start_error == "there is no engine here"
    assert (answers.measurements, answers.errors) == ({}, {})


@pytest.mark.engines
def test_rows_of_a_type_without_python_values_are_an_error_that_names_it(tmp_path: Path) -> None:
    """DataFusion reads an INTERVAL column as Arrow's day-time intervals, for whose arrays pyarrow
    has no class."""
    duckdb, datafusion = pytest.importorskip("duckdb"), pytest.importorskip("datafusion")
    path = tmp_path / "f.parquet"
    duckdb.sql(f"COPY (SELECT INTERVAL 1 DAY AS v) TO '{path}' (FORMAT parquet)")
    context = datafusion.SessionContext()
    context.register_parquet("t", str(path))
    plan = context.sql("SELECT * FROM t").execution_plan()
    with pytest.raises(TypeError, match=r"no Python values for one of the column types .*interval"):
        RowDigest().add_batches(batch.to_pyarrow() for batch in context.execute(plan, 0))


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
def test_rows_are_counted_as_row_groups(
    rows: int, sizes: list[list[int]], expected: int | None
) -> None:
    assert count_row_groups(rows, sizes) == expected
