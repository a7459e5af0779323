"""A flat folder of many small files by the commands, on this machine and on Spark: memory is counted and bounded, CPU time is printed.

`SBBF_MANY_FILES=300000` chooses the full size, and `SBBF_LISTED_FILES=10000000` that of the generated listing. All files are hard links,
so the change of `add-filter` is a dry run, and its second run works on files that have their filters.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from sbbf_tool import add_filters
from support.lakes import linked_files

pytestmark = pytest.mark.nightly(minutes=8)

FEW = 200
MANY = int(os.environ.get("SBBF_MANY_FILES", "3000"))
LISTING_ROWS = int(os.environ.get("SBBF_LISTED_FILES", "150000"))
BYTES_PER_FILE = 100
"""Of the parent. It counts from the peak of a run over few files; `SLACK` is what reports in flight, and Spark's modules, may add to it."""
SLACK = 48 << 20

# The peak of this process, which is the parent of all workers, follows what the command prints.
_PROGRAM = """
import re, sys
from sbbf_tool.cli import run
code = run(sys.argv[1:])
print("VmHWM", int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) << 10, file=sys.stderr)
sys.exit(code)
"""
COMMANDS = {
    "inspect": (["inspect"], "{} done"),
    "probe": (["probe", "-c", "id", "--value", "7"], "Queried 1 value in {}"),
    "check": (["check", "--require", "id"], "{} done"),
    "add-filter, dry run": (["add-filter", "-c", "id", "-c", "name", "--in-place", "-n"], "{} done"),
    "add-filter, second run": (["add-filter", "-c", "id", "--in-place"], "{} had every filter"),
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lakes")

    def make(name: str, count: int) -> Path:
        lake = linked_files(folder / name, count)
        # Each file with links of its own gets a filter; the links then lead to the new file.
        for start in range(0, count, 10_000):
            source = lake / f"part-{start:07d}.parquet"
            add_filters(source, ["id"], in_place=True)
            for number in range(start + 1, min(start + 10_000, count)):
                (path := lake / f"part-{number:07d}.parquet").unlink()
                path.hardlink_to(source)
        return lake

    return make("few", FEW), make("many", MANY)


def measure(lake: Path, count: int, name: str, runner: list[str], folder: Path) -> tuple[int, float]:
    """Return the peak of the parent in bytes, and the CPU time of all processes in seconds."""
    command, words = COMMANDS[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, command[0], str(lake), *command[1:], *runner], cwd=folder, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert words.format(f"{count:,}") in done.stdout
    return int(done.stderr.rsplit("VmHWM", 1)[1]), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("runner", ["local", "spark"])
def test_nothing_is_held_per_file(lakes, tmp_path, name, runner):
    if runner == "spark":
        pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    scratch = ["--conf", f"spark.local.dir={tmp_path / 'blocks'}", "--conf", f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}"]
    options = ["--jobs", "2"] if runner == "local" else ["--master", "local[2]", *scratch]
    few, few_seconds = measure(lakes[0], FEW, name, options, tmp_path)
    many, many_seconds = measure(lakes[1], MANY, name, options, tmp_path)
    milliseconds = 1000 * (many_seconds - few_seconds) / (MANY - FEW)
    print(f"{runner}: {name}: {MANY:,} files: {milliseconds:.2f} ms of CPU per file; parent {few >> 20} MiB, then {many >> 20} MiB")
    assert many - few < SLACK + BYTES_PER_FILE * MANY


_LISTING = """
import json, re, sys
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.rows import bundle_units, rows_of
from sbbf_tool.spark.session import session
count, blocks = int(sys.argv[1]), sys.argv[2]
spark = session("local[2]", {"spark.local.dir": blocks, "spark.sql.warehouse.dir": blocks})
names = spark.range(count).selectExpr("concat('/lake/', lpad(id, 10, '0'), '-0123456789abcdef.snappy.parquet') as path", "id as bytes")
files = pipeline.discover(spark, names)
bundles = bundle_units(files, ListedFile, None, None, files.count())
tasks = bundles.rdd.getNumPartitions()
bundled = bundles.selectExpr("sum(size(units))").collect()[0][0]
received = sum(1 for _ in rows_of(files, ListedFile))
peak = int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) << 10
print(json.dumps({"tasks": tasks, "bundled": bundled, "received": received, "peak": peak}))
spark.stop()
"""


def test_a_listing_of_any_size_passes_the_driver(tmp_path):
    """Each row passes the driver once, as a stream; `spark.driver.maxResultSize` has its default."""
    pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", _LISTING, str(LISTING_ROWS), str(tmp_path)], cwd=tmp_path, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{LISTING_ROWS:,} rows: {1e6 * seconds / LISTING_ROWS:.1f} us of CPU per row; driver {result['peak'] >> 20} MiB")
    assert (result["bundled"], result["received"], result["tasks"]) == (LISTING_ROWS, LISTING_ROWS, min(-(-LISTING_ROWS // 1000), 1000))
    assert result["peak"] < 400 << 20
