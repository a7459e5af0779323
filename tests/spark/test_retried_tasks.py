"""Workers and executors that die after they have changed files: later attempts
report these files as changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.clusters import Run, kill
from support.defects import miss_values
from support.lakes import digests, small_files

pytestmark = [
    pytest.mark.engines,
    pytest.mark.heavy,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc"),
]
pytest.importorskip("pyspark")

FILES = 400

# A file is changed once its old version is removed; the first file that is removed is that of the
# trial whether the folder allows it.
DIES_ONCE = """\
import os
unlink, removed = os.unlink, []
def unlink_and_die(path, **options):
    unlink(path, **options)
    if str(path).endswith(".sbbf-tmp"):
        removed.append(path)
    if len(removed) == 3 and not os.path.exists({marker!r}):
        open({marker!r}, "x").close()
        os._exit(1)
os.unlink = unlink_and_die
"""


def with_own_filters(lake: Path) -> None:
    """Large filters, which can be resized."""
    assert run(["add-filter", str(lake), "-c", "id", "--ndv", "10000", "--in-place", "-q"]) == 0


def with_filters_of_pyarrow(lake: Path) -> None:
    for path in lake.iterdir():
        options = {"id": {"ndv": 10_000, "fpp": 0.01}}
        pq.write_table(pq.read_table(path), path, bloom_filter_options=options)


def with_broken_filters(lake: Path) -> None:
    for path in lake.iterdir():
        miss_values(path)


RUNS: dict[str, tuple[Callable[[Path], None] | None, list[str], str]] = {
    "add": (None, ["add-filter", "-c", "id"], "{0} files: {0} done; {0} filters added"),
    "rebuild": (
        with_own_filters,
        ["add-filter", "-c", "id", "--rebuild", "weak"],
        "{0} files: {0} done; {0} filters added",
    ),
    "remove": (with_filters_of_pyarrow, ["remove-filter"], "{0} files: {0} done; {0} filters, "),
    "restore": (with_own_filters, ["remove-filter", "--ours"], "{0} files: {0} done; "),
    "resize": (
        with_filters_of_pyarrow,
        ["resize", "--fpp", "0.3"],
        "{0} files: {0} done; {0} filters: ",
    ),
    "resize own filters": (
        with_own_filters,
        ["resize", "--fpp", "0.01"],
        "{0} files: {0} done; {0} filters: ",
    ),
    "repair": (with_broken_filters, ["repair"], "{0} files: {0} done; {0} filters repaired"),
}


@pytest.mark.parametrize("case", RUNS)
def test_files_of_a_lost_task_are_counted_as_changed(tmp_path, case):
    prepare, (command, *options), counts = RUNS[case]
    lake = small_files(tmp_path / "lake", 5)
    if prepare is not None:
        prepare(lake)
    before = digests(lake)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    marker = scratch / "died"
    (scratch / "sitecustomize.py").write_text(DIES_ONCE.format(marker=str(marker)))
    with Run(
        lake, scratch, *options, master="local[1,2]", python_path=scratch, command=command
    ) as spark_run:
        assert spark_run.process.wait(300) == 0, spark_run.read_output()
    assert marker.exists()
    assert counts.format(5) in spark_run.read_output()
    assert before.keys() == digests(lake).keys()
    assert before.items().isdisjoint(digests(lake).items())


@pytest.mark.nightly(15)
@pytest.mark.parametrize("case", [case for case in RUNS if case != "add"])
def test_all_executors_and_workers_are_killed_at_once(tmp_path, case):
    prepare, (command, *options), counts = RUNS[case]
    lake = small_files(tmp_path / "lake", FILES)
    prepare(lake)
    before = {path: path.stat() for path in lake.iterdir()}

    def changed() -> int:
        return sum(path.stat().st_ino != old.st_ino for path, old in before.items())

    report = tmp_path / "report.json"
    options += ["--report", str(report)]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with Run(lake, scratch, *options, command=command) as spark_run:
        for enough in (FILES // 8, FILES // 2):
            assert spark_run.wait_until(lambda: changed() > enough and spark_run.executors()), (  # noqa: B023
                spark_run.read_output()
            )
            jvm = spark_run.driver_jvm()
            for pid in spark_run.descendants():
                if pid != jvm:
                    kill(pid)
        assert spark_run.process.wait(600) == 0, spark_run.read_output()
    assert counts.format(FILES) in spark_run.read_output()
    assert changed() == FILES
    documents = [json.loads(line) for line in report.read_text().splitlines()]
    sizes = {str(path): old.st_size for path, old in before.items()}
    reported = {each["file"]: each["old_bytes"] for each in documents if "old_bytes" in each}
    assert reported == sizes
