"""Filters of a whole lake with Spark: verbs, carried to files on executors.

`discover` lists files, `run` carries a verb to each (`pipeline`), and `probe_keys` looks up the
keys of a DataFrame (`lookup`).

- `java`, `session`: find Java, start Spark, and reduce its log
- `source` (`views`): `spark.read.format("sbbf")`, the reports of `inspect` and `check` as rows
- `functions`: functions of SQL that read filters
- `pipeline` (`listing`, `bundles`, `rows`): list files, and carry a verb to each
- `lookup` (`key_types`, `key_rows`, `key_finder`): look up the keys of a DataFrame
- `runner` (`jobs`): Spark as a runner of commands and of `sbbf_tool.run`
- `causes`: Spark's errors as errors of this package; Ctrl-C and SIGTERM
- `shipping`: send this package to executors that do not have it
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from sbbf_tool.spark.lookup import probe_keys
from sbbf_tool.spark.pipeline import discover, run
from sbbf_tool.spark.session import describe_missing_data_sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["discover", "probe_keys", "register", "run"]


def register(spark: SparkSession) -> None:
    """Register `spark.read.format("sbbf")` and the functions of SQL in this session: see
    `sbbf_tool.spark.functions`.

    Spark finds the format without this, if it can import the module `pyspark_sbbf`. PySpark 3.5 has
    no data sources in Python: there, the functions are registered, and a warning says so.
    """
    from pyspark.errors import PySparkException

    from sbbf_tool.spark.functions import register_functions

    register_functions(spark)
    if (missing := describe_missing_data_sources()) is not None:
        warnings.warn(missing, stacklevel=2)
        return
    from sbbf_tool.spark.source import SbbfDataSource

    try:
        spark.dataSource.register(SbbfDataSource)
    except PySparkException as error:
        # Spark 4.0 has already found the format, and rejects a second registration.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
