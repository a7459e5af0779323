"""A built filter as a row of a table, for `build` and `add-index`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.cli import render

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import BuiltColumn

HEADERS = ("column", "type", "rows", "nulls", "distinct", "items", "fpp", "k", "bits", "fill", "est. fpp")
NUMBERS = tuple(range(2, len(HEADERS)))


def of_column(column: BuiltColumn) -> tuple[str, ...]:
    counts = (render.size(count) for count in (column.rows, column.nulls, column.distinct, column.items))
    rates = (render.percent(column.fill), render.percent(column.error_rate))
    return (column.column, column.type, *counts, render.percent(column.fpp), str(column.k), render.size(column.num_bits), *rates)
