"""`spark.read.format("sbbf")` on a local Spark: its rows are what `inspect` and `check` say, and it
opens only the files it needs."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from sbbf_tool import add_filters, check, inspect
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.storage.places import parquet_files
from support.tables import each

pytestmark = pytest.mark.engines

ENCRYPTED = b"PAR1" + bytes(20) + (16).to_bytes(4, "little") + b"PARE"


@pytest.fixture(scope="module")
def read(spark):
    """A read of the format with options."""
    from sbbf_tool.spark import register

    register(spark)

    def read(path, schema=None, **options):
        reader = spark.read.format("sbbf").options(**options)
        return (reader.schema(schema) if schema else reader).load(
            str(path) if isinstance(path, Path) else path
        )

    return read


@pytest.fixture
def lake(tmp_path, fixtures):
    """Two days in folders; the second has a file that is no Parquet file."""
    for day in ("2026-01-01", "2026-01-02"):
        (tmp_path / f"dt={day}").mkdir()
        add_filters(
            fixtures / "events.parquet",
            ["user_id", "session"],
            output=tmp_path / f"dt={day}" / "events.parquet",
        )
    (tmp_path / "dt=2026-01-02" / "broken.parquet").write_bytes(b"PAR1 and no more")
    return tmp_path


def plain(report) -> dict:
    """As Spark gives it: lists for tuples."""
    return json.loads(json.dumps(dataclasses.asdict(report)))


def rows_of(frame) -> list[dict]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def expected_rows(path, **options) -> list[dict]:
    report = plain(inspect(path, **options))
    chunks = report.pop("filters")
    del report["columns"]
    return [{**chunk, **report, "status": "ok", "reason": None} for chunk in chunks]


@each("all_chunks", [False, True], every=2)
def test_rows_are_what_inspect_knows(read, fixtures, all_chunks):
    frame = read(fixtures, all=str(all_chunks))
    # Of files that are encrypted as a whole, the rows say only that.
    rows = [
        row
        for row in rows_of(frame)
        if row["status"] == "ok" and not str(row["file"]).endswith(".encrypted")
    ]
    files = [file for file in parquet_files(str(fixtures)) if not str(file).endswith(".encrypted")]
    expected = [row for file in files for row in expected_rows(file, all_chunks=all_chunks)]
    if all_chunks:  # a file without row groups has a row, too
        empty = plain(inspect(fixtures / "pyarrow-empty.parquet"))
        assert empty["row_groups"] == 0
        place = [row["file"] for row in expected].index(str(fixtures / "pyarrow-encodings.parquet"))
        nothing = dict.fromkeys(frame.columns)
        expected.insert(
            place,
            {
                **nothing,
                **{name: empty[name] for name in empty.keys() & nothing.keys()},
                "status": "ok",
            },
        )
    assert rows == expected
    assert len({row["file"] for row in rows}) > 15


def test_only_the_requested_columns(read, fixtures):
    file = fixtures / "pyarrow-filters.parquet"
    rows = rows_of(
        read(file, schema="bitset_bytes int, column string, estimated_fpp float", columns="id,`k`")
    )
    expected = [(row.bitset_bytes, row.column) for row in inspect(file, ["id", "k"]).filters]
    assert [(row["bitset_bytes"], row["column"]) for row in rows] == expected
    assert all(0 < row["estimated_fpp"] < 0.05 for row in rows)
    rows = rows_of(read(file, columns="id", quick="true"))
    assert {(row["bitset_bytes"], row["estimated_fpp"], row["fill_ratio"]) for row in rows} == {
        (128, None, None)
    }


def test_files_that_cannot_be_read_are_rows(read, tmp_path, fixtures):
    (tmp_path / "a-empty.parquet").touch()
    (tmp_path / "b-cut.parquet").write_bytes((fixtures / "events.parquet").read_bytes()[:-100])
    (tmp_path / "c-encrypted.parquet").write_bytes(ENCRYPTED)
    shutil.copy(fixtures / "spark-96-bytes.parquet", tmp_path / "d.parquet")
    rows = rows_of(read(tmp_path))
    reasons = {Path(row["file"]).name: (row["status"], row["reason"]) for row in rows}
    assert reasons["a-empty.parquet"][0] == reasons["b-cut.parquet"][0] == "failed"
    assert reasons["c-encrypted.parquet"][0] == "refused"
    assert "footer is encrypted" in reasons["c-encrypted.parquet"][1]
    assert all(
        reason and "\n" not in reason for status, reason in reasons.values() if status != "ok"
    )
    assert {row["status"] for row in rows if row["file"].endswith("/d.parquet")} == {"ok"}
    assert len(rows) == 3 + len(inspect(fixtures / "spark-96-bytes.parquet").filters)


def test_errors_may_end_the_query(read, lake):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=r"UnreadableError: .*broken\.parquet"):
        read(lake, errors="fail").collect()


CONDITIONS = [
    "column = 'session'",
    "column in ('session', 'nothing') and row_group = 2",
    "row_group in (0, 1) and column != 'session'",
    "column = 'session' and column = 'user_id'",
    "row_group > 1 or column = 'user_id'",
    "file like '%2026-01-02%' and row_group = 1 and estimated_ndv > 1000",
    "status != 'ok'",
    "column is null",
]


@pytest.mark.heavy
def test_one_frame_gives_the_rows_of_each_condition(spark, read, lake):
    """Spark plans a read once for a frame, so what it pushed for one condition would be there for
    the next."""
    order = ["file", "row_group", "column"]
    everything = spark.createDataFrame(read(lake).collect(), read(lake).schema)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    frame = read(lake)
    try:
        for condition in (*CONDITIONS, *reversed(CONDITIONS)):
            assert rows_of(frame.filter(condition).sort(order)) == rows_of(
                everything.filter(condition).sort(order)
            ), condition
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_where_chooses_files_by_their_folders(read, lake):
    rows = rows_of(read(lake, where="dt < '2026-01-02'", errors="fail"))
    assert {Path(row["file"]).parent.name for row in rows} == {"dt=2026-01-01"}
    assert len(rows) == 6


def test_files_are_packed_into_tasks(read, lake):
    assert read(lake).rdd.getNumPartitions() == 1
    assert read(lake, filesPerTask="1").rdd.getNumPartitions() == 3


def test_a_row_a_finding(read, fixtures):
    file = fixtures / "duckdb-defaults.parquet"
    policy = Policy(select=("efficiency", "under-64-bytes"), ignore=("dictionary-encoded",))
    rows = rows_of(
        read(file, rules="true", select="efficiency,under-64-bytes", ignore="dictionary-encoded")
    )
    assert rows == [
        {**plain(finding), "status": "ok", "reason": None}
        for finding in check(file, policy).findings
    ]
    assert rows


def test_indexes_of_a_paimon_table(read, fixtures):
    inspect_paimon = pytest.importorskip("sbbf_tool.extensions.paimon.verbs.inspect").inspect_paimon
    table = str(fixtures / "paimon" / "orders")
    report = inspect_paimon(table)
    rows = rows_of(read(table, paimon="true"))
    expected = [
        (report.snapshot, file.data_file, plain(index))
        for file in report.files
        for index in file.indexes
    ]
    assert (
        [(row["snapshot"], row["data_file"], row["index"]) for row in rows if row["index"]]
        == expected
        != []
    )
    assert {row["status"] for row in rows} == {"ok"}
    assert {finding["rule"] for row in rows for finding in row["findings"]} <= {
        finding.rule for finding in report.findings
    }
    (row,) = rows_of(read(str(fixtures), paimon="true"))
    assert (row["status"], row["file"]) == ("failed", str(fixtures))
    assert "not a Paimon table" in row["reason"]


@each(
    "options, message",
    [
        ({"colums": "id"}, "unknown option 'colums'; did you mean columns?"),
        (
            {"rules": "true", "select": "corectness"},
            "unknown rule 'corectness'; did you mean correctness",
        ),
        ({"where": "dt >"}, "dt >"),
    ],
)
def test_a_wrong_option_ends_the_query_with_its_reason(read, fixtures, options, message):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as error:
        read(fixtures, **options).collect()
    assert any(name in str(error.value) for name in ("UsageError", "MalformedError"))
    assert message in str(error.value)


def test_a_path_that_does_not_exist_ends_the_load(read, tmp_path):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="PATH_NOT_FOUND") as error:
        read(tmp_path / "mistyped")
    assert str(tmp_path / "mistyped") in str(error.value)
    # With a schema, Spark calls the format only when it plans the query.
    with pytest.raises(PySparkException, match="PATH_NOT_FOUND"):
        read(tmp_path / "mistyped", schema="file string").collect()


def test_sql_reads_the_format_as_a_view(spark, read, lake):
    from pyspark.errors import PySparkException

    view = f"CREATE OR REPLACE TEMPORARY VIEW lake_filters USING sbbf OPTIONS (path '{lake}')"
    spark.sql(view)
    assert spark.sql("SELECT count(*) FROM lake_filters WHERE status = 'ok'").first()[0] == 12
    spark.sql("DROP VIEW lake_filters")
    for statement in (
        "CREATE TABLE t USING sbbf",
        f"CREATE TABLE t USING sbbf OPTIONS (path '{lake}')",
    ):
        with pytest.raises(
            PySparkException,
            match=r"a table of a catalog cannot use sbbf.*; "
            r"use CREATE TEMPORARY VIEW name USING sbbf",
        ):
            spark.sql(statement)


def test_the_format_cannot_be_written(spark, read, tmp_path):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="sbbf cannot be written, only read"):
        spark.range(1).write.format("sbbf").mode("append").save(str(tmp_path))


def test_the_manual_names_every_option():
    from sbbf_tool.spark.source import SbbfDataSource
    from sbbf_tool.spark.views import NAMES

    for name in NAMES:
        if name not in ("path", "paths"):
            assert f'"{name}"' in SbbfDataSource.__doc__ or f"`{name}`" in SbbfDataSource.__doc__, (
                name
            )
