"""The option for the columns that `build` and `add-index` index, and the row of a built filter in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render

if TYPE_CHECKING:
    from sbbf_tool.reports.paimon import BuiltColumn

HEADERS = ("column", "type", "rows", "nulls", "ndv", "items", "fpp", "k", "bits", "fill", "est. fpp")
NUMBERS = tuple(range(2, len(HEADERS)))


def columns_option(source: str) -> Callable[[Any], Any]:
    """Build the option that passes `columns` to a command; `source` names the default columns in its help text."""
    return click.option(
        "-c",
        "--column",
        "columns",
        multiple=True,
        metavar="COL[:items=N,fpp=P]",
        help=f"Column to index (repeat for more); m[key] is an entry of the map m.  [default: the columns named by {source}]",
    )


def format_column(column: BuiltColumn) -> tuple[str, ...]:
    counts = (render.size(count) for count in (column.rows, column.nulls, column.ndv, column.items))
    rates = (render.percent(column.fill_ratio), render.percent(column.estimated_fpp))
    return (column.column, column.type, *counts, render.percent(column.fpp), str(column.k), render.size(column.num_bits), *rates)
