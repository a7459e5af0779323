"""The pictures of reports in notebooks, below their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sbbf_tool.extensions.report.filter_figures import build_figures
from sbbf_tool.extensions.report.pictures.figure import Figure, load_style, render_figure
from sbbf_tool.extensions.report.pictures.folds import Curve, build_folds_figure
from sbbf_tool.extensions.report.pictures.tiles import build_query_figure
from sbbf_tool.verbs.advise import AdviceReport
from sbbf_tool.verbs.explain import ExplainReport
from sbbf_tool.verbs.inspect import InspectReport


def render_inspect(report: InspectReport, key: str) -> Iterator[str]:
    """Yield the HTML of rate and fill; the ids begin with `key`."""
    return _render(list(build_figures(key, report.filters, report.row_groups)))


def render_explain(report: ExplainReport, key: str) -> Iterator[str]:
    """Yield the HTML of what each engine does with each row group."""
    names = [f"row group {row.row_group}" for row in report.row_groups]
    counts = {engine.name: Counter(engine.steps) for engine in report.engines}
    tiles = {engine.name: list(zip(engine.steps, names, strict=False)) for engine in report.engines}
    title = f"{report.column} = {report.value}"
    return _render([build_query_figure(f"{key}_steps", title, counts, tiles, len(names))] if counts else [])


def render_advice(report: AdviceReport, key: str) -> Iterator[str]:
    """Yield the HTML of the rates that smaller filters would have."""
    curves = [
        Curve(column.column, tuple((size.bytes, size.mean_fpp, size.worst_fpp) for size in column.sizes)) for column in report.filter_sizes
    ]
    return _render([build_folds_figure(f"{key}_folds", curves)] if curves else [])


def _render(figures: Sequence[Figure]) -> Iterator[str]:
    if figures:
        yield f'<div class="sbbf"><style>{load_style()}</style>'
        yield from map(render_figure, figures)
        yield "</div>"
