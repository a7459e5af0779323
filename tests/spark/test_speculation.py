"""A second attempt at a task that Spark starts while the first one is at work: no file is damaged,
and each is counted once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from support.clusters import REPOSITORY, Run, standalone_cluster
from support.lakes import assert_has_filters, small_files
from support.tables import each

pytestmark = [
    pytest.mark.engines,
    pytest.mark.nightly(5),
    pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc"),
]
pytest.importorskip("pyspark")

FILES = 40
SETTINGS = (
    "spark.speculation=true",
    "spark.speculation.interval=200ms",
    "spark.speculation.task.duration.threshold=2s",
)
# The first attempt at a task would take longer than the test may.
HANGS_ONCE = """\
import os, time
{function}, calls = os.{function}, []
def call_and_hang(path, **options):
    {function}(path, **options)
    calls.append(path)
    if len(calls) == 3 and not os.path.exists({marker!r}):
        open({marker!r}, "x").close()
        time.sleep(1000)
os.{function} = call_and_hang
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone") / "cluster") as address:
        yield address


@each(
    "function, refused",
    {"after it has changed a file": ("unlink", 0), "while it writes a file": ("fsync", 1)},
)
def test_an_attempt_that_hangs_is_overtaken(tmp_path, master, function, refused):
    lake = small_files(tmp_path / "lake", FILES)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    marker = scratch / "hung"
    hook = HANGS_ONCE.format(function=function, marker=str(marker))
    (scratch / "sitecustomize.py").write_text(hook)
    paths = os.pathsep.join(map(str, (scratch, REPOSITORY)))
    settings = (*SETTINGS, f"spark.executorEnv.PYTHONPATH={paths}")
    report = tmp_path / "report.json"
    words = ("-c", "id", "--report", str(report))
    with Run(lake, scratch, *words, master=master, settings=settings) as spark_run:
        code = spark_run.process.wait(500)
        output = spark_run.read_output()
    assert marker.exists()
    done = FILES - refused
    assert f"{FILES} files: {done} done" in output
    assert f"; {done} filters added" in output
    assert code == (4 if refused else 0)
    lines = map(json.loads, report.read_text().splitlines())
    names = [Path(line["file"]).name for line in lines if line["schema"] == "sbbf.add-filter"]
    assert len(names) == len(set(names)) == done
    if refused:
        assert output.count("another process is writing this file") == 1
        assert run(["add-filter", str(lake), "-c", "id", "--in-place", "-q"]) == 0
    assert_has_filters(lake, ("id",))
