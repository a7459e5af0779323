"""What changed since an earlier `inspect`: the filters of each column, before and now."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.report.pictures.bars import Bar, draw_bars
from sbbf_tool.extensions.report.pictures.figure import Figure, count, rate, size, table
from sbbf_tool.extensions.report.totals import MORE_COLUMNS, MOST_COLUMNS, LakeTotals, Sums
from sbbf_tool.numbers import format_count, format_percent, format_size

_CHANGES = "What changed"
_MOST_COLUMNS = 20


@dataclass(slots=True)
class EarlierRun:
    """Totals of the reports of an earlier `inspect`."""

    name: str
    files: int = 0
    bytes: int = 0
    filters: int = 0
    filter_bytes: int = 0
    columns: dict[str, Sums] = field(default_factory=dict)
    single: Mapping[str, Any] | None = None
    """The report of the file, if there is only one; it is compared byte by byte."""

    def add(self, document: Mapping[str, Any]) -> None:
        """Add the report of a file. Raises KeyError, TypeError and ValueError for other documents."""
        self.files += 1
        self.bytes += _number(document["file_bytes"])
        _number(document["footer_bytes"])
        for row in document["filters"]:
            if not row["has_filter"]:
                continue
            name = str(row["column"])
            has_place = name in self.columns or len(self.columns) < MOST_COLUMNS
            column = self.columns.setdefault(name if has_place else MORE_COLUMNS, Sums())
            length = _number(row["header_bytes"] or 0) + _number(row["bitset_bytes"] or 0)
            if row["offset"] is not None:
                _number(row["offset"])
            self.filters += 1
            self.filter_bytes += length
            column.filters += row["unreadable"] is None
            column.bytes += length
            if row["estimated_fpp"] is not None:
                column.add_rate(float(row["estimated_fpp"]))
        for unreferenced in document["unreferenced"]:
            _number(unreferenced["offset"])
            _number(unreferenced["length"])
            str(unreferenced["kind"])
        self.single = document if self.files == 1 else None


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError(value)
    return value


def build_changes_figure(earlier: EarlierRun, totals: LakeTotals) -> Figure:
    """Build picture and tables of the filters by column, before and now."""
    names: Iterable[str] = dict.fromkeys([*earlier.columns, *totals.columns])
    empty = Sums()
    pairs = [(name, earlier.columns.get(name, empty), totals.columns.get(name)) for name in names]
    bars = []
    for name, old, new in sorted(pairs, key=lambda pair: -max(pair[1].bytes, pair[2].bytes if pair[2] else 0))[:_MOST_COLUMNS]:
        for when, sums, kind in (("before", old, "index"), ("now", new, "filter")):
            filters, length = (sums.filters, sums.bytes) if sums is not None else (0, 0)
            fpp = f", mean rate {format_percent(sums.mean_fpp)}" if sums is not None and sums.mean_fpp is not None else ""
            text = f"{format_size(length)}, {format_count(filters, 'filter')}{fpp}"
            bars.append(Bar(f"{name}, {when}", length, text, f"{name}, {when}: {text}", kind))
    rows = (
        (
            name,
            *(count(old.filters), count(new.filters if new else 0), size(old.bytes), size(new.bytes if new else 0)),
            *(rate(old.mean_fpp), rate(new.mean_fpp if new else None), rate(old.worst_fpp), rate(new.worst_fpp if new else None)),
        )
        for name, old, new in pairs
    )
    head = ("column", "filters before", "now", "bytes before", "now", "mean rate before", "now", "worst rate before", "now")
    totals_of_all = [
        ("files", count(earlier.files), count(totals.files)),
        ("bytes of files", size(earlier.bytes), size(totals.bytes)),
        ("filters", count(earlier.filters), count(totals.filters)),
        ("bytes of filters", size(earlier.filter_bytes), size(totals.filter_bytes)),
    ]
    note = f"The filters of {earlier.name} before, and those of the files now, by column. The longer a bar, the more bytes."
    tables = (table("All files", ("of all files", "before", "now"), totals_of_all), table("Filters by column", head, rows))
    return Figure("changes", _CHANGES, note, draw_bars("changes_p", _CHANGES, bars), tables)


_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_MOST_BYTES = 1 << 30


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON, one file at a time. Raises UsageError for any other file."""
    name = os.fsdecode(path)
    earlier = EarlierRun(redact(name))
    try:
        for document in _read_documents(name):
            if document["schema"] in _NOT_OF_FILES:
                continue
            if document["schema"] != "sbbf.inspect":
                raise UnreadableError(f"it has documents of {document['schema']}")
            earlier.add(document)
        if not earlier.files:
            raise UnreadableError("it has no report of a file")
    except (UnreadableError, OSError, KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        reason = error.message if isinstance(error, SbbfError) else getattr(error, "strerror", None) or "it has other fields"
        hint = "save the report of inspect in a file whose name ends with .json"
        raise UsageError(f"the file is not a report of inspect ({reason.lower()})", file=name, hint=hint) from None
    return earlier


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
