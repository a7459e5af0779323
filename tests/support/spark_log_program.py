"""Run queries of many kinds in a Spark of its own, which logs them: `python -m support.spark_log_program FOLDER LOGS SETTINGS`.

FOLDER has the Parquet files `a` and `b`. SETTINGS is JSON. The jobs of each query have its name as their description, in the log too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from sbbf_tool.spark.session import session


def main(folder: str, logs: str, settings: str) -> None:
    log_settings = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file:{logs}",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "1",
        "spark.ui.enabled": "false",
    }
    spark = session("local[1,3]", {**log_settings, **json.loads(settings)})
    first, second = (spark.read.parquet(f"{folder}/{name}.parquet") for name in "ab")
    text = spark.read.text(f"{folder}/text")
    second.createOrReplaceTempView("b")
    queries = {
        "equal": first.where("id = 501"),
        "in": first.where("name IN ('n1', 'nobody') AND id > 3").select("name"),
        "join": first.where("id = 15838").join(second.where("other = 8"), "id"),
        "union": first.where("id = 503").union(second.where("id = 503")),
        "shared": first.where("id = 504").groupBy("other").count(),
        "text": first.where("id = 505").join(text, first.name == text.value),
        "retried": first.where("id >= 0 AND other = 6").mapInArrow(fail_once, first.schema),
        "subquery": first.where("id = (SELECT max(id) FROM b WHERE other = 8)"),
    }
    counts = queries["shared"]
    queries["shared"] = counts.join(counts.withColumnRenamed("count", "again"), "other")
    for name, frame in queries.items():
        spark.sparkContext.setJobDescription(name)
        frame.collect()
    queries["equal"].collect()
    queries["join"].collect()  # its shuffled rows are reused
    cached = first.where("other = 5").cache()
    cached.count()
    cached.where("id = 509").collect()
    spark.stop()


def fail_once(batches: Iterator[object]) -> Iterator[object]:
    """Read the rows, and fail in the first attempt of a task."""
    from pyspark import TaskContext

    rows = list(batches)
    context = TaskContext.get()
    if context is not None and context.attemptNumber() == 0:
        raise RuntimeError("the first attempt fails")
    yield from rows


if __name__ == "__main__":
    main(*sys.argv[1:])
