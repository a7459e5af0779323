"""The module in which Spark finds `spark.read.format("sbbf")`: it looks for `DefaultSource` in
every module named `pyspark_*`."""

from sbbf_tool.spark.source import SbbfDataSource as DefaultSource

__all__ = ["DefaultSource"]
