"""Drivers and executors of a real cluster killed in the middle of publishing, and two pipelines on
one lake: no file is ever damaged."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.add_filter import AddFilter
from support.clusters import Run, kill
from support.lakes import assert_has_filters, small_files

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool.spark.java import find_java
from sbbf_tool.spark.session import spark_version

pytestmark = [
    pytest.mark.engines,
    pytest.mark.heavy,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="finds processes by /proc"),
]

FILES, ROUNDS, AT_LEAST = 1000, 5, 60
COLUMNS = ("id", "name")
ARGUMENTS = ("-c", "id", "-c", "name")


@pytest.fixture(scope="module", autouse=True)
def java():
    try:
        find_java(spark_version())
    except UsageError as error:
        pytest.skip(str(error))


class WatchedLake:
    """A lake, and its files as they were."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = small_files(folder, count)
        self.old = {path: path.read_bytes() for path in folder.iterdir()}

    def done(self) -> int:
        return sum(os.stat(path).st_size != len(data) for path, data in self.old.items())

    def assert_whole(self) -> None:
        """Every file is the old one to the byte, or begins with it and has all its filters."""
        for path, old in self.old.items():
            new = path.read_bytes()
            assert new[: len(old)] == old, path
            group = pq.read_metadata(path).row_group(0)
            filtered = [
                group.column(at).bloom_filter_offset is not None for at in range(group.num_columns)
            ]
            assert filtered == ([False] * 3 if len(new) == len(old) else [True, True, False]), path


@pytest.fixture
def lake(tmp_path):
    return WatchedLake(tmp_path / "lake", FILES)


def scratch(tmp_path: Path, number: int) -> Path:
    folder = tmp_path / f"run-{number}"
    folder.mkdir()
    return folder


def test_drivers_are_killed_five_times(lake, tmp_path):
    chance = random.Random(1)
    for number in range(ROUNDS):
        begun = lake.done()
        with Run(lake.folder, scratch(tmp_path, number), *ARGUMENTS) as run:
            assert run.wait_until(lambda: lake.done() > begun + AT_LEAST), run.read_output()  # noqa: B023
            time.sleep(chance.uniform(0, 0.3))
            jvm = run.driver_jvm()
            assert jvm is not None
            kill(chance.choice([jvm, run.process.pid]))
        assert run.process.returncode != 0
        lake.assert_whole()
    assert 0 < lake.done() < FILES
    outcomes = list(
        LocalRunner(2).run(
            Selection(lake.folder),
            Work(AddFilter(FilterSpec(COLUMNS)), Context(), Edit(in_place=True)),
        )
    )
    assert {outcome.status for outcome in outcomes} == {"ok", "skipped"}
    assert_has_filters(lake.folder, COLUMNS)


def test_all_executors_are_killed_again_and_again(tmp_path):
    """Stages begin again with the number of a first attempt: counts and report are those of a run
    that lost nothing."""
    report, count = tmp_path / "report.json", 300
    lake = WatchedLake(tmp_path / "lake", count)
    options = (
        "--report",
        str(report),
    )
    with Run(lake.folder, scratch(tmp_path, 0), *ARGUMENTS, *options) as run:
        for number in range(ROUNDS - 2):
            enough = (number + 1) * count // ROUNDS
            assert run.wait_until(
                lambda: lake.done() >= enough and run.executors()  # noqa: B023
            ), run.read_output()
            for executor in run.executors():
                kill(executor)
        assert run.process.wait(600) == 0, run.read_output()
    assert f"{count} files: {count} done; {2 * count} filters added" in run.read_output()
    lake.assert_whole()
    assert_has_filters(lake.folder, COLUMNS)
    lines = report.read_text().splitlines()
    documents = [document for document in map(json.loads, lines) if "old_bytes" in document]
    assert {document["file"]: document["old_bytes"] for document in documents} == {
        str(path): len(old) for path, old in lake.old.items()
    }
    assert {len(document["filters"]) for document in documents} == {2}


def test_two_pipelines_on_one_lake(lake, tmp_path):
    with (
        Run(lake.folder, scratch(tmp_path, 0), *ARGUMENTS) as first,
        Run(lake.folder, scratch(tmp_path, 1), *ARGUMENTS) as second,
    ):
        assert first.wait_until(lambda: lake.done() > 20), first.read_output()
        # And a third, that has no cluster.
        here = list(
            LocalRunner(2).run(
                Selection(lake.folder),
                Work(AddFilter(FilterSpec(COLUMNS)), Context(), Edit(in_place=True)),
            )
        )
        assert first.process.wait(300) == 0, first.read_output()
        assert second.process.wait(300) == 0, second.read_output()
    assert {outcome.status for outcome in here} <= {"ok", "skipped"}
    assert all(
        "refused" not in run.read_output() and "failed" not in run.read_output()
        for run in (first, second)
    )
    lake.assert_whole()
    assert lake.done() == FILES
    assert_has_filters(lake.folder, COLUMNS)
