"""Many files on Spark: nothing that grows with their number is in the driver. The limits are
lowered, so that few files are many."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sbbf_tool.cli import run
from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.verbs.add_filter import AddReport
from support.lakes import assert_has_filters, digests, linked_files, small_files
from support.tables import each

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool import Edit, FilterSpec
from sbbf_tool import run as run_verb
from sbbf_tool.spark import bundles, pipeline
from sbbf_tool.spark import rows as spark_rows
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.runner import Spark
from sbbf_tool.verbs import AddFilter, Inspect

pytestmark = [pytest.mark.engines, pytest.mark.heavy]

FILES = 30
ON_DRIVER = 10
PER_TASK = 3


@pytest.fixture
def low_limits(monkeypatch):
    monkeypatch.setattr(spark_rows, "MOST_ON_DRIVER", ON_DRIVER)
    for module in (bundles, spark_rows):
        monkeypatch.setattr(module, "FILES_PER_TASK", PER_TASK)


@pytest.fixture
def rows_to_driver(spark, monkeypatch):
    """Record how many rows each Arrow table that the driver collects has."""
    counts = []
    frame_type = type(spark.range(1))
    to_arrow = frame_type.toArrow

    def record(frame):
        table = to_arrow(frame)
        counts.append(table.num_rows)
        return table

    monkeypatch.setattr(frame_type, "toArrow", record)
    return counts


def test_outcomes_of_changes_stay_on_the_cluster(spark, tmp_path, low_limits, rows_to_driver):
    lake, alone = small_files(tmp_path / "lake", FILES), small_files(tmp_path / "alone", FILES)
    outcomes = pipeline.run(
        AddFilter(FilterSpec("id")), pipeline.discover(spark, str(lake)), edit=Edit(in_place=True)
    )
    assert [row.status for row in rows_of(outcomes, Row[AddReport])] == ["ok"] * FILES
    assert [row.status for row in rows_of(outcomes, Row[AddReport])] == ["ok"] * FILES, (
        "the same outcomes, not a second run"
    )
    assert max(rows_to_driver) <= ON_DRIVER + 1
    assert_has_filters(lake, ("id",))
    assert run(["add-filter", str(alone), "-c", "id", "--in-place"]) == 0
    assert digests(lake) == digests(alone)
    again = pipeline.run(
        AddFilter(FilterSpec("id")), pipeline.discover(spark, str(lake)), edit=Edit(in_place=True)
    )
    assert [row.status for row in rows_of(again, Row[AddReport])] == ["skipped"] * FILES


@each("method", {"of the listing": "toLocalIterator", "of the jobs": "collect"})
def test_results_that_do_not_arrive_are_an_error(
    spark, tmp_path, capsys, monkeypatch, low_limits, method
):
    lake = linked_files(tmp_path / "lake", FILES)
    frame_type = type(spark.range(1))
    to_list = getattr(frame_type, method)

    def lose_the_last(frame, **options):
        rows = list(to_list(frame, **options))
        if "rows" in frame.columns:
            rows.pop()
        return rows if method == "collect" else iter(rows)

    monkeypatch.setattr(frame_type, method, lose_the_last)
    with pytest.raises(SbbfError, match="Spark returned only"):
        list(run_verb(Inspect(), lake, on=Spark()))
    code = run(["check", str(lake), "--quick", "--on", "spark"])
    printed = capsys.readouterr()
    assert code not in (0, 1)
    assert f"of {FILES} results" in printed.err
    assert "files: " not in printed.out


def test_a_generated_listing_is_counted_and_divided_on_the_cluster(
    spark, monkeypatch, rows_to_driver
):
    count = 10_000
    monkeypatch.setattr(spark_rows, "MOST_ON_DRIVER", 500)
    names = spark.range(count).selectExpr(
        "concat('file:/lake/', lpad(id, 9, '0'), '.parquet') as path", "id as bytes"
    )
    files = pipeline.discover(spark, names)
    frame = bundles.Listing.of(files).bundle(by_bytes=True)
    assert frame.rdd.getNumPartitions() == count // bundles.FILES_PER_TASK
    assert frame.selectExpr("sum(size(units))").collect()[0][0] == count
    assert max(rows_to_driver) <= 501
    assert sum(1 for _ in rows_of(files, ListedFile)) == count


LISTS_MANY = """\
from sbbf_tool.reports.plain import to_batch
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.spark import bundles, rows
from sbbf_tool.spark.session import session

def find(batches):
    for _ in batches:
        for first in range(0, 300_000, 10_000):
            yield to_batch(ListedFile, [ListedFile(f"/lake/{first + at}") for at in range(10_000)])

frame = rows.map_in_arrow(session("local[1]").range(1), find, rows.ddl_of(ListedFile))
print(bundles.Listing.of(frame, keep=True).size.files)
"""


def test_workers_print_nothing_of_a_listing_that_the_driver_does_not_keep(tmp_path):
    listed = subprocess.run(
        [sys.executable, "-c", LISTS_MANY], cwd=tmp_path, capture_output=True, text=True
    )
    assert listed.stdout == "300000\n"
    assert "Traceback" not in listed.stderr
