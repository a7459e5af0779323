"""Spark as a runner of the commands, with the stages of `pipeline`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.reports.arrow import spelling
from sbbf_tool.reports.rows import FileRow, ListedFile
from sbbf_tool.runner.fill import AddToFile
from sbbf_tool.runner.verify import VerifyFile
from sbbf_tool.spark import pipeline
from sbbf_tool.spark.listing import frame_of, list_table
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.spark.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sbbf_tool.runner.selection import Selection
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)


class SparkRunner:
    """Spark as a runner; a session that it starts ends with the block. `spell` renders the hints in rows."""

    most_files: int | None = None

    def __init__(
        self,
        master: str | None = None,
        conf: Mapping[str, str] | None = None,
        remote: str | None = None,
        spell: Callable[[str], str] | None = None,
    ) -> None:
        self._session_options = master, conf, remote
        self._spark: SparkSession | None = None
        self._is_ours = False
        self._spell = spell

    def __enter__(self) -> SparkRunner:
        # Several Python objects can represent one session, so a comparison of objects could stop a session of the caller.
        self._is_ours = _active() is None
        self._spark = session(*self._session_options)
        if self._session_options[2] is not None:
            # A Spark Connect server may not have this package, so it is sent there.
            from sbbf_tool.spark.shipping import ship

            ship(self._spark)
        if self._is_ours:
            with suppress(Exception):  # a client of Spark Connect has no context, and no log
                # Errors are raised here and reported in one line; the log would print them too, with traces of Java and Python.
                self._spark.sparkContext.setLogLevel("FATAL")
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._spark is not None and self._is_ours:
            self._spark.stop()

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        """List the files of a run on an executor; see `pipeline.discover`."""
        if selection.table is not None:
            return selection.files()
        assert self._spark is not None
        return rows_of(pipeline.discover(self._spark, selection.names, selection.where, links=links), ListedFile)

    def run(self, selection: Selection, work: Work[Row]) -> Iterator[Row]:
        """Work on each file; see `Runner.run`. Rows are in any order."""
        assert self._spark is not None
        before = spelling.set(self._spell)
        try:
            frame = _frame(self._spark, selection, work)
        finally:
            spelling.reset(before)
        return rows_of(frame, work.row)


def _frame(spark: SparkSession, selection: Selection, work: Work[Row]) -> DataFrame:
    table_files = None
    if selection.table is not None:
        selection.ensure_columns(work.columns)
        table_files = selection.table_files()
    if selection.listing is not None:
        files = frame_of(spark, selection.listing)
    elif selection.table is None:
        files = pipeline.discover(spark, selection.names, selection.where, links=work.changes)
    else:
        files = list_table(spark, selection)
    if isinstance(work.fields, VerifyFile):
        verify_file = work.fields
        return pipeline.verify(
            files,
            verify_file.columns,
            keys=verify_file.keys,
            max_page_bytes=verify_file.max_page_bytes,
            table_files=table_files,
            strict=verify_file.strict,
        )
    if isinstance(work.fields, AddToFile):
        return pipeline.add_filters(spark, files, work.fields.spec, work.fields.edit, table_files=table_files)
    return pipeline.run(files, work.of_table(table_files))


def _active() -> SparkSession | None:
    """Return the active session of this process, or None; a process that has not imported PySpark has none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()
