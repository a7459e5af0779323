"""Sessions with unusual settings, and paths and names as Spark and its users have them: rows or one
line, as without Spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sbbf_tool import add_filters
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.reports.findings import VerifyReport
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.reports.rows import Row
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.discover import path_of
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.add_filter import AddFilter
from sbbf_tool.verbs.probe import Probe
from sbbf_tool.verbs.verify import Verify
from support.lakes import small_files

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool.spark import pipeline, probe_keys, register
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.runner import Spark
from sbbf_tool.spark.session import session
from sbbf_tool.verbs import Inspect

pytestmark = [pytest.mark.engines, pytest.mark.slow]


@pytest.fixture
def lake(tmp_path):
    folder = small_files(tmp_path / "lake", 2)
    for path in folder.iterdir():
        add_filters(path, ["id"], in_place=True)
    return folder


@pytest.mark.heavy
def test_settings_of_arrow_and_joins(spark, lake, set_conf):
    keys = spark.createDataFrame([(7,)], ["a`b"])
    set_conf("spark.sql.execution.arrow.useLargeVarTypes", "true")
    set_conf("spark.sql.crossJoin.enabled", "false")
    set_conf("spark.sql.execution.arrow.maxRecordsPerBatch", "1")
    files = pipeline.discover(spark, str(lake))
    assert {row.status for row in rows_of(pipeline.run(Verify(), files), Row[VerifyReport])} == {
        "ok"
    }
    hits = {
        Path(row.path).name: len(row.report.hits)
        for row in rows_of(probe_keys(files, "id", keys), Row[ProbeReport])
    }
    assert hits["part-00000.parquet"] == 1
    assert {
        row.status
        for row in pipeline.run(
            AddFilter(FilterSpec("name")), files, edit=Edit(in_place=True)
        ).collect()
    } == {"ok"}


@pytest.mark.heavy
def test_paths_of_a_dataframe(spark, lake):
    path = str(lake / "part-00000.parquet")
    rows = pipeline.run(
        Inspect(), spark.createDataFrame([(path,), (None,), ("",)], "path string")
    ).collect()
    assert sorted((row["path"], row["status"]) for row in rows) == [
        ("", "failed"),
        ("", "failed"),
        (path, "ok"),
    ]
    assert {row["reason"] for row in rows if row["status"] == "failed"} == {
        "the path is null or empty; leave such rows out"
    }
    changes = pipeline.run(
        AddFilter(FilterSpec("name")),
        spark.createDataFrame([(path,), (None,)], "path string"),
        edit=Edit(in_place=True),
    ).collect()
    assert sorted(row["status"] for row in changes) == ["failed", "ok"]
    assert [
        row["status"]
        for row in pipeline.run(
            Inspect(), spark.createDataFrame([(path.encode(),)], "path binary")
        ).collect()
    ] == ["ok"]
    with pytest.raises(UsageError, match="the column 'path' of the DataFrame has the type bigint"):
        pipeline.run(Inspect(), spark.range(1).withColumnRenamed("id", "path"))


@pytest.mark.heavy
def test_addresses_of_spark(spark, tmp_path):
    for name in ("a b", "c%20d", "e f", "e%20f"):
        (path,) = small_files(tmp_path / name, 1).iterdir()
        add_filters(path, ["id"], in_place=True)
    register(spark)
    frame = spark.read.parquet(*(str(tmp_path / name) for name in ("a b", "c%20d")))
    files = frame.selectExpr("_metadata.file_path AS path").distinct()
    assert sorted(
        Path(row["path"]).parent.name for row in pipeline.run(Inspect(), files).collect()
    ) == ["a b", "c%20d"]
    assert {
        row["status"]
        for row in pipeline.run(
            AddFilter(FilterSpec("name")), files, edit=Edit(in_place=True)
        ).collect()
    } == {"ok"}
    for name in ("a%20b", "a b", "c%2520d", "c%20d"):
        assert (
            path_of(f"file:{tmp_path}/{name}")
            == path_of(f"file://{tmp_path}/{name}")
            == f"{tmp_path}/{'a b' if name[0] == 'a' else 'c%20d'}"
        )
    ambiguous = f"file:{tmp_path}/e%20f"
    with pytest.raises(UsageError, match="may mean two files"):
        path_of(ambiguous)
    (row,) = spark.sql(f"SELECT sbbf_may_contain('{ambiguous}', 'id', -5) AS answer").collect()
    assert row.answer is True


def test_arguments_of_sql_functions(spark, lake):
    register(spark)
    path = lake / "part-00000.parquet"
    for query, reason in {
        f"sbbf_probe('{path}', NULL, 1)": "the name of the column is null",
        "sbbf_filters('')": "",
        "sbbf_verify('')": "",
        "sbbf_probe('', 'id', 1)": "",
    }.items():
        (row,) = spark.sql(f"SELECT status, reason FROM {query}").collect()
        assert (row.status, "Traceback" in row.reason) == ("failed", False), query
        assert reason in row.reason
    (row,) = spark.sql(
        "SELECT sbbf_may_contain('', 'id', 1) AS answer, sbbf_may_contain(NULL, 'id', 1) AS none"
    ).collect()
    assert (row.answer, row.none) == (True, None)


def test_names_of_columns_do_not_depend_on_case(spark, lake):
    reader = spark.read.format("sbbf")
    assert {
        Path(row.FILE).name for row in reader.schema("FILE string").load(str(lake)).collect()
    } == {path.name for path in lake.iterdir()}
    with pytest.raises(Exception, match="there is no column 'nope'"):
        reader.schema("nope string").load(str(lake)).collect()


@pytest.mark.heavy
def test_names_that_are_not_text_and_linked_folders(spark, lake, tmp_path):
    odd = os.fsencode(str(lake)) + b"/odd-\xff.parquet"
    os.rename(lake / "part-00001.parquet", odd)
    (lake / "linked").symlink_to(small_files(tmp_path / "elsewhere", 1))
    for work in (
        Work(Verify(), Context()),
        Work(Probe("id", ["7"]), Context()),
        Work(AddFilter(FilterSpec(("id",))), Context(), Edit(in_place=True)),
    ):
        rows = []
        for runner in (LocalRunner(1), Spark()):
            with runner:
                found = runner.run(Selection(str(lake)), work)
                rows.append(
                    sorted(
                        (row.path.encode("utf-8", "backslashreplace"), row.status, row.reason)
                        for row in found
                    )
                )
        assert rows[0] == rows[1]
        assert len(rows[0]) == 3
        assert b"odd-\\udcff" in rows[0][1][0]


def test_a_python_that_does_not_exist(spark, monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    with pytest.raises(
        UsageError, match="PYSPARK_PYTHON is '/no/such/python', and there is no such program"
    ):
        session("local[1]")
