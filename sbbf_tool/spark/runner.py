"""Many files by Spark, for the commands: the runner whose stages are those of `pipeline`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.reports.rows import FileRow
from sbbf_tool.runner.fill import AddToFile
from sbbf_tool.runner.prove import VerifyFile
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sbbf_tool.runner.selection import Selection
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)


class SparkRunner:
    """Spark as a runner; the session, where it was not there before, ends with the block."""

    def __init__(self, master: str | None = None, conf: Mapping[str, str] | None = None, remote: str | None = None) -> None:
        self._wanted = master, conf, remote
        self._spark: SparkSession | None = None
        self._is_ours = False

    def __enter__(self) -> SparkRunner:
        # One session may come as several objects of Python's: to compare them would have us stop what is not ours.
        self._is_ours = _active() is None
        self._spark = session(*self._wanted)
        if self._wanted[2] is not None:
            # A server of Spark Connect is somebody else's machine: it gets the package from here.
            from sbbf_tool.spark.shipping import ship

            ship(self._spark)
        if self._is_ours:
            with suppress(Exception):  # a client of Spark Connect has no context, and no log
                # What fails is raised here and told in a line; the log would tell it before, with the traces of two languages.
                self._spark.sparkContext.setLogLevel("FATAL")
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._spark is not None and self._is_ours:
            self._spark.stop()

    def run(self, selection: Selection, work: Work[Row]) -> Iterator[Row]:
        """Work on each file; see `Runner.run`. Rows come in no order."""
        assert self._spark is not None
        files = pipeline.discover(self._spark, selection.names, selection.where, links=work.changes)
        if isinstance(work.fields, VerifyFile):
            frame = pipeline.verify(files, work.fields.columns, keys=work.fields.keys, max_page_bytes=work.fields.max_page_bytes)
        elif isinstance(work.fields, AddToFile):
            frame = pipeline.add_filters(self._spark, files, work.fields.spec, work.fields.edit)
        else:
            frame = pipeline.run(files, work)
        return rows_of(frame, work.row)


def _active() -> SparkSession | None:
    """The session that this process had before; a process that has not imported PySpark has none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
