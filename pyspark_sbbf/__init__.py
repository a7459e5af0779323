"""Where Spark looks for `spark.read.format("sbbf")`: it asks every module named `pyspark_*` for its `DefaultSource`."""

from sbbf_tool.spark.source import SbbfDataSource as DefaultSource

__all__ = ["DefaultSource"]
