"""Spark (parquet-java): counts every row of a row group that it did not skip.

The column index, which lets it skip pages, is off, so that whole row groups are counted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyspark

from sbbf_tool.engine_runs.dialects import SparkDialect
from sbbf_tool.engine_runs.measure import Counts, Job, Request, Rows, count_row_groups
from sbbf_tool.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Driver:
    version = pyspark.__version__

    def __init__(self, request: Request) -> None:
        self._request = request
        self._dialect = SparkDialect()
        settings = {
            "spark.driver.memory": "2g",
            "spark.local.dir": request.scratch,
            "spark.sql.warehouse.dir": os.path.join(request.scratch, "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.session.timeZone": "UTC",
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",  # Hadoop does not count the bytes of such reads
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        self._session = session("local[1]", settings)

    def run(self, job: Job, rows: Rows) -> Counts:
        frame = self._session.read.option("parquet.filter.columnindex.enabled", False).parquet(*map(_escape_glob, job.files))
        column = self._dialect.reference(self._request.path)
        kind = frame.selectExpr(column).schema[0].dataType.simpleString()
        matching = frame.where(self._dialect.condition(column, kind, [self._request.text]))
        before = self._bytes_read()
        with rows.timed():
            for row in matching.toLocalIterator():
                rows.add(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        bytes_read, scanned = self._bytes_read() - before, _rows_scanned(matching)
        read = None if scanned is None else count_row_groups(scanned, job.sizes)
        return Counts(row_groups_read=read, rows_scanned=scanned, bytes_read=bytes_read)

    def _bytes_read(self) -> int:
        """Return the bytes that Hadoop's file systems read in this process."""
        jvm = self._session._jvm
        assert jvm is not None
        statistics = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(int(statistics.get(number).getBytesRead()) for number in range(statistics.size()))


def _rows_scanned(frame: DataFrame) -> int | None:
    """Return the rows that the scan of an executed query returned; the metrics have no public interface."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    if not leaves.size():
        return 0
    metric = leaves.apply(0).metrics().get("numOutputRows")
    return int(metric.get().value()) if metric.isDefined() else None


def _escape_glob(path: str) -> str:
    return "".join(f"\\{letter}" if letter in "*?{}[]\\" else letter for letter in path)
