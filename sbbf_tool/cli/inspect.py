"""`sbbf inspect`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli.files import Files, columns_option, over_files, strict_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import VIEW, engines_option
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.render import group
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.display import shorten
from sbbf_tool.errors import UnreadableError
from sbbf_tool.numbers import format_count, format_percent, format_row_groups
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.verbs.inspect import ColumnTotal, FilterReport, InspectReport


def _type(row: FilterReport) -> str:
    return row.logical_type or row.physical_type


def _problem(row: FilterReport) -> str:
    if row.unreadable:
        return "unreadable"
    if row.saturated:
        return "saturated"
    return "" if row.has_filter else "none"


_COLUMNS = (
    Heading("column", NAME),
    Heading("type", WORD, 4),
    Heading("filters", WORD),
    Heading("size", BYTES),
    Heading("of data", RATE, 3),
    Heading("mean fpp", RATE),
    Heading("worst fpp", RATE, 1),
    Heading("ndv", ESTIMATE, 2),
    Heading("fill", WORD, 5),
)
_FILTERS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("type", WORD, 5, _type),
    Heading("offset", COUNT, 6),
    Heading("header", BYTES, 9, "header_bytes"),
    Heading("bitset", BYTES, of="bitset_bytes"),
    Heading("blocks", COUNT, 8),
    Heading("fill", RATE, 2, "fill_ratio"),
    Heading("fpp", RATE, of="estimated_fpp"),
    Heading("ndv", ESTIMATE, 1, "estimated_ndv"),
    Heading("bits/value", ESTIMATE, 7, "bits_per_value"),
    Heading("of chunk", RATE, 4, "share_of_chunk"),
    Heading("problem", SENTENCE, of=_problem),
)
_LAKE = (
    Heading("column", NAME),
    Heading("files", COUNT),
    Heading("filters", WORD),
    Heading("size", BYTES),
    Heading("of data", RATE, 1),
    Heading("mean fpp", RATE),
)
_SUMS = (
    "files",
    "row_groups_with_filter",
    "filter_bytes",
    "chunk_bytes",
    "fpp_sum",
    "measurable_filters",
)
_MOST_BLOCKS = 16
_MOST_WARNINGS = 1000
"""Number of distinct warnings about several files that are kept in memory."""


@over_files(
    columns_option("Only this column"),
    VIEW.flag(
        "--row-groups", "by_row_group", "Show each filter: one row per column and row group."
    ),
    VIEW.flag(
        "--quick",
        "Read only footers and headers. The figures that need the bits (fpp, ndv, fill) are left "
        "out.",
    ),
    engines_option,
    strict_option,
)
def command(
    files: Files,
    columns: tuple[str, ...],
    by_row_group: bool,
    quick: bool,
    engines: tuple[str, ...],
) -> int:
    """Show which columns have Bloom filters and how selective they are.

    \b
    $ sbbf inspect events.parquet
    $ sbbf inspect lake -c user_id --quick

    Each row is a column: how many row groups have a filter, the size of all its filters and their
    share of the data, the mean and the worst false-positive rate (fpp) and the largest number of
    distinct values (ndv), both estimated from the bits, and the share of bits set in each row
    group, as bars. For several files, the rows are sums over all files. With --all, column chunks
    without a filter are shown too.
    """
    from sbbf_tool.verbs.inspect import Inspect

    verb = Inspect(columns, terminal().shows_all, quick, engine_names=engines)
    view = _InspectView(by_row_group, bool(columns), bitsets=not quick)
    return report_files(files.outputs, files.plan(verb), view)


class _InspectView(View["InspectReport"]):
    sums = ("rows", "row_groups", "bytes")

    def __init__(self, by_row_group: bool, is_selection: bool, *, bitsets: bool) -> None:
        super().__init__()
        self._by_row_group = by_row_group
        self._bitsets = bitsets
        self._none = "no column has a Bloom filter"
        if is_selection:
            self._none = "none of these columns has a Bloom filter"
        self._lake: dict[str, dict[str, Any]] = {}
        """The sums of each column that has a filter in any file, over these files."""
        self._warnings: dict[str, tuple[str, int]] = {}
        """The first file with each warning, and the number of files with it."""

    def add(self, report: InspectReport, row: Row[object]) -> int:
        self.total.update(rows=report.rows, row_groups=report.row_groups, bytes=report.file_bytes)
        for total in report.columns:
            if total.row_groups_with_filter:
                self._add_column(total)
        warnings: dict[str, None] = {}
        for chunk in report.filters:
            warnings.update(dict.fromkeys(chunk.warnings))
        for warning in warnings:
            if warning in self._warnings or len(self._warnings) < _MOST_WARNINGS:
                first, files = self._warnings.get(warning, (report.file, 0))
                self._warnings[warning] = first, files + 1
        for unreadable in report.unreadable_filters:
            complain(f"sbbf: {row.path}: {unreadable.unreadable}")
        return UnreadableError.exit_code if report.unreadable_filters else 0

    def _add_column(self, total: ColumnTotal) -> None:
        """Add a column of one more file to the sums."""
        sums = self._lake.setdefault(total.column, dict.fromkeys(_SUMS, 0))
        sums["files"] += 1
        sums["row_groups_with_filter"] += total.row_groups_with_filter
        sums["filter_bytes"] += total.filter_bytes
        sums["chunk_bytes"] += total.chunk_bytes
        # This is a float in each column, also if nothing is measurable.
        sums["fpp_sum"] += (total.mean_fpp or 0.0) * total.row_groups_with_filter
        if total.mean_fpp is not None:
            sums["measurable_filters"] += total.row_groups_with_filter

    def show(self, page: Page, report: InspectReport) -> None:
        size = page.bytes(report.file_bytes)
        writer = shorten(report.created_by or "an unknown writer")
        rows = _count_rows(report.rows, report.row_groups)
        page.say(f"{report.file}: {size}, {rows}, written by {writer}")
        if self._by_row_group:
            page.table(_FILTERS, report.filters, whole=True)
        else:
            page.table(_COLUMNS, _format_columns(page, report, bitsets=self._bitsets))
        filter_bytes = sum(total.filter_bytes for total in report.columns)
        if filter_bytes:
            share = format_percent(filter_bytes / report.file_bytes)
            page.say(f"filters: {share} of the file, {page.bytes(filter_bytes)}")
        has_bars = self._bitsets and not self._by_row_group
        page.say_all(_list_notes(page, report, self._none, has_bars=has_bars))
        if not filter_bytes:
            page.next(("sbbf", "advise", report.file), "see which columns deserve a filter")

    def show_line(self, page: Page, report: InspectReport) -> None:
        if self._by_row_group:
            self.show(page, report)
        elif terminal().shows_all:
            row_groups = format_count(report.row_groups, "row group")
            place = f"{report.file}: {page.bytes(report.file_bytes)}, {row_groups}"
            page.say(f"{place}, {_count_filters(page, report)}")

    def show_end(self, page: Page, files: str) -> None:
        columns = self.totals()["columns"]
        page.table(_LAKE, [_format_sums(column) for column in columns])
        if not columns and self.total["bytes"]:
            page.say(self._none)
        if not self._by_row_group:
            page.say_all(self._list_warnings())
        content = _count_rows(self.total["rows"], self.total["row_groups"])
        page.say(f"{files}; {content}, {page.bytes(self.total['bytes'])}")

    def _list_warnings(self) -> Iterator[str]:
        for warning, (first, count) in self._warnings.items():
            more = f" and {format_count(count - 1, 'more file')}" if count > 1 else ""
            yield f"warning: {first}{more}: {warning}"

    def totals(self) -> dict[str, Any]:
        columns = []
        for name, sums in self._lake.items():
            column = {"column": name, **sums, "row_groups": self.total["row_groups"]}
            measurable = sums["measurable_filters"]
            column["mean_fpp"] = sums["fpp_sum"] / measurable if measurable else None
            columns.append(column)
        return {**self.total, "columns": columns}


def _count_rows(rows: int, row_groups: int) -> str:
    return f"{format_count(rows, 'row')} in {format_count(row_groups, 'row group')}"


def _count_filters(page: Page, report: InspectReport) -> str:
    """Return the number and the size of the filters of a file."""
    filters = sum(total.row_groups_with_filter for total in report.columns)
    if not filters:
        return "no filters"
    columns = sum(total.row_groups_with_filter > 0 for total in report.columns)
    size = page.bytes(sum(total.filter_bytes for total in report.columns))
    return f"{format_count(filters, 'filter')} in {format_count(columns, 'column')}, {size}"


def _format_sums(column: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the cells of a column of several files."""
    chunk_bytes = column["chunk_bytes"]
    share = column["filter_bytes"] / chunk_bytes if chunk_bytes else None
    return (
        column["column"],
        column["files"],
        f"{column['row_groups_with_filter']:,} of {column['row_groups']:,}",
        column["filter_bytes"],
        share,
        column["mean_fpp"],
    )


