"""The lake by Spark: the same rows and the same bytes as on one machine, each stage to be looked at, saved and taken up again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from sbbf_tool import FilterSpec, Limits, Policy
from sbbf_tool.cli import run
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.operations.add import add_filters as add_to_one
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.apply import ApplyRow
from sbbf_tool.reports.inspect import InspectRow
from sbbf_tool.reports.probe import Hit, ProbeRow
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner import works
from sbbf_tool.runner.progress import RunProgress
from sbbf_tool.runner.selection import Selection
from support.lakes import MIXED, assert_has_filters, digests, large_file, mixed, partitioned, small_files, statuses

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool.spark import pipeline
from sbbf_tool.spark.rows import ddl_of, rows_of
from sbbf_tool.spark.runner import SparkRunner
from support.tables import each

pytestmark = pytest.mark.engines


def outcomes(frame) -> Iterator[AddRow]:
    return rows_of(frame, AddRow)


def test_a_mixed_lake_is_done_as_far_as_it_can_be(spark, tmp_path):
    lake = mixed(tmp_path / "lake")
    steps = []
    frame = pipeline.add_filters(spark, str(lake), ["id", "name"], progress=lambda *so_far: steps.append(so_far))
    assert statuses(lake, outcomes(frame)) == MIXED
    summed = {row.status: (row.files, row.filters) for row in pipeline.report(frame).collect()}
    assert summed == {"ok": (4, 7), "skipped": (2, 0), "refused": (2, 0), "failed": (3, 0)}
    assert steps[-1][:2] == (11, 7)
    after = digests(lake)
    again = pipeline.add_filters(spark, str(lake), ["id", "name"], report=str(tmp_path / "report"))
    assert statuses(lake, outcomes(again)) == MIXED | {name: "skipped" for name, status in MIXED.items() if status == "ok"}
    assert digests(lake) == after
    assert spark.read.parquet(str(tmp_path / "report")).count() == len(MIXED)


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
    assert [row.report.filters for row in rows_of(pipeline.inspect(files), InspectRow)] == [(), ()]
    files.write.parquet(str(tmp_path / "listing"))
    rows = outcomes(pipeline.add_filters(spark, spark.read.parquet(str(tmp_path / "listing")), FilterSpec(("id", "key")), strict=True))
    assert sorted((row.status, len(row.report.filters) if row.report else 0) for row in rows) == [("failed", 0), ("ok", 10)]
    assert (lake / "a.parquet").read_bytes() == (alone / "a.parquet").read_bytes()
    # The listing has the old lengths, but a run measures the files again.
    again = outcomes(pipeline.add_filters(spark, files, ["key"]))
    assert sorted((row.status, len(row.report.filters) if row.report else 0) for row in again) == [("skipped", 0), ("skipped", 0)]
    verified = rows_of(pipeline.verify(files), VerifyRow)
    assert sorted(sum(result.is_verified for result in row.report.filters) for row in verified) == [0, 10]


def run_stage(spark, lake: Path, stage: str):
    """Run a stage that changes files."""
    spec, files = FilterSpec(("id", "name")), pipeline.discover(spark, str(lake))
    if stage == "add_filters":
        return pipeline.add_filters(spark, files, spec)
    return pipeline.apply(files, Policy(Limits(filters=(FilterSpec(("id", "name"), paths=f"{lake}/**"),))), in_place=True)


@each("stage", ["add_filters", "apply"])
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
    work = works.verify()
    real = work.fields

    def count(path, *, jobs, progress):
        threads.add(jobs)
        return real(path, jobs=jobs, progress=progress)

    work.fields = count
    monkeypatch.setattr(pipeline, "TASK_COST", (lake / "one.parquet").stat().st_size - 1)
    assert {row.status for row in rows_of(pipeline.run(pipeline.discover(spark, str(lake)), work), VerifyRow)} == {"ok"}
    assert threads.value == 2 + min(2, os.cpu_count() or 1)


def test_a_lake_may_be_named_in_many_ways(spark, tmp_path):
    lake = partitioned(tmp_path / "a lake%20")
    paths = sorted(str(path) for path in lake.rglob("*.parquet"))

    def discover_paths(files, where=None, **how):
        return sorted(row.path for row in rows_of(pipeline.discover(spark, files, where, **how), ListedFile))

    assert discover_paths(str(lake)) == paths
    assert discover_paths([f"file:{lake}/dt=2026-01-01", f"{lake}/dt=2026-01-0[23]/*/*.parquet"]) == paths
    assert discover_paths(str(lake), "dt > '2026-01-01' and region = 'eu'") == [paths[2], paths[4]]
    # As Spark itself lists: by binaryFile, and the addresses that it gives of a table's files.
    listing = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(str(lake))
    assert discover_paths(listing.select("path", "length", "modificationTime"), "region = 'us'") == paths[1::2]
    assert discover_paths(listing.select("path")) == paths
    spark.read.parquet(str(lake)).createOrReplaceTempView("people")
    assert discover_paths("people", table=True) == paths
    assert discover_paths("people", "region = 'eu'", table=True) == paths[::2]


def test_a_wrong_request_is_reported_as_elsewhere(spark, tmp_path):
    lake = str(partitioned(tmp_path / "lake"))
    with pytest.raises(UsageError, match="no partition column 'regoin'; did you mean region"):
        list(rows_of(pipeline.discover(spark, lake, "regoin = 'eu'"), ListedFile))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnreadableError, match=r"no Parquet file below"):
        pipeline.add_filters(spark, str(tmp_path / "empty"), "id")
    with pytest.raises(UsageError, match="no column was given"):
        pipeline.add_filters(spark, lake, [])


def test_paths_that_cannot_be_listed(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 1)
    with pytest.raises(UnreadableError, match=r"\[PATH_NOT_FOUND\] no such file or directory"):
        pipeline.discover(spark, [str(lake), str(tmp_path / "mistyped")])
    with pytest.raises(UsageError, match="no path was given"):
        pipeline.add_filters(spark, [], ["id"])
    with pytest.raises(UsageError, match="no column 'path'; its columns are file"):
        pipeline.add_filters(spark, spark.createDataFrame([(str(lake),)], "file string"), ["id"])


def test_relative_paths_are_those_of_the_driver(spark, tmp_path, monkeypatch):
    lake = small_files(tmp_path / "lake", 1)
    monkeypatch.chdir(tmp_path)
    expected = [str(path) for path in lake.iterdir()]
    frame = spark.createDataFrame([("lake/part-00000.parquet",)], "path string")
    assert [row.path for row in rows_of(pipeline.discover(spark, "lake"), ListedFile)] == expected
    for stage in (pipeline.inspect(frame), pipeline.verify(frame), pipeline.check(frame)):
        assert [(row.path, row.status in ("ok", "skipped")) for row in stage.collect()] == [(expected[0], True)]


def test_many_keys_of_all_files(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 3)
    pipeline.add_filters(spark, str(lake), "id")
    rows = {Path(row.path).stem: row for row in rows_of(pipeline.probe(pipeline.discover(spark, str(lake)), "id", ["7", "207"]), ProbeRow)}
    assert Hit("7", (0,)) in rows["part-00000"].report.hits
    assert Hit("207", (0,)) in rows["part-00001"].report.hits


def test_keys_of_a_dataframe_are_joined_on_executors(spark, tmp_path, monkeypatch):
    lake = small_files(tmp_path / "lake", 3)
    pipeline.add_filters(spark, str(lake), "id")
    files = pipeline.discover(spark, str(lake))
    monkeypatch.setattr("sbbf_tool.spark.lookup._KEYS_AT_ONCE", 7)
    values = [7, 207, 100_000, *range(300, 320)]
    expected = {row.path: row.report for row in rows_of(pipeline.probe(files, "id", values), ProbeRow)}
    frame = pipeline.probe(files, "id", spark.createDataFrame([(key,) for key in values], "key long"))
    rows = list(rows_of(frame, ProbeRow))
    assert len(rows) == 3
    for row in rows:
        assert sorted(row.report.hits, key=str) == sorted(expected[row.path].hits, key=str)
        assert (row.report.num_values, row.report.inconclusive) == (len(values), expected[row.path].inconclusive)
    pairs = spark.createDataFrame([("7", 1), ("no number", 2)], "id string, other int")
    # Text that Spark's casts may read in several ways may be in every row group.
    rows = list(rows_of(pipeline.probe(files, "id", pairs), ProbeRow))
    assert {row.status for row in rows} == {"ok"}
    assert all(("no number", (0,)) in [(hit.value, hit.row_groups) for hit in row.report.hits] for row in rows)
    assert [row.report.hits for row in rows_of(pipeline.probe(files, "id", pairs.limit(0)), ProbeRow)] == [()] * 3
    with pytest.raises(UsageError, match="the DataFrame of values has no column 'name'; select one of its columns: id, other"):
        pipeline.probe(files, "name", pairs)


def test_progress_counts_files_and_bytes(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 5)
    num_bytes = sum(path.stat().st_size for path in lake.iterdir())
    for work in (works.inspect(), works.verify(), works.add(FilterSpec(("id",)), Edit(in_place=True))):
        with SparkRunner(progress=RunProgress()) as runner:
            assert len(list(runner.run(Selection(str(lake)), work))) == 5
            progress = runner.progress
        assert (progress.total, progress.files_done, progress.bytes_done) == ((5, num_bytes), 5, num_bytes)


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
    ["resize", "--bytes", "64", *IN_PLACE],
    ["repair", *IN_PLACE],
    ["apply", "--in-place"],
)
DECLARATION = '[[filters]]\npaths = "lake/**"\ncolumns = ["id", "name"]\n'


@each("command", COMMANDS)
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
        code = run([command[0], str(lake), *command[1:], "--format", "json", *runner])
        printed = capsys.readouterr()
        # Spark's rows come in no order.
        documents = sorted(map(json.loads, printed.out.splitlines()), key=lambda document: str(document.get("file")))
        for document in documents if command == ["advise"] else ():
            document["unreadable"].sort()
        return code, documents, sorted(printed.err.splitlines()), digests(tmp_path)

    here, there = outcomes_of(), outcomes_of("--runner", "spark")
    for local_row, spark_row in zip(here, there, strict=True):
        assert local_row == spark_row
    assert len(here[1]) == (len(MIXED) + 2 if command[0] != "advise" else 1)


def test_declared_filters_of_a_lake(spark, tmp_path):
    lake = small_files(tmp_path / "lake", 3)
    policy = Policy(Limits(filters=(FilterSpec(("id",), paths=f"{lake}/**"),)))
    files = pipeline.discover(spark, str(lake))
    assert [(row.report.holds, len(row.report.filters)) for row in rows_of(pipeline.apply(files, policy), ApplyRow)] == [(False, 0)] * 3
    changes = rows_of(pipeline.apply(files, policy, in_place=True), ApplyRow)
    assert [(row.report.holds, len(row.report.filters)) for row in changes] == [(True, 1)] * 3
    assert [row.status for row in rows_of(pipeline.apply(files, policy), ApplyRow)] == ["skipped"] * 3
    assert_has_filters(lake, ("id",))


def test_advice_of_a_lake(spark, tmp_path):
    lake = tmp_path / "lake"
    large_file(lake / "a.parquet", row_groups=3, rows_a_group=5000)
    report = pipeline.advise(pipeline.discover(spark, str(lake)))
    assert [(column.column, column.verdict) for column in report.columns] == [("id", "no gain"), ("key", "add")]


def test_schemas_are_sparks(spark):
    for row in (ListedFile, AddRow, InspectRow, VerifyRow, ProbeRow):
        assert spark.createDataFrame([], ddl_of(row)).columns == [field.name for field in fields(row) if not field.metadata.get("local")]


def test_links_in_a_folder_are_skipped_and_have_their_rows(spark, tmp_path):
    lake, elsewhere = small_files(tmp_path / "lake", 2), small_files(tmp_path / "elsewhere", 2)
    link, folder = lake / "link.parquet", lake / "linked"
    link.symlink_to(next(elsewhere.rglob("*.parquet")))
    folder.symlink_to(elsewhere)
    before = digests(elsewhere)
    done = pipeline.add_filters(spark, str(lake), ["id"])
    rows = {outcome.path: outcome for outcome in outcomes(done)}
    skipped = {path for path, row in rows.items() if row.status == "skipped" and "link" in str(row.reason)}
    assert skipped == {str(link), str(folder)}
    assert len(rows) == 4
    assert digests(elsewhere) == before
    # Stages that read take the outcomes, and leave such rows out.
    assert pipeline.verify(done).count() == 2
    assert pipeline.inspect(pipeline.discover(spark, str(lake))).count() == 3
    headers = rows_of(pipeline.inspect(pipeline.discover(spark, str(lake)), bitsets=False), InspectRow)
    assert {chunk.fill_ratio for row in headers for chunk in row.report.filters} == {None}
    assert [row.status for row in outcomes(pipeline.add_filters(spark, str(link), ["id"]))] == ["ok"]
