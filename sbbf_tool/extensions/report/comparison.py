"""What changed since an earlier `inspect`: the filters of each column, before and now."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.report.pictures.bars import Bar, draw_bars
from sbbf_tool.extensions.report.pictures.figure import Figure, count, rate, size, table
from sbbf_tool.extensions.report.totals import LakeTotals, Sums
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_percent, format_size
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.verbs.inspect import InspectReport

_CHANGES = "What changed"
_MOST_COLUMNS = 20


class EarlierRun(Frozen):
    """The reports of an earlier `inspect`."""

    name: str
    totals: LakeTotals
    single: InspectReport | None
    """The report of the file, if there is only one; it is compared byte by byte."""


def build_changes_figure(earlier: EarlierRun, totals: LakeTotals) -> Figure:
    """Build picture and tables of the filters by column, before and now."""
    before, empty = earlier.totals, Sums()
    names = dict.fromkeys([*before.columns, *totals.columns])
    pairs = [(name, before.columns.get(name, empty), totals.columns.get(name, empty)) for name in names]
    bars = []
    for name, old, new in sorted(pairs, key=lambda pair: -max(pair[1].bytes, pair[2].bytes))[:_MOST_COLUMNS]:
        for when, sums, kind in (("before", old, "index"), ("now", new, "filter")):
            fpp = f", mean rate {format_percent(sums.mean_fpp)}" if sums.mean_fpp is not None else ""
            text = f"{format_size(sums.bytes)}, {format_count(sums.filters, 'filter')}{fpp}"
            bars.append(Bar(f"{name}, {when}", sums.bytes, text, f"{name}, {when}: {text}", kind))
    rows = (
        (
            name,
            *(count(old.filters), count(new.filters), size(old.bytes), size(new.bytes)),
            *(rate(old.mean_fpp), rate(new.mean_fpp), rate(old.worst_fpp), rate(new.worst_fpp)),
        )
        for name, old, new in pairs
    )
    head = ("column", "filters before", "now", "bytes before", "now", "mean rate before", "now", "worst rate before", "now")
    totals_of_all = [
        ("files", count(before.files), count(totals.files)),
        ("bytes of files", size(before.bytes), size(totals.bytes)),
        ("filters", count(before.filters), count(totals.filters)),
        ("bytes of filters", size(before.filter_bytes), size(totals.filter_bytes)),
    ]
    note = f"The filters of {earlier.name} before, and those of the files now, by column. The longer a bar, the more bytes."
    tables = (table("All files", ("of all files", "before", "now"), totals_of_all), table("Filters by column", head, rows))
    return Figure("changes", _CHANGES, note, draw_bars("changes_p", _CHANGES, bars), tables)


_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_MOST_BYTES = 1 << 30


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON, one file at a time. Raises UsageError for any other file."""
    name = os.fsdecode(path)
    totals, report = LakeTotals(), None
    try:
        for document in _read_documents(name):
            if document["schema"] in _NOT_OF_FILES:
                continue
            if document["schema"] != "sbbf.inspect":
                raise UnreadableError(f"it has documents of {document['schema']}")
            report = from_plain(InspectReport, document)
            _ensure_possible(report)
            totals.add_report(report)
        if not totals.files:
            raise UnreadableError("it has no report of a file")
    except (UnreadableError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, SbbfError) else getattr(error, "strerror", None) or "it has other fields"
        hint = "save the report of inspect in a file whose name ends with .json"
        raise UsageError(f"the file is not a report of inspect ({reason.lower()})", file=name, hint=hint) from None
    return EarlierRun(redact(name), totals, report if totals.files == 1 else None)


def _ensure_possible(report: InspectReport) -> None:
    """Raise ValueError for places and sizes that no file has, which could not be drawn."""
    numbers = [report.file_bytes, report.footer_bytes, *(each for part in report.unreferenced for each in (part.offset, part.length))]
    numbers += (each or 0 for row in report.filters for each in (row.offset, row.header_bytes, row.bitset_bytes))
    if not all(0 <= number < 1 << 63 for number in numbers):
        raise ValueError


def _read_documents(name: str) -> Iterator[Any]:
    """Yield the documents of a report, one a line. Raises OSError, ValueError, RecursionError, UnreadableError."""
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
