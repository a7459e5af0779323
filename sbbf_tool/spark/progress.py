"""Progress of a run: executors add to accumulators, which the driver reads twice a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from sbbf_tool.reports.add import AddRow

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

Progress = Callable[[int, int, int], None]
"""Function that takes the files, filters and bytes added so far. Tasks that run twice count twice."""

_SECONDS = 0.5


class Tally:
    """Count of what the executors have done so far."""

    def __init__(self, files: Accumulator[int], filters: Accumulator[int], bytes_added: Accumulator[int]) -> None:
        self.files, self.filters, self.bytes_added = files, filters, bytes_added

    @classmethod
    def of(cls, spark: SparkSession) -> Tally | None:
        """Create a tally; return None for a client of Spark Connect, which has no accumulators."""
        try:
            context = spark.sparkContext
        except Exception:  # the kind of error depends on the version
            return None
        return cls(context.accumulator(0), context.accumulator(0), context.accumulator(0))

    def add(self, row: AddRow) -> None:
        self.files.add(1)
        if row.report is not None:
            self.filters.add(len(row.report.filters))
            self.bytes_added.add(row.report.bytes_added)


@contextmanager
def report_progress(tally: Tally | None, progress: Progress | None) -> Iterator[None]:
    """Call `progress` from another thread while the block runs, and once more at its end."""
    if tally is None or progress is None:
        yield
        return
    done = Event()

    def report() -> None:
        progress(tally.files.value, tally.filters.value, tally.bytes_added.value)

    def watch() -> None:
        while not done.wait(_SECONDS):
            report()

    watcher = Thread(target=watch, name="sbbf-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        report()
