"""The lake by Spark: the same rows and the same bytes as on one machine, each stage to be looked
at, saved and taken up again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sbbf_tool import Edit, FilterSpec
from sbbf_tool import run as run_verb
from sbbf_tool.cli import run
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.reports.findings import VerifyReport
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.verbs import AddFilter, Apply, Check, Inspect, Probe, Verify
from sbbf_tool.verbs.add_filter import AddReport
from sbbf_tool.verbs.add_filter import add_filters as add_to_one
from sbbf_tool.verbs.inspect import InspectReport
from support.lakes import (
    MIXED,
    assert_has_filters,
    digests,
    large_file,
    mixed,
    partitioned,
    small_files,
)

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool.spark import bundles, pipeline, probe_keys
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.runner import Spark
from support.defects import FIXTURES
from support.tables import each

pytestmark = pytest.mark.engines


EDIT = Edit(in_place=True)


def add_filters(spark, files, spec, **options):
    """List files as a run that changes them does, and add filters."""
    spec = spec if isinstance(spec, FilterSpec) else FilterSpec(spec)
    return pipeline.run(
        AddFilter(spec), pipeline.discover(spark, files, links=True), edit=EDIT, **options
    )


def outcomes(frame) -> Iterator[Row[AddReport]]:
    return rows_of(frame, Row[AddReport])


@pytest.mark.heavy
def test_each_stage_can_be_looked_at_saved_and_taken_up_again(spark, tmp_path):
    lake, alone = tmp_path / "lake", tmp_path / "alone"
    large_file(lake / "a.parquet", row_groups=5)
    shutil.copytree(lake, alone)
    add_to_one(alone / "a.parquet", ["id", "key"], in_place=True)
    small_files(lake, 1)
    files = pipeline.discover(spark, [str(lake)])
    assert [(row.path, row.bytes) for row in rows_of(files, ListedFile)] == [
        (str(path), path.stat().st_size) for path in sorted(lake.iterdir())
    ]
    assert [
        row.report.filters for row in rows_of(pipeline.run(Inspect(), files), Row[InspectReport])
    ] == [(), ()]
    files.write.parquet(str(tmp_path / "listing"))
    rows = outcomes(
        add_filters(
            spark,
            spark.read.parquet(str(tmp_path / "listing")),
            FilterSpec(("id", "key")),
            strict=True,
        )
    )
    assert sorted((row.status, len(row.report.filters) if row.report else 0) for row in rows) == [
        ("failed", 0),
        ("ok", 10),
    ]
    assert (lake / "a.parquet").read_bytes() == (alone / "a.parquet").read_bytes()
    # The listing has the old lengths, but a run measures the files again.
    again = outcomes(add_filters(spark, files, ["key"]))
    assert sorted((row.status, len(row.report.filters) if row.report else 0) for row in again) == [
        ("skipped", 0),
        ("skipped", 0),
    ]
    verified = rows_of(pipeline.run(Verify(), files), Row[VerifyReport])
    assert sorted(sum(result.is_verified for result in row.report.filters) for row in verified) == [
        0,
        10,
    ]


def run_stage(spark, lake: Path, stage: str):
    """Run a stage that changes files."""
    spec, files = FilterSpec(("id", "name")), pipeline.discover(spark, str(lake))
    if stage == "add_filters":
        return add_filters(spark, files, spec)
    return pipeline.run(Apply([FilterSpec(("id", "name"), paths=f"{lake}/**")]), files, edit=EDIT)


@each("stage", ["add_filters"], heavy=["apply"])
def test_a_stage_that_changes_files_does_its_work_once(spark, tmp_path, stage):
    """Before any action, and every action on its outcomes finds the same."""
    lake = small_files(tmp_path / "lake", 4)
    frame = run_stage(spark, lake, stage)
    assert_has_filters(lake, ("id", "name"))
    after = digests(lake)
    frame.show(3)
    assert frame.count() == 4
    first, second = frame.collect(), frame.collect()
    assert [(row.status, len(row.report.filters)) for row in first] == [("ok", 2)] * 4
    assert first == second
    assert digests(lake) == after


def test_a_large_file_is_one_task_whose_threads_use_idle_cores(spark, tmp_path, monkeypatch):
    lake = small_files(tmp_path / "lake", 2)
    large_file(lake / "one.parquet", row_groups=3)
    threads = spark.sparkContext.accumulator(0)

    class Count(Verify):  # type: ignore[misc]
        def carry(self, path, context, edit=None):
            threads.add(context.jobs)
            return super().carry(path, context, edit)

    for module in (pipeline, bundles):
        monkeypatch.setattr(module, "TASK_COST", (lake / "one.parquet").stat().st_size - 1)
    assert {
        row.status
        for row in rows_of(
            pipeline.run(Count(), pipeline.discover(spark, str(lake))), Row[VerifyReport]
        )
    } == {"ok"}
    assert threads.value == 2 + min(2, os.cpu_count() or 1)


@pytest.mark.heavy
def test_a_lake_may_be_named_in_many_ways(spark, tmp_path):
    lake = partitioned(tmp_path / "a lake%20")
    paths = sorted(str(path) for path in lake.rglob("*.parquet"))

    def discover_paths(files, where=None, **how):
        return sorted(
            row.path for row in rows_of(pipeline.discover(spark, files, where, **how), ListedFile)
        )

    assert discover_paths(str(lake)) == paths
    assert (
        discover_paths([f"file:{lake}/dt=2026-01-01", f"{lake}/dt=2026-01-0[23]/*/*.parquet"])
        == paths
    )
    assert discover_paths(str(lake), "dt > '2026-01-01' and region = 'eu'") == [paths[2], paths[4]]
    # As Spark itself lists: by binaryFile, and the addresses that it gives of a table's files.
    listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(str(lake))
    assert (
        discover_paths(listing.select("path", "length", "modificationTime"), "region = 'us'")
        == paths[1::2]
    )
    assert discover_paths(listing.select("path")) == paths
    spark.read.parquet(str(lake)).createOrReplaceTempView("people")
    assert discover_paths("people", table=True) == paths
    assert discover_paths("people", "region = 'eu'", table=True) == paths[::2]


@each("verb, edit", [(Verify(), {}), (AddFilter(FilterSpec("id")), {"edit": EDIT})])
def test_a_run_over_twenty_files_is_two_stages(spark, tmp_path, verb, edit):
    """They list the files, and do the work: nothing is shuffled. Before PySpark 4.0, the limit of
    the listing is a stage of its own."""
    lake = small_files(tmp_path / "lake", 20)
    context, group = spark.sparkContext, f"stages of {verb.name}"
    context.setJobGroup(group, "")
    try:
        rows = run_verb(verb, lake, on=Spark(), **edit)
        assert rows.files == {"ok": 20} if edit else [row.status for row in rows] == ["ok"] * 20
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    stages = [
        tracker.getStageInfo(stage)
        for job in tracker.getJobIdsForGroup(group)
        for stage in tracker.getJobInfo(job).stageIds
    ]
    from pyspark.sql import DataFrame

    done = [stage for stage in stages if stage is not None and stage.numCompletedTasks > 0]
    assert len(done) == (2 if hasattr(DataFrame, "toArrow") else 3)


@pytest.mark.heavy
def test_names_and_order_are_those_of_the_local_runner(spark, tmp_path, monkeypatch):
    """Names that are relative, or are not UTF-8, and PATHs in any order."""
    lake = small_files(tmp_path / "lake", 5)
    small_files(tmp_path / "lake" / "a b", 2)
    name = "a b/name-\\udcff.parquet"
    shutil.copy(lake / "part-00001.parquet", lake / name)
    shutil.copy(lake / "part-00001.parquet", os.fsencode(lake) + b"/name-\xff.parquet")
    monkeypatch.chdir(tmp_path)
    for paths in (
        "lake",
        ["./lake/a b/", "lake/part*", "lake/n*"],
        ["lake/part-00003.parquet", "lake"],
    ):
        here = list(run_verb(Inspect(), paths))
        there = list(run_verb(Inspect(), paths, on=Spark()))
        assert [row.path for row in there] == [row.path for row in here]
        assert [row.report.file for row in there] == [row.report.file for row in here]
    shutil.copy(FIXTURES / "spark-96-bytes.parquet", lake)
    for paths in ("lake", ["./lake"]):
        here, there = [list(run_verb(Check(), paths, on=runner)) for runner in (None, Spark())]
        assert any(row.report.findings for row in here)
        assert [row.report for row in there] == [row.report for row in here]
    edit = Edit(dry_run=True)
    for row in run_verb(AddFilter("id"), "lake", edit=edit, errors="return", on=Spark()):
        if row.report is not None:
            assert row.report.output == row.report.file == row.path


def test_paths_that_cannot_be_listed(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 1)
    with pytest.raises(UnreadableError, match=r"\[PATH_NOT_FOUND\] no such file or directory"):
        pipeline.discover(spark, [str(lake), str(tmp_path / "mistyped")])
    with pytest.raises(UsageError, match="no path was given"):
        add_filters(spark, [], ["id"])
    with pytest.raises(UsageError, match="no column 'path'; its columns are file"):
        add_filters(spark, spark.createDataFrame([(str(lake),)], "file string"), ["id"])


@pytest.mark.heavy
def test_keys_of_a_dataframe_are_joined_on_executors(spark, tmp_path, monkeypatch):
    lake = small_files(tmp_path / "lake", 3)
    add_filters(spark, str(lake), "id")
    files = pipeline.discover(spark, str(lake))
    monkeypatch.setattr("sbbf_tool.spark.lookup._KEYS_AT_ONCE", 7)
    values = [7, 207, 100_000, *range(300, 320)]
    expected = {
        row.path: row.report
        for row in rows_of(pipeline.run(Probe("id", values), files), Row[ProbeReport])
    }
    frame = probe_keys(files, "id", spark.createDataFrame([(key,) for key in values], "key long"))
    rows = list(rows_of(frame, Row[ProbeReport]))
    assert len(rows) == 3
    for row in rows:
        assert sorted(row.report.hits, key=str) == sorted(expected[row.path].hits, key=str)
        assert (row.report.num_values, row.report.inconclusive) == (
            len(values),
            expected[row.path].inconclusive,
        )
    pairs = spark.createDataFrame([("7", 1), ("no number", 2)], "id string, other int")
    # Text that Spark's casts may read in several ways may be in every row group.
    rows = list(rows_of(probe_keys(files, "id", pairs), Row[ProbeReport]))
    assert {row.status for row in rows} == {"ok"}
    assert all(
        ("no number", (0,)) in [(hit.value, hit.row_groups) for hit in row.report.hits]
        for row in rows
    )
    assert [
        row.report.hits
        for row in rows_of(probe_keys(files, "id", pairs.limit(0)), Row[ProbeReport])
    ] == [()] * 3
    with pytest.raises(
        UsageError,
        match="the DataFrame of values has no column 'name'; select one of its columns: id, other",
    ):
        probe_keys(files, "name", pairs)


IN_PLACE = ["--in-place"]
COMMANDS = (
    ["inspect"],
    ["verify"],
    ["check", "--require", "id"],
    ["probe", "-c", "id", "--value", "7"],
    ["explain", "-c", "id", "--value", "7"],
    ["advise"],
    ["add-filter", "-c", "id", "-c", "name", *IN_PLACE],
    ["remove-filter", *IN_PLACE],
    ["resize", "--max-bytes", "64", *IN_PLACE],
    ["repair", *IN_PLACE],
    ["apply", "--in-place"],
)
DECLARATION = '[[filters]]\npaths = "lake/**"\ncolumns = ["id", "name"]\n'


@each("command", [*COMMANDS][1:], every=5)
def test_both_runners_say_and_do_the_same(spark, tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    Path("sbbf.toml").write_text(DECLARATION)
    lake = mixed(tmp_path / "lake")
    small_files(tmp_path / "elsewhere", 1)
    (lake / "link.parquet").symlink_to(tmp_path / "elsewhere" / "part-00000.parquet")
    original = shutil.copytree(lake, tmp_path / "original", symlinks=True)

    def outcomes_of(*runner):
        shutil.rmtree(lake)
        shutil.copytree(original, lake, symlinks=True)
        capsys.readouterr()
        code = run([command[0], "lake", *command[1:], "--format", "json", *runner])
        printed = capsys.readouterr()
        documents = [json.loads(line) for line in printed.out.splitlines()]
        for document in documents if command == ["advise"] else ():
            document["unreadable"].sort()
        return code, documents, sorted(printed.err.splitlines()), digests(tmp_path)

    here, there = outcomes_of(), outcomes_of("--on", "spark")
    for local_row, spark_row in zip(here, there, strict=True):
        assert local_row == spark_row
    assert len(here[1]) == (len(MIXED) + 2 if command[0] != "advise" else 1)
