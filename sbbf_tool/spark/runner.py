"""Spark as a runner of the commands and of `sbbf_tool.run`: it carries a verb as `pipeline` does,
and iterates over the rows."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow.compute as pc

from sbbf_tool.reports.plain import from_batch
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.running.discover import skip
from sbbf_tool.spark.bundles import Listing
from sbbf_tool.spark.causes import (
    cancel_all_jobs,
    is_classic,
    keep_interrupt_handler,
    quiet_pyspark,
)
from sbbf_tool.spark.jobs import Jobs
from sbbf_tool.spark.listing import GivenNames, list_names, table_of
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.session import is_connect, session
from sbbf_tool.spark.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")


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
        with keep_interrupt_handler(), quiet_pyspark():
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
            cancel_all_jobs(self._spark)
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
        files = rows_of(self._list(selection, links=links), ListedFile)
        return map(GivenNames(selection.names).name_file, files)

    def run(self, selection: Selection, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Work on each file; see `Runner.run`."""
        progress = self.progress
        self._begin("listing files")
        work = work.on(selection)
        if selection.is_listed_here:
            names = GivenNames(())
            listing = Listing(self.spark, table_of(selection.files()))
        else:
            names = GivenNames(selection.names)
            listing = Listing.of(self._list(selection, links=work.changes), keep=True)
        if progress is not None:
            progress.total = listing.size[1:3]
        for row in Jobs(listing, work, names).rows(progress, self.rest):
            if progress is not None:
                progress.finish_file()
            yield row
        if listing.size.rows > listing.size.files:
            for table in listing.tables():
                files = from_batch(ListedFile, table.filter(pc.is_valid(table["skipped"])))
                yield from map(skip, map(names.name_file, files))
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
