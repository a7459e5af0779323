"""Each writer, given the settings that `advise` emits for it, writes the filters that they
promise."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import advise, inspect
from sbbf_tool.writers.writer import WriterSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.engines

GROUP = 4000
FPP = 0.01


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    """`id` is unique; each `code` occurs twice, so that dictionaries pay; the name `Name` has an
    upper-case letter."""
    random = Random(3)
    codes = [f"code {random.getrandbits(60):x}" for _ in range(3 * GROUP // 2)]
    return pa.table(
        {
            "id": pa.array([random.getrandbits(62) for _ in range(3 * GROUP)], pa.int64()),
            "code": [codes[number // 2] for number in range(3 * GROUP)],
            "Name": [f"{random.getrandbits(60):x}" for _ in range(3 * GROUP)],
            "amount": [random.random() for _ in range(3 * GROUP)],
        }
    )


@pytest.fixture(scope="module")
def path(rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("advised") / "rows.parquet"
    pq.write_table(rows, path, row_group_size=GROUP, use_dictionary=False)
    return path


@pytest.fixture
def emit(path: Path) -> Any:
    def emit_for(writer: str) -> WriterSettings:
        settings = advise(path, writer=writer, engine_names=["clickhouse"]).emit
        assert settings is not None
        return settings

    return emit_for


def assert_filters(
    file: Path, settings: WriterSettings, columns: set[str], *, exact: bool = True
) -> None:
    """Assert that the file has filters of these columns in every row group, of the size that the
    settings promise, at the target."""
    report = inspect(file)
    promised = {entry.column: entry.bitset_bytes for entry in settings.columns}
    assert {row.column for row in report.filters} == columns
    assert len(report.filters) == len(columns) * report.row_groups
    for row in report.filters:
        assert row.bitset_bytes is not None
        assert row.estimated_fpp is not None
        # Small filters vary, and a writer that folds a filter stops at the target.
        assert row.estimated_fpp <= 1.25 * FPP
        most = promised[row.column]
        assert most is not None
        assert row.bitset_bytes == most if exact else row.bitset_bytes <= most


def test_pyarrow(
    emit: Any, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = emit("pyarrow")
    exec(settings.text, {"table": rows.slice(0, GROUP)})
    assert_filters(tmp_path / "data.parquet", settings, {"id", "code", "Name"}, exact=False)


def test_polars_through_pyarrow(
    emit: Any, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars

    monkeypatch.chdir(tmp_path)
    settings = emit("polars")
    frame = polars.from_arrow(rows.slice(0, GROUP))
    exec(settings.text, {"frame": frame})
    assert_filters(tmp_path / "data.parquet", settings, {"id", "code", "Name"}, exact=False)
    assert isinstance(frame, polars.DataFrame)
    frame.write_parquet("plain.parquet")
    assert not any(row.has_filter for row in inspect(tmp_path / "plain.parquet").filters)


def test_duckdb(emit: Any, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    monkeypatch.chdir(tmp_path)
    settings = emit("duckdb")
    with duckdb.connect() as connection:
        connection.register("my_table", rows.select(["id", "code", "Name"]).slice(0, GROUP))
        connection.execute(settings.text)
        assert_filters(tmp_path / "data.parquet", settings, {"id", "code", "Name"})
        # Without the limit, columns with many values have no dictionary, and so no filter.
        connection.execute("COPY my_table TO 'usual.parquet' (FORMAT parquet)")
        assert {row.column for row in inspect("usual.parquet").filters} < {"id", "code", "Name"}


def test_datafusion(
    emit: Any, rows: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datafusion = pytest.importorskip("datafusion", reason="datafusion is not installed")
    monkeypatch.chdir(tmp_path)
    settings = emit("datafusion")
    assert any(note.startswith("cannot be set for Name: ") for note in settings.notes)
    context = datafusion.SessionContext()
    context.register_record_batches("my_table", [rows.slice(0, GROUP).to_batches()])
    context.sql(settings.text.replace(";", "")).collect()
    assert_filters(tmp_path / "data.parquet", settings, {"id", "code"}, exact=False)
    # What the note says: the option of a name with an upper-case letter has no effect.
    context.sql(
        "COPY my_table TO 'upper.parquet' STORED AS PARQUET OPTIONS "
        "('format.bloom_filter_enabled::Name' 'true')"
    ).collect()
    assert not inspect("upper.parquet").filters


@pytest.mark.nightly(3)
def test_spark(
    emit: Any, path: Path, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = emit("spark")
    frame = spark.read.parquet(str(path)).limit(GROUP).coalesce(1)
    exec(settings.text.replace('"data"', repr(str(tmp_path / "data"))), {"df": frame})
    (file,) = (tmp_path / "data").glob("*.parquet")
    # Chunks of `code` are dictionary-encoded, of which the notes speak.
    assert any("all dictionary-encoded" in note for note in settings.notes)
    assert_filters(file, settings, {"id", "Name"})


@pytest.mark.nightly(3)
def test_properties_of_parquet_java(
    emit: Any, path: Path, spark: SparkSession, tmp_path: Path
) -> None:
    settings = emit("parquet-java")
    writer = spark.read.parquet(str(path)).limit(GROUP).coalesce(1).write
    for line in settings.text.splitlines():
        if not line.startswith("#"):
            writer = writer.option(*line.split("=", 1))
    writer.parquet(str(tmp_path / "data"))
    (file,) = (tmp_path / "data").glob("*.parquet")
    assert_filters(file, settings, {"id", "Name"})
