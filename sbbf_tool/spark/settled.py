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
from sbbf_tool.spark.arrow_frames import collect_arrow
from sbbf_tool.spark.interrupts import wait_for

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

Row = TypeVar("Row")
Batches = Iterator["pa.RecordBatch"]

MOST_ON_DRIVER = 100_000
"""Rows of a frame that the driver keeps: some 200 bytes each, of a listing or of outcomes."""
FILES_PER_TASK = 1_000
"""Files above which a run gets further tasks, so that a task's rows are a few megabytes and a lost task costs little."""
MOST_TASKS = 1_000
"""Most tasks that are made for the number of files alone. Spark chooses the ranges of paths from a sample of 100 paths per task, which it
collects on the driver: with 10,000 tasks, the default memory of a driver is not enough.
"""

PACKED = "num_rows bigint, rows binary"
"""Schema of packed rows: each row of it holds many rows, as a stream of Arrow."""


def is_many(count: int | None) -> bool:
    """Return whether so many rows stay on the cluster; an unknown number of them does not."""
    return (count or 0) > MOST_ON_DRIVER


def collect_few(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a frame; None if there are many."""
    rows: pa.Table = collect_arrow(frame.limit(MOST_ON_DRIVER + 1))
    return None if is_many(rows.num_rows) else rows


def keep_on_cluster(frame: DataFrame) -> DataFrame:
    """Compute the rows, and keep them where Spark finds them without computing them again."""
    try:
        has_folder = frame.sparkSession.sparkContext.getCheckpointDir() is not None
    except Exception:  # a client of Spark Connect has no context; it raises errors of several kinds
        has_folder = False
    if has_folder:
        return frame.checkpoint()
    try:
        return frame.localCheckpoint()
    except (AttributeError, NotImplementedError):  # Spark Connect has checkpoints since 4.0
        persisted_frame = frame.persist()
        persisted_frame.count()
        return persisted_frame


def pack_batches(batches: Batches) -> Batches:
    """Convert batches of any rows to rows of `PACKED`: to the JVM, and on the way to the driver, each is a single value."""
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="zstd" if pa.Codec.is_available("zstd") else None)
    for batch in batches:
        if batch.num_rows:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
                writer.write_batch(batch)
            yield pa.RecordBatch.from_pydict({"num_rows": [batch.num_rows], "rows": [sink.getvalue().to_pybytes()]})


def unpack_rows(packed_frame: DataFrame, row: type[Row]) -> Iterator[Row]:
    """Yield the rows of a frame of `PACKED`, which is kept, one partition after another. Raises SbbfError if some do not arrive."""
    import pyarrow as pa
    from pyspark.sql.functions import coalesce, lit
    from pyspark.sql.functions import sum as total

    sums = packed_frame.agg(coalesce(total("num_rows"), lit(0)).alias("rows"))
    expected = wait_for(packed_frame.sparkSession, sums.collect)[0]["rows"]
    received = 0
    for _, data in packed_frame.toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(bytes(data)) as reader:
            for batch in reader:
                received += batch.num_rows
                yield from from_batch(row, batch)
    if received != expected:
        raise SbbfError(
            f"Spark returned only {received:,} of {expected:,} results",
            hint="files that are published stay changed; run the command again",
        )


def count_tasks(cores: int, files: int | None, tasks_per_core: int) -> int:
    """Return the number of tasks for so many files, or for an unknown number of them."""
    return max(tasks_per_core * cores, min(-(-(files or 0) // FILES_PER_TASK), MOST_TASKS))
