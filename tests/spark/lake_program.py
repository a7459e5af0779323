"""A program that processes a lake through Spark, run by tests in a separate process: prints JSON on
its last line.

    lake_program.py ADDRESS LAKE [ship]

ADDRESS is a master, or the address of a Spark Connect server. With `ship`, the driver sends the
package to the executors.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def about_worker(batches: Iterator) -> Iterator:
    """Return the process of a worker, its parent, the location of the package, and the kernel."""
    import pyarrow as pa

    import sbbf_tool
    from sbbf_tool.bloom import kernels

    for _ in batches:
        about = [os.getpid(), os.getppid(), sbbf_tool.__file__, kernels.name()]
        yield pa.RecordBatch.from_pylist(
            [dict(zip(("pid", "parent", "place", "kernel"), about, strict=True))]
        )


def main(address: str, lake: str, how: str = "") -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from sbbf_tool.spark.session import session
    from sbbf_tool.spark.shipping import ship

    remote = address.startswith("sc://")
    spark = session(address, {"spark.ui.enabled": "false"})
    if how == "ship":
        ship(spark)
    from pyspark.sql.functions import col

    rows = spark.read.format("sbbf").option("filesPerTask", "1").load(lake)
    result = {
        "application": None if remote else spark.sparkContext.applicationId,
        "rows": [row.asDict(recursive=True) for row in rows.collect()],
        "chosen": rows.filter(col("file").endswith("events.parquet"))
        .filter("column = 'session'")
        .count(),
        "rules": [
            row.rule
            for row in spark.read.format("sbbf")
            .option("rules", "true")
            .load(lake)
            .select("rule")
            .collect()
        ],
        "workers": [
            row.asDict()
            for row in spark.range(0, 8, 1, 8)
            .mapInArrow(about_worker, "pid long, parent long, place string, kernel string")
            .collect()
        ],
    }
    print(json.dumps(result))
    spark.stop()


if __name__ == "__main__":
    # Functions of a program are sent to executors by value, and must not need this file there.
    main(*sys.argv[1:])
