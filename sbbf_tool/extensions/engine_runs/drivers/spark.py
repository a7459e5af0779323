"""Spark (parquet-java): counts every row of a row group that it did not skip.

The column index, which lets it skip pages, is off, so that whole row groups are counted.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql.types import StructType

from sbbf_tool.extensions.engine_runs.dialects import SparkDialect, escape_glob
from sbbf_tool.extensions.engine_runs.measure import (
    Counts,
    Job,
    QueryCondition,
    RowDigest,
    count_row_groups,
)
from sbbf_tool.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkDriver:
    version = pyspark.__version__

    def __init__(self, request: QueryCondition) -> None:
        self._request = request
        self._dialect = SparkDialect()
        settings = {
            "spark.driver.memory": "2g",
            "spark.local.dir": request.scratch,
            "spark.sql.warehouse.dir": os.path.join(request.scratch, "warehouse"),
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.session.timeZone": "UTC",
            # Hadoop does not count the bytes of such reads.
            "spark.hadoop.parquet.hadoop.vectored.io.enabled": "false",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }
        self._session = session("local[1]", settings)

    def run(self, job: Job, rows: RowDigest) -> Counts:
        reader = self._session.read.option("parquet.filter.columnindex.enabled", False)
        paths = list(map(escape_glob, job.files))
        left_out: list[str] = []
        try:
            frame = reader.parquet(*paths)
        except AnalysisException:
            # Spark refuses files with a type that it lacks, whichever columns are read.
            schema, left_out = self._readable_schema(job.files[0])
            if not left_out or self._request.path[0] in left_out:
                raise
            frame = reader.schema(schema).parquet(*paths)
        column = self._dialect.reference(self._request.path)
        kind = frame.selectExpr(column).schema[0].dataType.simpleString()
        matching = frame.where(self._dialect.condition(column, kind, [self._request.text]))
        before = self._bytes_read()
        with rows.timed():
            for row in matching.toLocalIterator():
                rows.add(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        counts = Counts(bytes_read=self._bytes_read() - before, columns_left_out=left_out)
        counts.rows_scanned = _rows_scanned(matching)
        if counts.rows_scanned is not None:
            counts.row_groups_read = count_row_groups(counts.rows_scanned, job.sizes)
        return counts

    def _readable_schema(self, file: str) -> tuple[StructType, list[str]]:
        """Return the schema of the columns whose types Spark has, and the names of the others;
        PySpark has no interface for this."""
        jvm = self._session._jvm
        assert jvm is not None
        parquet = jvm.org.apache.parquet
        state = self._session._jsparkSession.sessionState()
        path = jvm.org.apache.hadoop.fs.Path(file)
        source = parquet.hadoop.util.HadoopInputFile.fromPath(path, state.newHadoopConf())
        reader = parquet.hadoop.ParquetFileReader.open(source)
        try:
            stored = reader.getFooter().getFileMetaData().getSchema()
        finally:
            reader.close()
        datasource = jvm.org.apache.spark.sql.execution.datasources.parquet
        converter = datasource.ParquetToSparkSchemaConverter(state.conf())
        schema = StructType()
        left_out = []
        for number in range(stored.getFieldCount()):
            fields = jvm.java.util.Collections.singletonList(stored.getType(number))
            try:
                column = converter.convert(parquet.schema.MessageType("column", fields))
            except AnalysisException:
                left_out.append(str(stored.getType(number).getName()))
                continue
            readable = StructType.fromJson(json.loads(column.json()))
            schema = StructType(schema.fields + readable.fields)
        return schema, left_out

    def _bytes_read(self) -> int:
        """Return the bytes that Hadoop's file systems read in this process."""
        jvm = self._session._jvm
        assert jvm is not None
        statistics = jvm.org.apache.hadoop.fs.FileSystem.getAllStatistics()
        return sum(
            int(statistics.get(number).getBytesRead()) for number in range(statistics.size())
        )


def _rows_scanned(frame: DataFrame) -> int | None:
    """Return the rows that the scan of an executed query returned; the metrics have no public
    interface."""
    leaves = frame._jdf.queryExecution().executedPlan().collectLeaves()
    if not leaves.size():
        return 0
    metric = leaves.apply(0).metrics().get("numOutputRows")
    return int(metric.get().value()) if metric.isDefined() else None
