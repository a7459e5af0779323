"""The figure of queries: what excludes each row group, without the filters and with them, by engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sbbf_tool.extensions.report.pictures.figure import Figure
from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS
from sbbf_tool.extensions.report.pictures.tiles import STEPS, TileRow, build_figure
from sbbf_tool.extensions.report.totals import QuerySum
from sbbf_tool.numbers import format_count

_WITHOUT = "without filters"


_LOSES_ROWS = " The findings name filters or statistics that exclude stored values: a row group that they exclude may still hold the value."


def build_query_figures(queries: Mapping[str, QuerySum], *, loses_rows: bool = False) -> Iterator[Figure]:
    """Yield a figure for each query; `loses_rows` is whether filters or statistics exclude stored values."""
    for number, (query, total) in enumerate(queries.items(), 1):
        yield _build_figure(f"query_{number}", query, total, _LOSES_ROWS if loses_rows else "")


def _build_figure(key: str, query: str, total: QuerySum, doubt: str) -> Figure:
    engines_by_outcome: dict[tuple[object, ...], list[str]] = {}
    for engine in total.counts:
        if engine:
            outcome = (tuple(sorted(total.counts[engine].items())), tuple(total.tiles[engine]))
            engines_by_outcome.setdefault(outcome, []).append(engine)
    groups = [("",)] if "" in total.counts else []
    all_groups = [*groups, *(tuple(names) for names in engines_by_outcome.values())]
    has_tiles = total.row_groups * len(all_groups) <= MOST_MARKS
    rows = [
        TileRow(
            ", ".join(names) if names[0] else _WITHOUT,
            tuple((step, total.counts[names[0]][step]) for step in STEPS),
            tuple(total.tiles[names[0]]) if has_tiles else (),
        )
        for names in all_groups
    ]
    problem = f" {format_count(total.problems, 'file')} without a column of it: {total.first_problem}" if total.problems else ""
    remark = f" The first line is for files without filters, in engines that query dictionaries.{problem}{doubt}"
    return build_figure(key, f"Query: {query}", rows, total.row_groups, remark)
