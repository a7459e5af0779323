"""Filters of a whole lake with Spark: the same operations that the command line calls, on executors.

- `java`, `session` (`scratch`): find Java, start Spark, reduce its log
- `source` (`options`, `views`, `pushed`): `spark.read.format("sbbf")`, the reports of `inspect` and `check` as rows
- `pipeline` (`rows`, `progress`), and `runner` for the commands: stages that read, and stages that add filters
- `shipping`: send this package to executors that do not have it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("sbbf")` in this session. Spark finds it by itself where the module `pyspark_sbbf` can be imported."""
    from pyspark.errors import PySparkException

    from sbbf_tool.spark.source import SbbfDataSource

    try:
        spark.dataSource.register(SbbfDataSource)
    except PySparkException as error:
        # Spark 4.0 has found it by itself, and accepts no second registration.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
