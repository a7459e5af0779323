"""Progress of a run: executors add to accumulators when a task ends, and the driver reads them twice a second."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from sbbf_tool.reports.rows import Row
from sbbf_tool.verbs.add_filter import AddReport

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from sbbf_tool.running.progress import RunProgress

Progress = Callable[[int, int, int], None]
"""Function that takes the files, filters and bytes added so far. Tasks that run twice count twice."""

_SECONDS = 0.5


class Tally:
    """Count of what the executors have done so far."""

    def __init__(
        self, files: Accumulator[int], file_bytes: Accumulator[int], filters: Accumulator[int], bytes_added: Accumulator[int]
    ) -> None:
        self.files, self.file_bytes, self.filters, self.bytes_added = files, file_bytes, filters, bytes_added

    @classmethod
    def of(cls, spark: SparkSession) -> Tally | None:
        """Create a tally; return None for a client of Spark Connect, which has no accumulators."""
        try:
            context = spark.sparkContext
        except Exception:  # the kind of error depends on the version
            return None
        return cls(*(context.accumulator(0) for _ in range(4)))

    def add(self, row: Row[object], num_bytes: int | None) -> None:
        """Count a file of this many bytes as done, with what its row says."""
        self.files.add(1)
        self.file_bytes.add(num_bytes or 0)
        if isinstance(row.report, AddReport):
            self.filters.add(len(row.report.filters))
            self.bytes_added.add(row.report.bytes_added)


@contextmanager
def report_progress(tally: Tally | None, progress: Progress | None) -> Iterator[None]:
    """Call `progress` from another thread while the block runs, and once more at its end."""
    if tally is None or progress is None:
        yield
        return
    with _watch(lambda: progress(tally.files.value, tally.filters.value, tally.bytes_added.value)):
        yield


@contextmanager
def update_progress(tally: Tally | None, progress: RunProgress | None) -> Iterator[None]:
    """Set the files and bytes of `progress` from another thread while the block runs."""
    if tally is None or progress is None:
        yield
        return

    def update() -> None:
        # A task that runs twice counts its files twice.
        files, num_bytes = progress.total or (tally.files.value, tally.file_bytes.value)
        progress.files_done = min(tally.files.value, files)
        progress.bytes_done = min(tally.file_bytes.value, num_bytes)

    with _watch(update):
        yield


@contextmanager
def _watch(report: Callable[[], None]) -> Iterator[None]:
    done = Event()

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
