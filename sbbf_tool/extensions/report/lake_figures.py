"""The figures of any number of files: bytes, folds, fill, partitions by column, distribution of
rates, worst files, and what changed since an earlier `inspect`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.report.pictures.bars import (
    Bar,
    GridCell,
    draw_bars,
    draw_grid,
    draw_histogram,
)
from sbbf_tool.extensions.report.pictures.figure import (
    Figure,
    FigureTable,
    Value,
    count,
    percent,
    rate,
    size,
    table,
)
from sbbf_tool.extensions.report.pictures.rates import Curve
from sbbf_tool.extensions.report.pictures.tiles import build_query_figure
from sbbf_tool.extensions.report.totals import LOWEST_DECADE, LakeTotals, Partition, QuerySum, Sums
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_percent, format_size
from sbbf_tool.reports.plain import from_plain
from sbbf_tool.verbs.inspect import InspectReport

_MOST_COLUMNS, _MOST_BINS = 25, 40
_BYTES = "Where the bytes are"
_FILL = "Share of bits set, by column"
_PARTITIONS = "Partitions and columns"
_RATES = "Distribution of false-positive rates"


def list_curves(totals: LakeTotals) -> list[Curve]:
    """Return the filters of each column at every half of their size."""
    return [
        Curve(column, tuple((each.bytes, each.mean_fpp, each.worst_fpp) for each in folds.sizes()))
        for column, folds in totals.folds.items()
    ]


def build_bytes_figure(totals: LakeTotals) -> Figure:
    """Build the bytes of all files by content: filters by column, and what the footers state."""
    columns = sorted(totals.columns.items(), key=lambda item: -item[1].bytes)
    rest = totals.bytes - totals.filter_bytes - totals.footer_bytes - totals.unreferenced_bytes
    parts = [
        ("pages, indexes and other", rest, "pages"),
        ("footers", totals.footer_bytes, "footer"),
        ("unreferenced", totals.unreferenced_bytes, "unreferenced"),
        ("Bloom filters", totals.filter_bytes, "filter"),
        *(
            (f"filters of {column}", sums.bytes, "filter")
            for column, sums in columns[:_MOST_COLUMNS]
        ),
    ]
    bars = [
        Bar(
            name,
            number,
            f"{format_size(number)}, {format_percent(number / max(1, totals.bytes))}",
            f"{name}: {number:,} bytes",
            kind,
        )
        for name, number, kind in parts
    ]
    content = table(
        "Bytes by content",
        ("content", "bytes", "share of all files"),
        ((name, size(n), rate(n / max(1, totals.bytes))) for name, n, _ in parts),
    )
    return Figure(
        "bytes",
        _BYTES,
        "The bytes of all files together, and those of filters by column.",
        draw_bars("bytes_p", _BYTES, bars),
        (content,),
    )


def build_fill_figure(totals: LakeTotals) -> Figure | None:
    """Build the numbers of filters by column and tenth of bits set; None without filters."""
    columns = sorted(
        (item for item in totals.columns.items() if item[1].deciles),
        key=lambda item: -item[1].bytes,
    )
    if not columns:
        return None
    tenths = [f"{tenth * 10}-{tenth * 10 + 10} %" for tenth in range(10)]
    cells = {}
    for row, (column, sums) in enumerate(columns):
        most = max(sums.deciles.values())
        for tenth, filters in sums.deciles.items():
            title = (
                f"{column}: {format_count(filters, 'filter')} with {tenths[tenth]} of the bits set"
            )
            cells[row, tenth] = GridCell(filters / most, f"{filters:,}", title)
    svg, num_rows = draw_grid(
        "fill_p",
        _FILL,
        [column for column, _ in columns],
        tenths,
        cells,
        "bits set; the number is that of filters",
    )
    rows = (
        (column, *(count(sums.deciles[tenth]) for tenth in range(10))) for column, sums in columns
    )
    note = (
        "About half of the bits of a filter of the right size are set. To the left, "
        "filters waste bytes; to the right, they are full."
    )
    more = (
        f" The picture has the first {num_rows} of {len(columns):,} columns."
        if num_rows < len(columns)
        else ""
    )
    return Figure(
        "fill",
        _FILL,
        note + more,
        svg,
        (table("Filters by share of bits set", ("column", *tenths), rows),),
    )


def build_partitions_figure(totals: LakeTotals) -> Figure | None:
    """Build the share of row groups with a filter, by partition and column; None without
    filters."""
    columns = [
        column for column, _ in sorted(totals.columns.items(), key=lambda item: -item[1].bytes)
    ][:_MOST_COLUMNS]
    if not columns:
        return None
    names = sorted(totals.partitions)
    step = -(-len(names) // _MOST_BINS)
    bins = [names[start : start + step] for start in range(0, len(names), step)]
    labels = [part[0] if len(part) == 1 else f"{part[0]} ... {part[-1]}" for part in bins]
    cells = {}
    for at, part in enumerate(bins):
        for number, column in enumerate(columns):
            filters, row_groups, worst = _add_up([totals.partitions[name] for name in part], column)
            share = filters / row_groups if row_groups else 0.0
            title = (
                f"{labels[at]}, {column}: {filters:,} of "
                f"{format_count(row_groups, 'row group')} with a filter"
            )
            title += f", worst rate {format_percent(worst)}" if worst is not None else ""
            cells[at, number] = GridCell(share if filters else None, f"{share * 100:.0f}", title)
    svg, _ = draw_grid(
        "partitions_p",
        _PARTITIONS,
        labels,
        columns,
        cells,
        "column; the number is the percentage of row groups with a filter",
    )
    binned = f" Each line is {step} partitions." if step > 1 else ""
    more = (
        f" The picture has the {_MOST_COLUMNS} columns with the largest filters."
        if len(totals.columns) > _MOST_COLUMNS
        else ""
    )
    head = (
        "partition",
        "column",
        "files",
        "row groups with a filter",
        "row groups",
        "bytes of filters",
        "mean rate",
        "worst rate",
    )
    rows = (
        (
            name,
            column,
            count(totals.partitions[name].files),
            *_row_of_sums(sums, totals.partitions[name].row_groups),
        )
        for name in names
        for column, sums in totals.partitions[name].columns.items()
    )
    note = (
        "The darker a cell, the more of the row groups have a filter. A light cell in a "
        "dark line or column is a gap."
    )
    return Figure(
        "partitions",
        _PARTITIONS,
        note + binned + more,
        svg,
        (table("Filters by partition and column", head, rows),),
    )


def _add_up(partitions: list[Partition], column: str) -> tuple[int, int, float | None]:
    sums = [each.columns[column] for each in partitions if column in each.columns]
    rates = [each.worst_fpp for each in sums if each.worst_fpp is not None]
    return (
        sum(each.filters for each in sums),
        sum(each.row_groups for each in partitions),
        max(rates, default=None),
    )


def _row_of_sums(sums: Sums, row_groups: int) -> tuple[Value, ...]:
    return (
        count(sums.filters),
        count(row_groups),
        size(sums.bytes),
        rate(sums.mean_fpp),
        rate(sums.worst_fpp),
    )


def build_distribution_figure(totals: LakeTotals) -> Figure | None:
    """Build the numbers of filters by power of ten of the rate; None if no filter could be
    measured."""
    if not totals.decades:
        return None
    decades = [*range(LOWEST_DECADE, 0), 1]
    names = [_name_decade(decade) for decade in decades]
    bars = [
        Bar(
            name,
            totals.decades[decade],
            "",
            f"{format_count(totals.decades[decade], 'filter')}: rate {name}",
            "unreferenced" if decade > 0 else "filter",
        )
        for decade, name in zip(decades, names, strict=True)
    ]
    content = table(
        "Filters by rate",
        ("false-positive rate", "filters"),
        ((bar.name, count(int(bar.value))) for bar in bars),
    )
    svg = draw_histogram("distribution_p", _RATES, bars, "false-positive rate", "filters")
    return Figure(
        "distribution",
        _RATES,
        "Filters above 50 % exclude fewer than half of the absent values.",
        svg,
        (content,),
    )


def _name_decade(decade: int) -> str:
    if decade > 0:
        return "above 50 %"
    high = "50 %" if decade == -1 else percent(10.0 ** (decade + 1))
    return (
        f"below {high}"
        if decade == LOWEST_DECADE
        else f"{percent(10.0**decade).removesuffix(' %')} to {high}"
    )


def list_columns(totals: LakeTotals) -> FigureTable:
    """Return the table of all columns."""
    rows = (
        (column, *_row_of_sums(sums, totals.row_groups)) for column, sums in totals.columns.items()
    )
    head = (
        "column",
        "row groups with a filter",
        "row groups",
        "bytes of filters",
        "mean false-positive rate",
        "worst false-positive rate",
    )
    return table("Columns with filters", head, rows)


def list_worst_files(totals: LakeTotals) -> FigureTable:
    """Return the table of the worst files."""
    rows: Iterator[tuple[Value, ...]] = (
        (
            rank.name,
            count(rank.errors),
            count(sum(rank.warnings_by_group)),
            count(rank.filters),
            rate(rank.worst_fpp),
            size(rank.bytes),
        )
        for rank in totals.worst_files()
    )
    return table(
        "The worst files", ("file", "errors", "warnings", "filters", "worst rate", "size"), rows
    )


_LOSES_ROWS = (
    " The findings name filters or statistics that exclude stored values: a row "
    "group that they exclude may still hold the value."
)


def build_query_figures(
    queries: Mapping[str, QuerySum], *, loses_rows: bool = False
) -> Iterator[Figure]:
    """Yield a figure for each query; `loses_rows` is whether filters or statistics exclude stored
    values."""
    for number, (query, total) in enumerate(queries.items(), 1):
        problem = (
            f" {format_count(total.problems, 'file')} without a column of it: {total.first_problem}"
            if total.problems
            else ""
        )
        remark = (
            " The first line is for files without filters, in engines that query "
            f"dictionaries.{problem}"
        )
        remark += _LOSES_ROWS if loses_rows else ""
        yield build_query_figure(
            f"query_{number}", query, total.counts, total.tiles, total.row_groups, remark
        )


_CHANGES = "What changed"
_MOST_CHANGED = 20


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
    pairs = [
        (name, before.columns.get(name, empty), totals.columns.get(name, empty)) for name in names
    ]
    bars = []
    for name, old, new in sorted(pairs, key=lambda pair: -max(pair[1].bytes, pair[2].bytes))[
        :_MOST_CHANGED
    ]:
        for when, sums, kind in (("before", old, "index"), ("now", new, "filter")):
            fpp = (
                f", mean rate {format_percent(sums.mean_fpp)}" if sums.mean_fpp is not None else ""
            )
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
    head = (
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
    totals_of_all = [
        ("files", count(before.files), count(totals.files)),
        ("bytes of files", size(before.bytes), size(totals.bytes)),
        ("filters", count(before.filters), count(totals.filters)),
        ("bytes of filters", size(before.filter_bytes), size(totals.filter_bytes)),
    ]
    note = (
        f"The filters of {earlier.name} before, and those of the files now, by column. "
        "The longer a bar, the more bytes."
    )
    tables = (
        table("All files", ("of all files", "before", "now"), totals_of_all),
        table("Filters by column", head, rows),
    )
    return Figure("changes", _CHANGES, note, draw_bars("changes_p", _CHANGES, bars), tables)


_NOT_OF_FILES = ("sbbf.summary", "sbbf.file")
_MOST_BYTES = 1 << 30


def read_earlier_inspect(path: str | os.PathLike[str]) -> EarlierRun:
    """Read a report of `inspect` as JSON, one file at a time. Raises UsageError for any other
    file."""
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
    except (
        UnreadableError,
        OSError,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        reason = (
            error.message
            if isinstance(error, SbbfError)
            else getattr(error, "strerror", None) or "it has other fields"
        )
        hint = "save the report of inspect in a file whose name ends with .json"
        raise UsageError(
            f"the file is not a report of inspect ({reason.lower()})", file=name, hint=hint
        ) from None
    return EarlierRun(redact(name), totals, report if totals.files == 1 else None)


def _ensure_possible(report: InspectReport) -> None:
    """Raise ValueError for places and sizes that no file has, which could not be drawn."""
    numbers = [
        report.file_bytes,
        report.footer_bytes,
        *(each for part in report.unreferenced for each in (part.offset, part.length)),
    ]
    numbers += (
        each or 0
        for row in report.filters
        for each in (row.offset, row.header_bytes, row.bitset_bytes)
    )
    if not all(0 <= number < 1 << 63 for number in numbers):
        raise ValueError


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
