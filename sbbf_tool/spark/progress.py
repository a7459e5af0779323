"""Progress of a run: executors add to accumulators when a task ends, and the driver reads them twice a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from sbbf_tool.running.progress import RunProgress

_SECONDS = 0.5


class Tally:
    """Count of what the executors have done so far. Files of tasks that run twice count twice."""

    def __init__(self, files: Accumulator[int], file_bytes: Accumulator[int]) -> None:
        self.files, self.file_bytes = files, file_bytes

    @classmethod
    def of(cls, spark: SparkSession) -> Tally | None:
        """Create a tally; return None for a client of Spark Connect, which has no accumulators."""
        try:
            context = spark.sparkContext
        except Exception:  # the kind of error depends on the version
            return None
        return cls(context.accumulator(0), context.accumulator(0))

    def add(self, num_bytes: int | None) -> None:
        """Count a file of this many bytes as done."""
        self.files.add(1)
        self.file_bytes.add(num_bytes or 0)


@contextmanager
def update_progress(tally: Tally | None, progress: RunProgress | None) -> Iterator[None]:
    """Set the files and bytes of `progress` from another thread while the block runs."""
    if tally is None or progress is None:
        yield
        return

    def update() -> None:
        files, num_bytes = progress.total or (tally.files.value, tally.file_bytes.value)
        progress.files_done = min(tally.files.value, files)
        progress.bytes_done = min(tally.file_bytes.value, num_bytes)

    def watch() -> None:
        while not done.wait(_SECONDS):
            update()

    done = Event()
    watcher = Thread(target=watch, name="sbbf-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        update()
