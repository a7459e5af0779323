"""A worker that dies after it has changed files: the next attempt of its task reports them as
changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from support.clusters import Run
from support.defects import miss_values
from support.lakes import digests, small_files

pytestmark = [
    pytest.mark.engines,
    pytest.mark.heavy,
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc"),
]
pytest.importorskip("pyspark")

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
    "add": (None, ["add-filter", "-c", "id"], "5 files: 5 done; 5 filters added"),
    "rebuild": (
        with_own_filters,
        ["add-filter", "-c", "id", "--rebuild", "weak"],
        "5 files: 5 done; 5 filters added",
    ),
    "remove": (with_filters_of_pyarrow, ["remove-filter"], "5 files: 5 done; 5 filters, "),
    "restore": (with_own_filters, ["remove-filter", "--ours"], "5 files: 5 done; "),
    "resize": (
        with_filters_of_pyarrow,
        ["resize", "--fpp", "0.2"],
        "5 files: 5 done; 5 filters: ",
    ),
    "resize own filters": (
        with_own_filters,
        ["resize", "--fpp", "0.01"],
        "5 files: 5 done; 5 filters: ",
    ),
    "repair": (with_broken_filters, ["repair"], "5 files: 5 done; 5 filters repaired"),
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
    assert counts in spark_run.read_output()
    assert before.keys() == digests(lake).keys()
    assert before.items().isdisjoint(digests(lake).items())
