"""The lake by Spark, for the commands: the engine whose stages are those of `pipeline`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.lake import PlannedFile
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner.engine import Lake
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = TypeVar("Row", bound=FileRow)


class SparkEngine:
    """See `runner.engine.Engine`; the session, where it was not there before, ends with the block."""

    def __init__(self, master: str | None = None, conf: Mapping[str, str] | None = None, remote: str | None = None) -> None:
        self._wish = master, conf, remote
        self._spark: SparkSession | None = None
        self._is_ours = False

    def __enter__(self) -> SparkEngine:
        # One session may come as several objects of Python's: to compare them would have us stop what is not ours.
        self._is_ours = _active() is None
        self._spark = session(*self._wish)
        if self._wish[2] is not None:
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

    def read(self, lake: Lake, work: Callable[[str], Row], row: type[Row], *, reads_data: bool = False) -> Iterator[Row]:
        return rows_of(pipeline.read(self._files(lake), work, row, reads_data=reads_data), row)

    def verify(self, lake: Lake, columns: tuple[str, ...] = ()) -> Iterator[VerifyRow]:
        return rows_of(pipeline.verify(self._files(lake), columns, keys=lake.keys, max_page_bytes=lake.limit), VerifyRow)

    def plan(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[PlannedFile]:
        return rows_of(pipeline.plan(self._files(lake, links=True), spec, edit), PlannedFile)

    def add_filters(self, lake: Lake, spec: FilterSpec, edit: Edit) -> Iterator[AddRow]:
        assert self._spark is not None
        return rows_of(pipeline.add_filters(self._spark, lake.names, spec, edit, where=lake.where), AddRow)

    def _files(self, lake: Lake, *, links: bool = False) -> DataFrame:
        assert self._spark is not None
        return pipeline.discover(self._spark, lake.names, lake.where, links=links)


def _active() -> SparkSession | None:
    """The session that this process had before; a process that has not imported PySpark has none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