def _format_columns(
    page: Page, report: InspectReport, *, bitsets: bool
) -> Iterator[tuple[object, ...]]:
    """Yield the cells of each column of a file."""
    filters = group((row.column, row) for row in report.filters)
    for total in report.columns:
        rows = filters.get(total.column)
        if not rows:
            continue
        share = None
        if total.chunk_bytes and total.filter_bytes:
            share = total.filter_bytes / total.chunk_bytes
        fpps = [row.estimated_fpp for row in rows if row.estimated_fpp is not None]
        ndvs = [row.estimated_ndv for row in rows if row.estimated_ndv is not None]
        bars = None
        if bitsets:
            bars = page.bars([row.fill_ratio for row in rows], _MOST_BLOCKS)
        yield (
            total.column,
            _type(rows[0]),
            f"{total.row_groups_with_filter:,} of {total.row_groups:,}",
            total.filter_bytes or None,
            share,
            total.mean_fpp,
            max(fpps, default=None),
            max(ndvs, default=None),
            bars,
        )


def _list_notes(page: Page, report: InspectReport, none: str, *, has_bars: bool) -> Iterator[str]:
    """Yield what the table of a file does not show; `none` if it has no filter."""
    has_filter = any(row.has_filter for row in report.filters)
    if not has_filter and "the file has no columns" not in report.notes:
        if report.locked_columns:
            none = "no column whose metadata can be read has a Bloom filter"
        yield none
    if report.locked_columns:
        yield f"locked columns (their key was not given): {page.join_names(report.locked_columns)}"
    encrypted = dict.fromkeys(row.column for row in report.filters if row.encrypted)
    if encrypted:
        yield f"encrypted: {page.join_names([*encrypted])}"
    yield from _group_warnings(page, report)
    is_measured = any(row.fill_ratio is not None for row in report.filters)
    if has_bars and is_measured and report.row_groups > _MOST_BLOCKS:
        yield (
            f"note: fill has at most {_MOST_BLOCKS} bars; of several row groups, it shows "
            "the fullest filter"
        )
    for note in report.notes:
        yield f"note: {note}"
    for unreferenced in report.unreferenced:
        size = page.bytes(unreferenced.length)
        yield f"unreferenced: {size} at byte {unreferenced.offset:,}: {unreferenced.kind}"


def _group_warnings(page: Page, report: InspectReport) -> Iterator[str]:
    """Yield the warnings about the filters of a file; columns with the same warning in the same row
    groups share a line."""
    row_groups_of: dict[tuple[str, str], list[int]] = {}
    for row in report.filters:
        for warning in row.warnings:
            row_groups_of.setdefault((row.column, warning), []).append(row.row_group)
    columns = group(
        ((warning, tuple(row_groups)), column)
        for (column, warning), row_groups in row_groups_of.items()
    )
    for (warning, places), names in columns.items():
        noun = "columns" if len(names) > 1 else "column"
        names_and_places = f"{page.join_names(names)}, {format_row_groups(places)}"
        yield f"warning: {noun} {names_and_places}: {warning}"
