"""Functions of SQL that read Bloom filters, usable with LATERAL over a table of paths; `register`
makes them known to a session.

    SELECT f.* FROM files, LATERAL sbbf_filters(files.path) AS f
    SELECT path FROM files WHERE sbbf_may_contain(path, 'user_id', 42)

They only read: Spark calls a function again at each action, and for each task that it retries or
duplicates. `sbbf_tool.spark.run` writes. Tasks call them, so executors need this package. A path is
a file, a folder or a glob; relative paths are those of the executor.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.reports.rows import OK
from sbbf_tool.running.discover import discover, path_of
from sbbf_tool.spark.causes import quiet_about_pandas
from sbbf_tool.spark.key_types import EXACT_INTEGERS, GREGORIAN
from sbbf_tool.spark.views import (
    Chunks,
    RowView,
    Verifications,
    column_names,
    failed,
    schema_of_view,
)
from sbbf_tool.verbs.probe import probe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sbbf_tool.reports.probe import ValueAnswer

_OF_PROBE = "file string, row_group bigint, answer string, status string, reason string"
_FILTERS = Chunks()
_VERIFICATIONS = Verifications()


class SbbfFilters:
    """`sbbf_filters(path)`: one row per filter, as in `spark.read.format("sbbf")`."""

    def eval(self, path: str | None) -> Iterator[tuple[Any, ...]]:
        return _rows(_FILTERS, path)


class SbbfVerify:
    """`sbbf_verify(path)`: one row per filter that was queried for every value of its column chunk,
    as `sbbf_tool.verify` reports it."""

    def eval(self, path: str | None) -> Iterator[tuple[Any, ...]]:
        return _rows(_VERIFICATIONS, path)


class SbbfProbe:
    """`sbbf_probe(path, column, key)`: for each row group, whether it may contain the key:
    `absent`, `maybe`, `no filter`, `cannot say`."""

    def eval(self, path: str | None, column: str | None, key: object) -> Iterator[tuple[Any, ...]]:
        for file in _list(path):
            try:
                if column is None:
                    raise UsageError(
                        "the name of the column is null", hint="give the name of a column"
                    )
                answers = _ask(file, column, key, strict=False)
            except Exception as error:
                row = failed(file, error)
                yield row["file"], None, None, row["status"], row["reason"]
            else:
                for answer in answers.row_groups:
                    yield file, answer.row_group, answer.answer, OK, answer.reason


def may_contain(path: str | None, column: str | None, value: object) -> bool | None:
    """Return whether a file may contain a value: False only if its filters exclude the value from
    every row group.

    True also where that cannot be said, so that no row is lost: a file cannot be read or does not
    have the column, whose name may be misspelt, or Spark might convert the value to one that is not
    equal to it. None without a path or a column.
    """
    if path is None or column is None:
        return None
    if "://" in path and "%" in path and not path.startswith("http"):
        return True  # a URI of Hadoop, or the path itself
    try:
        return any(not _ask(file, column, value, strict=True).is_absent for file in _list(path))
    except SbbfError:
        return True


def register_functions(spark: SparkSession) -> None:
    """Register `sbbf_filters`, `sbbf_probe`, `sbbf_verify` and `sbbf_may_contain` in this
    session."""
    from pyspark.sql.functions import udtf

    functions = {
        "sbbf_filters": (SbbfFilters, schema_of_view(_FILTERS)),
        "sbbf_probe": (SbbfProbe, _OF_PROBE),
        "sbbf_verify": (SbbfVerify, schema_of_view(_VERIFICATIONS)),
    }
    with quiet_about_pandas():
        for name, (handler, schema) in functions.items():
            # With a class, `udtf` returns no decorator.
            spark.udtf.register(name, udtf(handler, returnType=schema))  # type: ignore[arg-type]
        spark.udf.register("sbbf_may_contain", may_contain, "boolean")


def _ask(file: str, column: str, value: object, *, strict: bool) -> ValueAnswer:
    """Query one file. Raises UsageError for a value that Spark may compare as another one than is
    queried."""
    report = probe(file, column, [value], strict=strict)
    (answers,) = report.values
    if isinstance(value, int) and abs(value) > EXACT_INTEGERS.get(report.type or "", abs(value)):
        raise UsageError(f"{value}: Spark rounds it to a value of {report.type}", file=file)
    if type(value) is datetime.date and value < GREGORIAN:
        raise UsageError(
            f"{value}: Spark may read the dates of the file in another calendar", file=file
        )
    # Python receives TIMESTAMP and TIMESTAMP_NTZ as one type, TIMESTAMP in the zone of the worker.
    # A note says how a value was converted.
    is_time = isinstance(value, datetime.datetime)
    if is_time or (answers.note is not None and answers.is_absent):
        reason = "the zone of this time is not known here" if is_time else answers.note
        hint = (
            "give text with the zone and the precision of the column, such as "
            "'2026-11-21T13:45:00Z'"
        )
        raise UsageError(f"{answers.value}: {reason}", file=file, hint=hint)
    return answers


def _rows(view: RowView, path: str | None) -> Iterator[tuple[Any, ...]]:
    columns = column_names(view)
    for file in _list(path):
        for row in view.rows_or_reason(file, columns):
            yield tuple(row.get(column) for column in columns)


def _list(path: str | None) -> Iterator[str]:
    """Yield the files of a path; the path itself if it cannot be listed, so that reading it says
    why; nothing for null."""
    if path is None:
        return
    if not path:
        yield path  # reading it says why
        return
    try:
        for file in discover([path_of(path)]):
            if file.skipped is None:
                yield file.path
    except SbbfError:
        yield path
