"""The option for the columns that `build` and `add-index` index, and the row of a built filter in a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.tables import COUNT, NAME, RATE, WORD, Heading

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import BuiltColumn

COLUMNS = (
    Heading("column", NAME),
    Heading("type", WORD, 5),
    Heading("rows", COUNT, 3),
    Heading("nulls", COUNT, 4),
    Heading("ndv", COUNT),
    Heading("items", COUNT, 2),
    Heading("target fpp", RATE, 1),
    Heading("k", COUNT, 6),
    Heading("bits", COUNT, 7),
    Heading("fill", RATE, 4),
    Heading("fpp", RATE),
)


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


def format_column(column: BuiltColumn) -> tuple[object, ...]:
    counts = (column.rows, column.nulls, column.ndv, column.items)
    return (column.column, column.type, *counts, column.fpp, column.k, column.num_bits, column.fill_ratio, column.estimated_fpp)
