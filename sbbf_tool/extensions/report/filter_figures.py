"""Figures of filters that have been inspected, for notebooks and the HTML report: rate against bits
per value, and fill by row group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sbbf_tool.extensions.report.pictures.bars import GridCell, bin_size, draw_grid
from sbbf_tool.extensions.report.pictures.figure import (
    Figure,
    FigureTable,
    Value,
    count,
    load_style,
    rate,
    render_figure,
    size,
    table,
)
from sbbf_tool.extensions.report.pictures.rates import (
    Dot,
    Dots,
    build_folds_figure,
    cell_bounds,
    curve_of,
    draw_rates,
)
from sbbf_tool.extensions.report.pictures.tiles import build_query_figure
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count, format_number, format_percent
from sbbf_tool.verbs.advise import AdviceReport
from sbbf_tool.verbs.explain import ExplainReport
from sbbf_tool.verbs.inspect import FilterReport, InspectReport

RATES = "False-positive rate against bits per value"
FILL = "Share of bits set, by column and row group"

_RATES_NOTE = (
    "The line is the rate that the format promises. A dot off it is a filter whose bits are not "
    "spread as values that hash evenly would be; a dot far to the right has more bytes than it "
    "needs. A hollow dot to the left of a filled one counts every stored value: values repeat. A "
    "hollow dot alone is a filter that is full, at the top, or empty, at the bottom."
)
_FILL_NOTE = (
    "A third to a half of the bits are set in a filter of the right size for a rate of 1 %. Near "
    "0 %, the filter wastes bytes or lacks values; near 100 %, it excludes nothing."
)
_RATES_HEAD = (
    "column",
    "row group",
    "bits per value",
    "false-positive rate",
    "distinct values (estimated)",
    "bitset",
)


def dots_of(
    filters: Iterable[FilterReport], values: Mapping[tuple[int, str], int | None]
) -> Iterator[Dot]:
    """Yield a dot for each filter whose bits were measured; `values` are numbers of stored values,
    by row group and column."""
    for row in filters:
        if row.estimated_fpp is None or not row.bitset_bytes:
            continue
        bits_of_stored = None
        stored = values.get((row.row_group, row.column))
        if stored:
            bits_of_stored = row.bitset_bytes * 8 / stored
        name = f"{row.column}, row group {row.row_group}"
        yield Dot(name, row.bits_per_value, bits_of_stored, row.estimated_fpp)


def build_rates_figure(key: str, dots: Dots, filters: Sequence[FilterReport] = ()) -> Figure:
    """Build picture and table of the rates; the table has the filters or, of many, the cells of the
    picture."""
    if filters:
        content = table("Filters", _RATES_HEAD, _rows_of_rates(filters))
    else:
        content = _list_dots(dots)
    return Figure(key, RATES, _RATES_NOTE, draw_rates(f"{key}_p", RATES, dots), (content,))


def _rows_of_rates(filters: Sequence[FilterReport]) -> Iterator[tuple[Value, ...]]:
    for row in filters:
        if row.estimated_fpp is not None:
            yield (
                row.column,
                count(row.row_group),
                count(row.bits_per_value),
                rate(row.estimated_fpp),
                count(row.estimated_ndv),
                size(row.bitset_bytes),
            )


def _list_dots(dots: Dots) -> FigureTable:
    """Return the table of the dots or, of many, of the cells of the picture."""
    if not dots.cells:
        filters = (
            (dot.name, count(dot.bits or dot.bits_of_stored), rate(dot.fpp)) for dot in dots.items
        )
        return table("Filters", ("filter", "bits per value", "false-positive rate"), filters)
    rows = []
    for place, number in dots.cells:
        (low, high), (least, most) = cell_bounds(place)
        bits = f"{format_number(low)} to {format_number(high)}"
        rows.append((bits, f"{format_percent(least)} to {format_percent(most)}", count(number)))
    head = ("bits per value", "false-positive rate", "filters")
    return table("Filters by bits per value and rate", head, rows)


def build_fill_figure(
    key: str,
    filters: Sequence[FilterReport],
    row_groups: int,
    errors: Mapping[tuple[int, str], str] | None = None,
) -> Figure:
    """Build the heat strip of the filters of one file; many row groups share a cell, which shows
    the fullest filter.

    `errors` are rules that found an error, by row group and column: their cells have a frame.
    """
    errors = errors or {}
    stored = [row for row in filters if row.has_filter]
    columns = list(dict.fromkeys(row.column for row in stored))
    step = bin_size(len(columns), row_groups)
    bins = _name_bins(row_groups, step)
    fullest, errors_by_place = _choose_fullest(stored, columns, step, errors)
    cells = {place: _fill_cell(row, errors_by_place.get(place)) for place, row in fullest.items()}
    svg, num_rows = draw_grid(f"{key}_p", FILL, columns, bins, cells, "row group")
    note = _FILL_NOTE
    if errors_by_place:
        note += " A cell with a frame and ! has an error; see the findings."
    if len(cells) < len(columns) * len(bins):
        note += " An empty cell has no filter."
    if step > 1:
        note += f" Each cell is the fullest filter of {step:,} row groups."
    if num_rows < len(columns):
        note += f" The picture has the first {num_rows} of {len(columns):,} columns."
    rows = []
    for row in stored:
        problems = "; ".join(_list_problems(row, errors))
        figures = (count(row.row_group), rate(row.fill_ratio), count(row.blocks))
        rows.append((row.column, *figures, problems))
    content = table(
        "Fill of each filter",
        ("column", "row group", "bits set", "blocks", "problem"),
        rows,
    )
    return Figure(key, FILL, note, svg, (content,))


def _name_bins(row_groups: int, step: int) -> list[str]:
    """Name the row groups of each cell: `step` of them, of `row_groups`."""
    if step == 1:
        return list(map(str, range(row_groups)))
    names = []
    for start in range(0, row_groups, step):
        end = min(start + step, row_groups)
        names.append(f"{start}-{end - 1}")
    return names


def _choose_fullest(
    filters: Sequence[FilterReport],
    columns: Sequence[str],
    step: int,
    errors: Mapping[tuple[int, str], str],
) -> tuple[dict[tuple[int, int], FilterReport], dict[tuple[int, int], str]]:
    """Return the fullest filter of each cell, and the first error of each cell that has one; cells
    are numbers of column and bin."""
    fullest: dict[tuple[int, int], FilterReport] = {}
    errors_by_place: dict[tuple[int, int], str] = {}
    numbers = {column: at for at, column in enumerate(columns)}
    for row in filters:
        place = numbers[row.column], row.row_group // step
        error = errors.get((row.row_group, row.column))
        if error is not None:
            errors_by_place.setdefault(place, f"row group {row.row_group}: {error}")
        rival = fullest.get(place)
        if rival is None or (row.fill_ratio or 0) >= (rival.fill_ratio or 0):
            fullest[place] = row
    return fullest, errors_by_place


def _list_problems(row: FilterReport, errors: Mapping[tuple[int, str], str]) -> Iterator[str]:
    if row.unreadable:
        yield row.unreadable
        return
    if (row.row_group, row.column) in errors:
        yield errors[row.row_group, row.column]
    yield from row.warnings


def _fill_cell(row: FilterReport, error: str | None) -> GridCell:
    place = f"{row.column}, row group {row.row_group}"
    if row.unreadable:
        return GridCell(None, "!", f"{place}: unreadable: {row.unreadable}")
    if row.fill_ratio is None:
        return GridCell(None, "?", f"{place}: its bits were not read")
    blocks = format_count(row.blocks or 0, "block")
    title = (
        f"{place}: {format_percent(row.fill_ratio)} of the bits set, {blocks}, rate "
        f"{format_percent(row.estimated_fpp)}"
    )
    text = f"{row.fill_ratio * 100:.0f}"
    if error is not None:
        return GridCell(row.fill_ratio, f"! {text}", f"{title}; {error}", "alarm")
    return GridCell(row.fill_ratio, text, title)


def render_inspect(report: InspectReport, key: str) -> Iterator[str]:
    """Yield the HTML of rate and fill, if a filter was measured; the ids begin with `key`."""
    if not any(row.estimated_fpp is not None for row in report.filters):
        return iter(())
    values = {(row.row_group, row.column): row.num_values for row in report.filters}
    dots = Dots(dots_of(report.filters, values))
    rates = build_rates_figure(f"{key}_rates", dots, report.filters)
    fill = build_fill_figure(f"{key}_fill", report.filters, report.row_groups)
    return _render([replace(rates, tables=()), replace(fill, tables=())])


def render_explain(report: ExplainReport, key: str) -> Iterator[str]:
    """Yield the HTML of what each engine does with each row group."""
    if not report.engines:
        return iter(())
    names = [f"row group {row.row_group}" for row in report.row_groups]
    counts = {}
    tiles = {}
    for engine in report.engines:
        counts[engine.name] = Counter(engine.steps)
        tiles[engine.name] = list(zip(engine.steps, names, strict=False))
    title = f"{report.column} = {report.value}"
    return _render([build_query_figure(f"{key}_steps", title, counts, tiles, len(names))])


def render_advice(report: AdviceReport, key: str) -> Iterator[str]:
    """Yield the HTML of the rates that smaller filters would have."""
    curves = [curve_of(column.column, column.sizes) for column in report.filter_sizes]
    if not curves:
        return iter(())
    return _render([build_folds_figure(f"{key}_folds", curves)])


def _render(figures: Sequence[Figure]) -> Iterator[str]:
    yield f'<div class="sbbf"><style>{load_style()}</style>'
    yield from map(render_figure, figures)
    yield "</div>"
