"""The figures of any number of files: bytes, folds, fill, partitions by column, distribution of
rates, and worst files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from sbbf_tool.extensions.report.pictures.rates import Curve, curve_of
from sbbf_tool.extensions.report.pictures.tiles import build_query_figure
from sbbf_tool.extensions.report.totals import (
    LOWEST_DECADE,
    LakeTotals,
    Partition,
    QuerySum,
    Sums,
)
from sbbf_tool.numbers import format_count, format_percent, format_size

_MOST_COLUMNS = 25
_MOST_BINS = 40
_BYTES = "Where the bytes are"
_FILL = "Share of bits set, by column"
_TENTHS = [f"{tenth * 10}-{tenth * 10 + 10} %" for tenth in range(10)]
_PARTITIONS = "Partitions and columns"
_PARTITIONS_HEAD = (
    "partition",
    "column",
    "files",
    "row groups with a filter",
    "row groups",
    "bytes of filters",
    "mean rate",
    "worst rate",
)
_RATES = "Distribution of false-positive rates"
_COLUMNS_HEAD = (
    "column",
    "row groups with a filter",
    "row groups",
    "bytes of filters",
    "mean false-positive rate",
    "worst false-positive rate",
)
_FILES_HEAD = ("file", "errors", "warnings", "filters", "worst rate", "size")


def list_curves(totals: LakeTotals) -> list[Curve]:
    """Return the filters of each column at every half of their size."""
    return [curve_of(column, folds.sizes()) for column, folds in totals.folds.items()]


def _by_size(columns: Mapping[str, Sums]) -> list[tuple[str, Sums]]:
    """Return the columns, those with the largest filters first."""
    return sorted(columns.items(), key=lambda item: -item[1].bytes)


def build_bytes_figure(totals: LakeTotals) -> Figure:
    """Build the bytes of all files by content: filters by column, and what the footers state."""
    rest = totals.bytes - totals.filter_bytes - totals.footer_bytes - totals.unreferenced_bytes
    parts = [
        ("pages, indexes and other", rest, "pages"),
        ("footers", totals.footer_bytes, "footer"),
        ("unreferenced", totals.unreferenced_bytes, "unreferenced"),
        ("Bloom filters", totals.filter_bytes, "filter"),
    ]
    for column, sums in _by_size(totals.columns)[:_MOST_COLUMNS]:
        parts.append((f"filters of {column}", sums.bytes, "filter"))
    bars = []
    rows = []
    for name, number, kind in parts:
        share = number / max(1, totals.bytes)
        text = f"{format_size(number)}, {format_percent(share)}"
        bars.append(Bar(name, number, text, f"{name}: {number:,} bytes", kind))
        rows.append((name, size(number), rate(share)))
    content = table("Bytes by content", ("content", "bytes", "share of all files"), rows)
    note = "The bytes of all files together, and those of filters by column."
    return Figure("bytes", _BYTES, note, draw_bars("bytes_p", _BYTES, bars), (content,))


def build_fill_figure(totals: LakeTotals) -> Figure | None:
    """Build the numbers of filters by column and tenth of bits set; None without filters."""
    columns = [(column, sums) for column, sums in _by_size(totals.columns) if sums.deciles]
    if not columns:
        return None
    cells = {}
    rows = []
    for row, (column, sums) in enumerate(columns):
        most = max(sums.deciles.values())
        for tenth, number in sums.deciles.items():
            filters = format_count(number, "filter")
            title = f"{column}: {filters} with {_TENTHS[tenth]} of the bits set"
            cells[row, tenth] = GridCell(number / most, f"{number:,}", title)
        rows.append((column, *(count(sums.deciles[tenth]) for tenth in range(10))))
    svg, num_rows = draw_grid(
        "fill_p",
        _FILL,
        [column for column, _ in columns],
        _TENTHS,
        cells,
        "bits set; the number is that of filters",
    )
    note = (
        "About half of the bits of a filter of the right size are set. To the left, "
        "filters waste bytes; to the right, they are full."
    )
    if num_rows < len(columns):
        note += f" The picture has the first {num_rows} of {len(columns):,} columns."
    content = table("Filters by share of bits set", ("column", *_TENTHS), rows)
    return Figure("fill", _FILL, note, svg, (content,))


def build_partitions_figure(totals: LakeTotals) -> Figure | None:
    """Build the share of row groups with a filter, by partition and column; None without
    filters."""
    columns = [column for column, _ in _by_size(totals.columns)[:_MOST_COLUMNS]]
    if not columns:
        return None
    names = sorted(totals.partitions)
    step = -(-len(names) // _MOST_BINS)
    labels = []
    cells = {}
    for at, start in enumerate(range(0, len(names), step)):
        names_of_bin = names[start : start + step]
        label = names_of_bin[0]
        if len(names_of_bin) > 1:
            label += f" ... {names_of_bin[-1]}"
        labels.append(label)
        partitions = [totals.partitions[name] for name in names_of_bin]
        for number, column in enumerate(columns):
            cells[at, number] = _partition_cell(label, partitions, column)
    svg, _ = draw_grid(
        "partitions_p",
        _PARTITIONS,
        labels,
        columns,
        cells,
        "column; the number is the percentage of row groups with a filter",
    )
    note = (
        "The darker a cell, the more of the row groups have a filter. A light cell in a "
        "dark line or column is a gap."
    )
    if step > 1:
        note += f" Each line is {step} partitions."
    if len(totals.columns) > _MOST_COLUMNS:
        note += f" The picture has the {_MOST_COLUMNS} columns with the largest filters."
    content = table("Filters by partition and column", _PARTITIONS_HEAD, _rows_by_partition(totals))
    return Figure("partitions", _PARTITIONS, note, svg, (content,))


def _partition_cell(label: str, partitions: Sequence[Partition], column: str) -> GridCell:
    """Return the cell of a column in one or several partitions."""
    filters = 0
    row_groups = 0
    worst_fpp: float | None = None
    for partition in partitions:
        row_groups += partition.row_groups
        sums = partition.columns.get(column)
        if sums is None:
            continue
        filters += sums.filters
        if sums.worst_fpp is not None:
            worst_fpp = max(worst_fpp or 0.0, sums.worst_fpp)
    groups = format_count(row_groups, "row group")
    title = f"{label}, {column}: {filters:,} of {groups} with a filter"
    if worst_fpp is not None:
        title += f", worst rate {format_percent(worst_fpp)}"
    share = 0.0
    if row_groups:
        share = filters / row_groups
    return GridCell(share if filters else None, f"{share * 100:.0f}", title)


def _rows_by_partition(totals: LakeTotals) -> Iterator[tuple[Value, ...]]:
    for name in sorted(totals.partitions):
        partition = totals.partitions[name]
        for column, sums in partition.columns.items():
            figures = _row_of_sums(sums, partition.row_groups)
            yield (name, column, count(partition.files), *figures)


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
    bars = []
    rows = []
    for decade in (*range(LOWEST_DECADE, 0), 1):
        name = _name_decade(decade)
        number = totals.decades[decade]
        title = f"{format_count(number, 'filter')}: rate {name}"
        kind = "unreferenced" if decade > 0 else "filter"
        bars.append(Bar(name, number, "", title, kind))
        rows.append((name, count(number)))
    content = table("Filters by rate", ("false-positive rate", "filters"), rows)
    svg = draw_histogram("distribution_p", _RATES, bars, "false-positive rate", "filters")
    note = "Filters above 50 % exclude fewer than half of the absent values."
    return Figure("distribution", _RATES, note, svg, (content,))


def _name_decade(decade: int) -> str:
    if decade > 0:
        return "above 50 %"
    high = "50 %" if decade == -1 else percent(10.0 ** (decade + 1))
    if decade == LOWEST_DECADE:
        return f"below {high}"
    return f"{percent(10.0**decade).removesuffix(' %')} to {high}"


def list_columns(totals: LakeTotals) -> FigureTable:
    """Return the table of all columns."""
    rows = []
    for column, sums in totals.columns.items():
        figures = _row_of_sums(sums, totals.row_groups)
        rows.append((column, *figures))
    return table("Columns with filters", _COLUMNS_HEAD, rows)


def list_worst_files(totals: LakeTotals) -> FigureTable:
    """Return the table of the worst files."""
    rows = []
    for rank in totals.worst_files():
        warnings = count(sum(rank.warnings_by_group))
        figures = (count(rank.filters), rate(rank.worst_fpp), size(rank.bytes))
        rows.append((rank.name, count(rank.errors), warnings, *figures))
    return table("The worst files", _FILES_HEAD, rows)


_WITHOUT_FILTERS = (
    " The first line is for files without filters, in engines that query dictionaries."
)
_LOSES_ROWS = (
    " The findings name filters or statistics that exclude stored values: a row "
    "group that they exclude may still hold the value."
)


def build_query_figures(queries: Mapping[str, QuerySum], *, loses_rows: bool) -> Iterator[Figure]:
    """Yield a figure for each query; `loses_rows` is whether filters or statistics exclude stored
    values."""
    for number, (query, total) in enumerate(queries.items(), 1):
        remark = _WITHOUT_FILTERS
        if total.problems:
            files = format_count(total.problems, "file")
            remark += f" {files} without a column of it: {total.first_problem}"
        if loses_rows:
            remark += _LOSES_ROWS
        yield build_query_figure(
            f"query_{number}", query, total.counts, total.tiles, total.row_groups, remark
        )
