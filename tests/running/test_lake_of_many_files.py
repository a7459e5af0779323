"""A flat folder of many small files on Spark, and a listing of any size: memory of the driver is
bounded.

`SBBF_MANY_FILES=300000` chooses the full size, and `SBBF_LISTED_FILES=10000000` that of the
generated listing. All files are hard links, so the change of `add-filter` is a dry run.
`test_memory_of_many_files` has this machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from support.buckets import environment
from support.clusters import settings_of_spark
from support.http_site import serve
from support.lakes import linked_files

pytestmark = pytest.mark.nightly(minutes=8)
pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

FEW = 200
MANY = int(os.environ.get("SBBF_MANY_FILES", "3000"))
LISTING_ROWS = int(os.environ.get("SBBF_LISTED_FILES", "150000"))
LISTED_OBJECTS = 300_000
BYTES_PER_FILE = 100
"""Of the driver. It counts from the peak of a run over few files; `SLACK` is what reports in
flight, and Spark's modules, may add to it."""
SLACK = 48 << 20

_PEAK = (
    'print("VmHWM", int(re.search(r"VmHWM:\\s*(\\d+) kB", '
    'open("/proc/self/status").read())[1]) << 10, file=sys.stderr)\n'
)
_PROGRAM = (
    "import re, sys\nfrom sbbf_tool.cli import run\ncode = "
    f"run(sys.argv[1:])\n{_PEAK}sys.exit(code)\n"
)
COMMANDS = {
    "inspect": (["inspect"], "{} done"),
    "probe": (["probe", "-c", "id", "--value", "7"], "Queried 1 value in {}"),
    "check": (["check", "--quick"], "{} done"),
    "add-filter": (["add-filter", "-c", "id", "-c", "name", "--in-place", "-n"], "{} done"),
}


@pytest.fixture(scope="module")
def lakes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("lakes")
    return {count: linked_files(folder / str(count), count) for count in (FEW, MANY)}


def run_program(folder: Path, program: str, *words: str) -> tuple[str, int]:
    """Return what the program printed, and the peak of its memory."""
    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr.rsplit("VmHWM", 1)[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_held_per_file(lakes, tmp_path, name):
    (command, *options), words = COMMANDS[name]
    peaks = []
    for count, lake in lakes.items():
        settings = [
            f"spark.local.dir={tmp_path / 'blocks'}",
            f"spark.sql.warehouse.dir={tmp_path / 'warehouse'}",
        ]
        runner = ["--on", "spark:local[2]", *settings_of_spark(tmp_path, settings)]
        output, peak = run_program(tmp_path, _PROGRAM, command, str(lake), *options, *runner)
        assert words.format(f"{count:,}") in output
        peaks.append(peak)
    assert peaks[1] - peaks[0] < SLACK + BYTES_PER_FILE * MANY


_LISTING = f"""
import json, re, sys
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.bundles import Listing
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.session import session
names, blocks = sys.argv[1:]
spark = session("local[2]", {{"spark.local.dir": blocks, "spark.sql.warehouse.dir": blocks}})
if names.isdigit():
    name = "concat('/lake/', lpad(id, 10, '0'), '-0123456789abcdef.snappy.parquet') as path"
    names = spark.range(int(names)).selectExpr(name, "id as bytes")
files = pipeline.discover(spark, names)
bundles = Listing.of(files).bundle()
bundled = bundles.selectExpr("sum(size(units))").collect()[0][0]
listed = sum(1 for _ in rows_of(files, ListedFile))
print(json.dumps([bundles.rdd.getNumPartitions(), bundled, listed]))
{_PEAK}spark.stop()
"""


def test_a_listing_of_any_size_passes_the_driver(tmp_path):
    """Each row passes the driver once, as a stream; `spark.driver.maxResultSize` has its
    default."""
    output, peak = run_program(tmp_path, _LISTING, str(LISTING_ROWS), str(tmp_path))
    assert json.loads(output.splitlines()[-1]) == [
        min(-(-LISTING_ROWS // 1000), 1000),
        LISTING_ROWS,
        LISTING_ROWS,
    ]
    assert peak < 400 << 20


class Store(BaseHTTPRequestHandler):
    """A store that lists objects, and has none of them."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments: object) -> None:
        pass

    def do_GET(self) -> None:
        query = dict(parse_qsl(urlsplit(self.path).query))
        first = int(query.get("continuation-token", 0))
        end = min(first + 1000, LISTED_OBJECTS)
        parts = []
        for number in range(first, end):
            key = f"{query['prefix']}part-{number:010}-0123456789abcdef.snappy.parquet"
            parts.append(
                f"<Contents><Key>{key}</Key><LastModified>2025-01-01T00:00:00Z</LastModified>"
                f"<ETag>&quot;{number}&quot;</ETag><Size>{number + 1}</Size></Contents>"
            )
        parts.append(f"<KeyCount>{end - first}</KeyCount>")
        if end < LISTED_OBJECTS:
            parts.append(f"<NextContinuationToken>{end}</NextContinuationToken>")
        parts.append(f"<IsTruncated>{str(end < LISTED_OBJECTS).lower()}</IsTruncated>")
        body = f"<ListBucketResult>{''.join(parts)}</ListBucketResult>".encode()
        self.send_response_only(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_a_listing_of_a_store_passes_the_driver(tmp_path, monkeypatch):
    with serve(Store) as server:
        for name, value in environment(server.url).items():
            monkeypatch.setenv(name, value)
        output, peak = run_program(tmp_path, _LISTING, "s3://bucket/lake/", str(tmp_path))
    listing = [LISTED_OBJECTS // 1000, LISTED_OBJECTS, LISTED_OBJECTS]
    assert json.loads(output.splitlines()[-1]) == listing
    assert peak < 400 << 20
