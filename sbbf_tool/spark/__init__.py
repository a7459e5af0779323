"""The filters of a whole lake, by Spark: the same operations that the command line calls, on executors.

- `java`, `session` (`scratch`): a Spark to work with, found, started, quiet
- `source` (`options`, `views`, `pushed`): `spark.read.format("sbbf")`, what `inspect` and `check` know as rows
- `pipeline` (`rows`, `progress`), and `runner` for the commands: stages that read, and that add filters
- `shipping`: the package itself, for executors that do not have it
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `spark.read.format("sbbf")` known to this session. Where the module `pyspark_sbbf` can be imported, Spark finds it by itself."""
    from pyspark.errors import PySparkException

    from sbbf_tool.spark.source import SbbfDataSource

    try:
        spark.dataSource.register(SbbfDataSource)
    except PySparkException as error:
        # Spark 4.0 has found it by itself, and takes no other in its place.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
