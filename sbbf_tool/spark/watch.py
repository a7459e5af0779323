"""Filters for files as they arrive in a folder: Structured Streaming says which are new, the pipeline does them.

Spark lists the folder and remembers in the checkpoint what it has seen, so that a killed watch goes on where it was; no content is read
for it. A file is done under its name once: that it was rewritten, by this tool above all, makes it no new one. A file that is still being
written when it is seen fails, is told of, and is done when it has changed: see `arrivals`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.lake import FileOutcome
from sbbf_tool.reports.rows import FAILED
from sbbf_tool.runner.discover import listed, path_of, skip_link
from sbbf_tool.runner.partitions import Predicate
from sbbf_tool.runner.plan import Wish
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.arrivals import Arrivals
from sbbf_tool.spark.rows import rows_of, spark_errors
from sbbf_tool.storage import places
from sbbf_tool.storage.listing import is_linked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

MOST_FILES = 1000

_LISTING = "path string, modificationTime timestamp, length bigint, content binary"
_NEVER = "36500d"
"""Spark passes over files that are so much older than the newest one; one that is moved here may have any age."""
_WAIT = 0.5
_EMPTY = "it has no bytes yet; it is done when it has"


def watch(
    spark: SparkSession,
    folder: str,
    wish: Wish,
    checkpoint: str,
    *,
    every: float | None = None,
    most_files: int = MOST_FILES,
    where: Predicate | None = None,
) -> Iterator[FileOutcome]:
    """What becomes of each file of a folder, as it is done: of those that are there now, and of new ones each `every` seconds.

    Without `every` it ends when all that is there is done. At most `most_files` files are one step, after which the checkpoint is
    renewed; `where` chooses partitions by their folders. A file that could not be done is answered again when it was tried again.
    Not by Spark Connect. Raises UsageError, UnreadableError (no such folder) and SbbfError, where Spark fails.
    """
    below = None
    if "://" not in folder:
        folder = below = places.absolute(path_of(folder))
        if not os.path.isdir(folder):
            raise UnreadableError("no such folder", file=folder)
    watcher = _Watcher(spark, wish, Arrivals(checkpoint), where, below)
    with spark_errors():
        query = watcher.start(folder, every, most_files)
        try:
            yield from watcher.outcomes(query, every)
        finally:
            with suppress(Exception):  # on the way out, perhaps since Spark itself is gone
                query.stop()


@dataclass
class _Watcher:
    """Batches come in a thread of Spark's; what was tried before is tried again in ours, never both at a time."""

    spark: SparkSession
    wish: Wish
    arrivals: Arrivals
    where: Predicate | None
    below: str | None
    """The folder, where it is one of this machine: files that a link below it leads to are skipped."""
    _done: SimpleQueue[FileOutcome] = field(default_factory=SimpleQueue)
    _working: Lock = field(default_factory=Lock)

    def start(self, folder: str, every: float | None, most_files: int) -> StreamingQuery:
        listing = (
            self.spark.readStream.format("binaryFile")
            .schema(_LISTING)
            .option("recursiveFileLookup", "true")
            .option("pathGlobFilter", "*.parquet")
            .option("maxFilesPerTrigger", most_files)
            .option("maxFileAge", _NEVER)
            .load(folder)
            .drop("content")
        )
        stream = listing.writeStream.foreachBatch(self._batch).option("checkpointLocation", self.arrivals.stream)
        return (stream.trigger(availableNow=True) if every is None else stream.trigger(processingTime=f"{every:g} seconds")).start()

    def outcomes(self, query: StreamingQuery, every: float | None) -> Iterator[FileOutcome]:
        yield from self._again(all_of_them=True)
        looked = monotonic()
        while query.isActive:
            with suppress(Empty):
                yield self._done.get(timeout=_WAIT)
            if every is not None and monotonic() - looked > every:
                yield from self._again()
                looked = monotonic()
        query.awaitTermination()  # raises what ended it
        yield from self._told()
        yield from self._again()

    def _batch(self, frame: DataFrame, number: int) -> None:
        with self._working:
            rows = pipeline.add_filters(frame.sparkSession, frame, self.wish, where=self.where, below=self.below)
            outcomes = list(rows_of(rows, FileOutcome))
            known = {outcome.path for outcome in outcomes}
            arrived, through = self.arrivals.arrived()
            outcomes += self._left_out(path for path in arrived if path not in known and (self.where is None or self.where.accepts(path)))
            self.arrivals.settle(outcomes, through)
        for outcome in outcomes:
            self._done.put(outcome)

    def _left_out(self, paths: Iterable[str]) -> list[FileOutcome]:
        """The outcomes of files that Spark listed and left out of its batch, being empty then."""
        sizes = {path: None if self._is_linked(path) else listed(path).bytes for path in paths}
        empty = [FileOutcome(path, FAILED, _EMPTY, UnreadableError.exit_code, 0.0) for path, size in sizes.items() if size == 0]
        return empty + self._filled([path for path, size in sizes.items() if size != 0])

    def _again(self, *, all_of_them: bool = False) -> Iterator[FileOutcome]:
        """What could not be done, once more."""
        with self._working:
            outcomes = self._filled(self.arrivals.to_try_again(all_of_them=all_of_them))
            if outcomes:
                self.arrivals.settle(outcomes)
        yield from self._told()
        yield from outcomes

    def _filled(self, paths: list[str]) -> list[FileOutcome]:
        links = [path for path in paths if self._is_linked(path)]
        others = [path for path in paths if path not in links]
        done = list(rows_of(pipeline.add_filters(self.spark, others, self.wish), FileOutcome)) if others else []
        return done + [skip_link(FileOutcome, path) for path in links]

    def _is_linked(self, path: str) -> bool:
        return self.below is not None and is_linked(path, self.below)

    def _told(self) -> Iterator[FileOutcome]:
        while not self._done.empty():
            yield self._done.get()
