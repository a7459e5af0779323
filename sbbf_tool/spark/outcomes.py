"""Rows that are computed once and then kept: few on the driver, many on the cluster, from where the driver streams them.

If an executor is lost, Spark computes a lazy frame again, from files that have changed; a unit of work could then be missing from both the
old and the new tasks. So listings and outcomes are kept. The driver has room for some; `spark.driver.maxResultSize` limits what one job may
send it. More rows stay in the checkpoint folder of the session, which survives the loss of executors, or else on the executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.errors import SbbfError
from sbbf_tool.reports.arrow import from_batch
from sbbf_tool.spark.causes import convert_errors
from sbbf_tool.spark.interrupts import is_classic, wait_for
from sbbf_tool.spark.rows import PACKED, collect_arrow, ddl_of, frame_of_arrow, map_in_arrow, pack_batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Row = TypeVar("Row")

MOST_ON_DRIVER = 100_000
"""Rows of a frame that the driver keeps: some 200 bytes each, of a listing or of outcomes."""
FILES_PER_TASK = 1_000
"""Files above which a run gets further tasks, so that a task's rows are a few megabytes and a lost task costs little."""


def collect_few(frame: DataFrame) -> pa.Table | None:
    """Compute the rows of a frame; return None if there are many."""
    rows: pa.Table = wait_for(frame.sparkSession, lambda: collect_arrow(frame.limit(MOST_ON_DRIVER + 1)))
    return None if rows.num_rows > MOST_ON_DRIVER else rows


def keep_on_cluster(frame: DataFrame) -> DataFrame:
    """Compute the rows, and keep them where Spark finds them without computing them again."""

    def keep() -> DataFrame:
        spark = frame.sparkSession
        if is_classic(spark) and spark.sparkContext.getCheckpointDir() is not None:
            return frame.checkpoint()
        try:
            return frame.localCheckpoint()
        except (AttributeError, NotImplementedError):  # Spark Connect has checkpoints since 4.0
            persisted_frame = frame.persist()
            persisted_frame.count()
            return persisted_frame

    return wait_for(frame.sparkSession, keep)


def compute_once(outcomes: DataFrame, row: type, count: int) -> DataFrame:
    """Run the work that changes files, and return its outcomes: up to 100,000 are kept on the driver, and more on the cluster.

    A lazy frame would be a second run at each action, which finds that every file is changed already.
    """
    if count > MOST_ON_DRIVER:
        return keep_on_cluster(outcomes)
    spark = outcomes.sparkSession
    return frame_of_arrow(spark, wait_for(spark, lambda: collect_arrow(outcomes)), ddl_of(row))


def rows_of(frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a frame on the driver, one partition after another."""
    return stream_rows(map_in_arrow(frame, pack_batches, PACKED), row)


def stream_rows(packed_frame: DataFrame, row: type[Row], count: int | None = None) -> Iterator[Row]:
    """Yield the rows of a frame of `PACKED`. If `count` is known, the executors compute so many rows first, and all at once.

    The driver holds the rows of about 1,000 files: all rows of a task come in one job, with those of other tasks. Which ones is
    decided by the number of the task alone: a task that is repeated, with other times in its rows, sends them in the same job again. Raises
    SbbfError if not all rows arrive.
    """
    import pyarrow as pa

    received = 0
    if count is not None:
        packed_frame = packed_frame.repartition(max(1, -(-count // FILES_PER_TASK)), "task")
    with convert_errors():
        packs = wait_for(packed_frame.sparkSession, lambda: packed_frame.toLocalIterator(prefetchPartitions=True))
        for _, data in packs:
            with pa.ipc.open_stream(bytes(data)) as reader:
                for batch in reader:
                    received += batch.num_rows
                    yield from from_batch(row, batch)
    if count is not None and received != count:
        raise SbbfError(
            f"Spark returned only {received:,} of {count:,} results",
            hint="files that are published stay changed; run the command again",
        )
