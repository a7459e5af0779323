"""Filters of a whole lake with Spark: the operations of the command line, run on executors.

- `java`, `session` (`scratch`): find Java, start Spark, and reduce its log
- `source` (`options`, `views`, `pushed`): `spark.read.format("sbbf")`, the reports of `inspect` and `check` as rows
- `pipeline` (`rows`, `progress`): stages that read, and stages that add filters; `runner` runs them for the commands
- `shipping`: send this package to executors that do not have it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("sbbf")` in this session. Not needed if Spark can import the module `pyspark_sbbf`."""
    from pyspark.errors import PySparkException

    from sbbf_tool.spark.source import SbbfDataSource

    try:
        spark.dataSource.register(SbbfDataSource)
    except PySparkException as error:
        # Spark 4.0 has already found the format, and rejects a second registration.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
