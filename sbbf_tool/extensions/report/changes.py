"""What changed since an earlier `inspect`, whose reports are read from JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.report.pictures.bars import Bar, draw_bars
from sbbf_tool.extensions.report.pictures.figure import (
    Figure,
    FigureTable,
    Value,
    count,
    rate,
    size,
    table,
)
from sbbf_tool.extensions.report.totals import LakeTotals, Sums
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_percent, format_size
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.verbs.inspect import InspectReport

_CHANGES = "What changed"
_MOST_CHANGED = 20
_HEAD = (
    "column",
    "filters before",
    "now",
    "bytes before",
    "now",
    "mean rate before",
    "now",
    "worst rate before",
    "now",
)
_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_MOST_BYTES = 1 << 30


class EarlierRun(Frozen):
    """The reports of an earlier `inspect`."""

    name: str
    totals: LakeTotals
    single: InspectReport | None
    """The report of the file, if there is only one; it is compared byte by byte."""


def build_changes_figure(earlier: EarlierRun, totals: LakeTotals) -> Figure:
    """Build picture and tables of the filters by column, before and now."""
    before = earlier.totals
    empty = Sums()
    columns = []
    rows = []
    for name in dict.fromkeys([*before.columns, *totals.columns]):
        column = _ChangedColumn(
            name, before.columns.get(name, empty), totals.columns.get(name, empty)
        )
        columns.append(column)
        _, old, new = column
        rows.append(
            (
                name,
                count(old.filters),
                count(new.filters),
                size(old.bytes),
                size(new.bytes),
                rate(old.mean_fpp),
                rate(new.mean_fpp),
                rate(old.worst_fpp),
                rate(new.worst_fpp),
            )
        )
    columns.sort(key=lambda column: -max(column.old.bytes, column.new.bytes))
    bars = []
    for name, old, new in columns[:_MOST_CHANGED]:
        bars.append(_bar_of(f"{name}, before", old, "index"))
        bars.append(_bar_of(f"{name}, now", new, "filter"))
    by_column = table("Filters by column", _HEAD, rows)
    note = (
        f"The filters of {earlier.name} before, and those of the files now, by column. "
        "The longer a bar, the more bytes."
    )
    svg = draw_bars("changes_p", _CHANGES, bars)
    return Figure("changes", _CHANGES, note, svg, (_list_totals(before, totals), by_column))


class _ChangedColumn(NamedTuple):
    """The filters of a column before and now."""

    name: str
    old: Sums
    new: Sums


def _bar_of(name: str, sums: Sums, kind: str) -> Bar:
    text = f"{format_size(sums.bytes)}, {format_count(sums.filters, 'filter')}"
    if sums.mean_fpp is not None:
        text += f", mean rate {format_percent(sums.mean_fpp)}"
    return Bar(name, sums.bytes, text, f"{name}: {text}", kind)


def _list_totals(before: LakeTotals, now: LakeTotals) -> FigureTable:
    """Return the table of all files, before and now."""
    rows: list[tuple[Value, ...]] = [
        ("files", count(before.files), count(now.files)),
        ("bytes of files", size(before.bytes), size(now.bytes)),
        ("filters", count(before.filters), count(now.filters)),
        ("bytes of filters", size(before.filter_bytes), size(now.filter_bytes)),
    ]
    return table("All files", ("of all files", "before", "now"), rows)


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON, one file at a time. Raises UsageError for any other
    file."""
    name = os.fsdecode(path)
    totals = LakeTotals()
    report = None
    try:
        for report in _read_reports(name):
            totals.add_report(report)
        if not totals.files:
            raise UnreadableError("it has no report of a file")
    except (
        UnreadableError,
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        reason = _reason_of(error).lower()
        hint = "save the report of inspect in a file whose name ends with .json"
        raise UsageError(
            f"the file is not a report of inspect ({reason})", file=name, hint=hint
        ) from None
    single = report if totals.files == 1 else None
    return EarlierRun(redact(name), totals, single)


def _reason_of(error: Exception) -> str:
    if isinstance(error, SbbfError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "it has other fields"


def _read_reports(name: str) -> Iterator[InspectReport]:
    """Yield the reports of files. Raises any error that a document of another form leads to."""
    for document in _read_documents(name):
        if document["schema"] in _NOT_OF_FILES:
            continue
        if document["schema"] != "sbbf.inspect":
            raise UnreadableError(f"it has documents of {document['schema']}")
        report = from_plain(InspectReport, document)
        if not all(0 <= number < 1 << 63 for number in _list_numbers(report)):
            raise ValueError  # no file has such a place or size, and it could not be drawn
        yield report


def _list_numbers(report: InspectReport) -> Iterator[int]:
    """Yield the places and sizes of a report."""
    yield report.file_bytes
    yield report.footer_bytes
    for gap in report.unreferenced:
        yield gap.offset
        yield gap.length
    for row in report.filters:
        yield row.offset or 0
        yield row.header_bytes or 0
        yield row.bitset_bytes or 0


def _read_documents(name: str) -> Iterator[Any]:
    """Yield the documents of a report, one a line. Raises OSError, ValueError, RecursionError,
    UnreadableError."""
    with open(name, "rb") as stream:
        is_empty = True
        while text := stream.readline(_MOST_BYTES + 1):
            if len(text) > _MOST_BYTES:
                raise UnreadableError(f"it has more than {_MOST_BYTES:,} bytes")
            if text.strip():
                is_empty = False
                yield json.loads(text)
        if is_empty:
            raise UnreadableError("it is empty")
