"""The filters of a whole lake, by Spark: the same operations that the command line calls, on executors.

- `java`, `session`: a Spark to work with, found, started, quiet
- `source` (`options`, `views`, `pushed`): `spark.read.format("sbbf")`, what `inspect` and `check` know as rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("sbbf")` known to this session. Where the module `pyspark_sbbf` can be imported, Spark finds it by itself."""
    from sbbf_tool.spark.source import SbbfDataSource

    spark.dataSource.register(SbbfDataSource)
