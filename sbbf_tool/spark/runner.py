"""Spark as a runner of the commands and of `sbbf_tool.run`: it carries a verb as `pipeline` does,
and iterates over the rows."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.running.discover import skip
from sbbf_tool.spark.bundles import Listing
from sbbf_tool.spark.causes import cancel_jobs, is_classic, keep_interrupt_handler, quiet_pyspark
from sbbf_tool.spark.listing import list_names, table_of
from sbbf_tool.spark.pipeline import map_work
from sbbf_tool.spark.rows import rows_of, stream_rows
from sbbf_tool.spark.session import is_connect, session
from sbbf_tool.spark.shipping import ship

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")
_SECONDS = 0.5
"""Between two looks at how far the executors are. They add to accumulators when a task ends."""


class Spark:
    """Spark as a runner; a session that it starts ends with the block."""

    on_cluster = True
    most_files: int | None = 100_000

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        progress: RunProgress | None = None,
        *,
        stays: bool = False,
    ) -> None:
        """With `stays`, the session is kept after a block, for the next one, until `close`."""
        self.progress = progress
        """Progress of the next run, which the runner sets; None if it is not shown."""
        self.rest: list[Any] = []
        """Always empty: outcomes that Spark has are yielded, and those of tasks that it ends are
        lost."""
        self._session_options = master, conf
        self._stays = stays
        self._spark: SparkSession | None = None
        self._is_ours = False

    def __enter__(self) -> Spark:
        if self._spark is not None:
            return self
        # Several Python objects can represent one session, so a comparison of objects could stop a
        # session of the caller.
        self._is_ours = _active() is None
        self._begin("starting Spark")
        with keep_interrupt_handler():
            self._spark = session(*self._session_options)
        if is_connect(self._session_options[0]):
            # A Spark Connect server may not have this package, so it is sent there.
            ship(self._spark)
        if self._is_ours and is_classic(self._spark):
            context = self._spark.sparkContext
            # Errors are raised here and reported in one line; the log would print them too, with
            # traces of Java and Python.
            context.setLogLevel("FATAL")
            # So would the server that receives accumulators, when the connection to the JVM is
            # lost.
            context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._spark is None:
            return
        error = exc_info[1] if len(exc_info) > 1 else None
        is_interrupt = isinstance(error, BaseException) and not isinstance(error, Exception)
        if is_interrupt:
            cancel_jobs(self._spark)
        if not self._stays:
            self.close()

    def close(self) -> None:
        """End the session if the runner has started it."""
        if self._is_ours and self._spark is not None:
            with quiet_pyspark(), suppress(Exception):  # the driver's JVM may have ended
                self._spark.stop()
        self._spark = None

    @property
    def spark(self) -> SparkSession:
        """The session, while the block runs."""
        assert self._spark is not None
        return self._spark

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        """List the files of a run on an executor; see `pipeline.discover`."""
        if selection.is_listed_here:
            return selection.files()
        return rows_of(self._list(selection, links=links), ListedFile)

    def run(self, selection: Selection, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Work on each file; see `Runner.run`. Rows are in any order."""
        progress = self.progress
        tally = None
        if is_classic(self.spark):  # a client of Spark Connect has no accumulators
            tally = ExecutorCounts(self.spark.sparkContext)
        self._begin("listing files")
        work = work.on(selection)
        if selection.is_listed_here:
            listing = Listing(self.spark, table_of(selection.files()))
        else:
            listing = Listing.of(self._list(selection, links=work.changes), keep=True)
        if progress is not None:
            progress.total = listing.size[1:3]
        with _update_progress(tally, progress):
            count = None if tally is None else tally.add
            packs = map_work(listing, work, count=count, packs=True)
            for row in stream_rows(packs, work.row, listing.size.rows):
                if tally is None and progress is not None:
                    progress.finish_file()
                yield row
        yield from map(skip, selection.other_rows(work.needs))

    def _list(self, selection: Selection, *, links: bool) -> DataFrame:
        return list_names(
            self.spark, list(selection.names), selection.where, links=links, must_exist=False
        )

    def _begin(self, step: str) -> None:
        if self.progress is not None:
            self.progress.step = step


def _active() -> SparkSession | None:
    """Return the active session of this process, or None; a process that has not imported PySpark
    has none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


class ExecutorCounts:
    """Count of what the executors have done so far. Files of tasks that run twice count twice."""

    def __init__(self, context: SparkContext) -> None:
        self.files = context.accumulator(0)
        self.bytes = context.accumulator(0)

    def add(self, num_bytes: int) -> None:
        """Count a file of this many bytes as done."""
        self.files.add(1)
        self.bytes.add(num_bytes)


@contextmanager
def _update_progress(tally: ExecutorCounts | None, progress: RunProgress | None) -> Iterator[None]:
    """Set the files and bytes of `progress` from another thread while the block runs."""
    if tally is None or progress is None:
        yield
        return

    def update() -> None:
        files, num_bytes = progress.total or (tally.files.value, tally.bytes.value)
        progress.files_done = min(tally.files.value, files)
        progress.bytes_done = min(tally.bytes.value, num_bytes)

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
