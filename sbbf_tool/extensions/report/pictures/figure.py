"""Figures: a heading, a picture, a note, and a table of the same numbers. The numbers are exact in the attribute `data-v` of a cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pkgutil import get_data
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.svg import text_of
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_number, format_percent, format_size

_MOST_ROWS = 200
"""Rows of a table; the others are counted."""
_OPEN_ROWS = 12


class FigureCell(NamedTuple):
    """A number: how it is shown, and its exact value."""

    text: str
    value: float


Value = str | FigureCell | None


def count(value: float | None) -> FigureCell | None:
    """Return a cell with a whole number or an estimate; None without a number."""
    if value is None:
        return None
    return FigureCell(f"{value:,}" if isinstance(value, int) else format_number(value), value)


def size(value: int | None) -> FigureCell | None:
    """Return a cell with a number of bytes."""
    return None if value is None else FigureCell(format_size(value), value)


def rate(value: float | None) -> FigureCell | None:
    """Return a cell with a share, as a percentage."""
    return None if value is None else FigureCell(format_percent(value), value)


class FigureTable(Frozen):
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    more: int = 0
    """Number of rows that are left out."""


def table(caption: str, head: Sequence[str], rows: Iterable[tuple[Value, ...]], most: int = _MOST_ROWS) -> FigureTable:
    """Return a table of the first rows; the others are counted."""
    remaining = iter(rows)
    first = tuple(islice(remaining, most))
    return FigureTable(caption, tuple(head), first, sum(1 for _ in remaining))


class Figure(Frozen):
    key: str
    """Begins the ids, and is unique on a page."""
    title: str
    note: str
    """How to read the picture."""
    svg: str
    tables: tuple[FigureTable, ...] = ()
    legend: tuple[tuple[str, str], ...] = ()
    """Class of a colour, and what it means."""


def render_figure(figure: Figure) -> str:
    """Return the markup of a figure."""
    keys = "".join(f'<li><span class="swatch {kind}"></span>{text_of(meaning)}</li>' for kind, meaning in figure.legend)
    return "\n".join(
        [
            f'<figure id="{figure.key}" aria-labelledby="{figure.key}_h">',
            f'<h3 id="{figure.key}_h">{text_of(figure.title)}</h3>',
            f"<figcaption>{text_of(figure.note)}</figcaption>",
            *([f'<ul class="legend">{keys}</ul>'] if keys else ()),
            *([_scrolling(figure.svg, f"Picture: {figure.title}")] if figure.svg else ()),
            *(_render_details(each, figure.title) for each in figure.tables),
            "</figure>",
        ]
    )


def _render_details(content: FigureTable, title: str) -> str:
    is_open = " open" if len(content.rows) <= _OPEN_ROWS else ""
    rows = format_count(len(content.rows) + content.more, "row")
    summary = f"<summary>{text_of(content.caption)} ({rows})</summary>"
    return f"<details{is_open}>{summary}{render_table(content, title)}</details>"


def render_table(content: FigureTable, title: str | None = None) -> str:
    """Return the markup of a table in a frame that scrolls if it is too narrow; `title` is that of its figure."""
    kinds = [' class="n"' if content.rows and isinstance(content.rows[0][at], FigureCell) else "" for at in range(len(content.head))]
    head = "".join(f'<th scope="col"{kind}>{text_of(name)}</th>' for kind, name in zip(kinds, content.head, strict=True))
    more = format_count(content.more, "more row")
    foot = f'<tfoot><tr><td colspan="{len(content.head)}">and {more}</td></tr></tfoot>' if content.more else ""
    body = "".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in content.rows)
    return _scrolling(
        f"<table><caption>{text_of(content.caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>",
        f"Table: {content.caption}" if title is None else f"Table: {content.caption} ({title})",
    )


def _render_cell(value: Value) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, FigureCell):
        return f'<td class="n" data-v="{value.value!r}">{text_of(value.text)}</td>'
    return f"<td>{text_of(value)}</td>"


def _scrolling(markup: str, name: str) -> str:
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{text_of(name)}">{markup}</div>'


def load_style() -> str:
    """Return the style, which applies below an element of the class `sbbf`."""
    return load_file("pictures/style.css")


def load_file(name: str) -> str:
    """Return the text of a file of the package."""
    data = get_data("sbbf_tool.extensions.report", name)
    assert data is not None, "the package contains the file"
    return data.decode()
