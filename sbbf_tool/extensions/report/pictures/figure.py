"""Figures: a heading, a picture as SVG text, a note, and a table of the same numbers, exact in the
attribute `data-v` of a cell.

Text is escaped, nothing is loaded, and a picture holds no script and no style. Colours are classes,
which `style` defines for light and dark. Every mark has a `<title>`, which browsers show and
readers read aloud.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape as escape_markup
from itertools import islice
from math import ceil, floor, log10
from pkgutil import get_data
from typing import NamedTuple

from sbbf_tool.display import escape
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_number, format_percent, format_size

WIDTH = 880
"""Width of every picture, in the units of its `viewBox`."""
MOST_MARKS = 2000
"""Number of marks from which on a picture shows bins."""
_LABEL = 26
"""Characters of a label; longer ones are shortened in the middle, and their title is whole."""


def text_of(text: str) -> str:
    """Escape text for markup, without characters that hide or reverse text; bytes of file names
    that are not UTF-8 become codes."""
    return escape_markup(escape(text))


def shorten(text: str, most: int = _LABEL) -> str:
    """Shorten text in the middle."""
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def number(value: float) -> str:
    """Write a coordinate with at most one decimal."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def percent(share: float) -> str:
    """Write a power of ten as a percentage, without an exponent."""
    text = f"{share * 100:.12f}".rstrip("0").rstrip(".")
    return f"{text} %"


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    kind: str,
    title: str,
    opacity: float | None = None,
) -> str:
    """Draw a rectangle as a mark; `kind` is the class of its colour."""
    shade = "" if opacity is None else f' fill-opacity="{opacity:.2f}"'
    place = f'x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"'
    return f'<rect class="mark {kind}" {place}{shade}><title>{text_of(title)}</title></rect>'


def circle(x: float, y: float, radius: float, kind: str, title: str) -> str:
    """Draw a dot as a mark."""
    return (
        f'<circle class="mark {kind}" cx="{number(x)}" cy="{number(y)}" '
        f'r="{number(radius)}"><title>{text_of(title)}</title></circle>'
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "l") -> str:
    """Draw a line that is no mark, such as one of a grid."""
    return f'<path class="{kind}" d="M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}"/>'


def path(points: Sequence[tuple[float, float]], kind: str) -> str:
    """Draw a line through points that is no mark."""
    if not points:
        return ""
    places = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f'<path class="{kind}" d="M{places}"/>'


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "t") -> str:
    """Write text at its baseline; `anchor` is start, middle or end."""
    end = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text class="{kind}" x="{number(x)}" y="{number(y)}"{end}>{text_of(text)}</text>'


def picture(key: str, title: str, description: str, height: float, marks: Sequence[str]) -> str:
    """Return a whole `<svg>`; `key` begins its ids, and is unique on a page."""
    return (
        f'<svg class="picture" viewBox="0 0 {WIDTH} {number(height)}" role="img" '
        f'aria-labelledby="{key}_t {key}_d">'
        f'<title id="{key}_t">{text_of(title)}</title>'
        f'<desc id="{key}_d">{text_of(description)}</desc>'
        f"{''.join(marks)}</svg>"
    )


class LogAxis:
    """A logarithmic scale from values to coordinates; values outside of it are at its ends."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self._low = log10(low)
        self._high = log10(high)
        self.start = start
        self.end = end

    def __call__(self, value: float) -> float:
        share = 0.0
        if value > 0:
            share = (log10(value) - self._low) / (self._high - self._low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def powers(self, base: int, most: int) -> list[float]:
        """Return the powers of a number on the scale, from the largest one down, about `most` of
        them."""
        first = ceil(self._low / log10(base) - 1e-9)
        last = floor(self._high / log10(base) + 1e-9)
        step = max(1, -(-(last - first) // most))
        return [float(base) ** power for power in range(last, first - 1, -step)]

    def draw_with(
        self, y: LogAxis, write: Callable[[float], str], x_label: str, y_label: str
    ) -> list[str]:
        """Draw a grid of this axis, its numbers at doublings, and a vertical one, a share at each
        decade, and name both."""
        marks = []
        for value in self.powers(2, 12):
            marks += [
                line(self(value), y.end, self(value), y.start),
                label(self(value), y.start + 15, write(value), "middle", "s"),
            ]
        for share in y.powers(10, 8):
            marks += [
                line(self.start, y(share), self.end, y(share)),
                label(self.start - 6, y(share) + 4, percent(share), "end", "s"),
            ]
        marks.append(label(self.end, y.start + 32, f"{x_label} (logarithmic)", "end", "s"))
        marks.append(label(self.start, 12, f"{y_label} (logarithmic)", kind="s"))
        return marks


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
    text = f"{value:,}" if isinstance(value, int) else format_number(value)
    return FigureCell(text, value)


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


def table(
    caption: str, head: Sequence[str], rows: Iterable[tuple[Value, ...]], most: int = _MOST_ROWS
) -> FigureTable:
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
    lines = [
        f'<figure id="{figure.key}" aria-labelledby="{figure.key}_h">',
        f'<h3 id="{figure.key}_h">{text_of(figure.title)}</h3>',
        f"<figcaption>{text_of(figure.note)}</figcaption>",
    ]
    if figure.legend:
        lines.append(_render_legend(figure.legend))
    if figure.svg:
        lines.append(_scrolling(figure.svg, f"Picture: {figure.title}"))
    lines += (_render_details(content, figure.title) for content in figure.tables)
    lines.append("</figure>")
    return "\n".join(lines)


def _render_legend(legend: tuple[tuple[str, str], ...]) -> str:
    keys = "".join(
        f'<li><span class="swatch {kind}"></span>{text_of(meaning)}</li>'
        for kind, meaning in legend
    )
    return f'<ul class="legend">{keys}</ul>'


def _render_details(content: FigureTable, title: str) -> str:
    is_open = " open" if len(content.rows) <= _OPEN_ROWS else ""
    rows = format_count(len(content.rows) + content.more, "row")
    summary = f"<summary>{text_of(content.caption)} ({rows})</summary>"
    return f"<details{is_open}>{summary}{render_table(content, title)}</details>"


def render_table(content: FigureTable, title: str | None = None) -> str:
    """Return the markup of a table in a frame that scrolls if it is too narrow; `title` is that of
    its figure."""
    first_row = content.rows[0] if content.rows else ()
    head = ""
    for at, name in enumerate(content.head):
        is_number = bool(first_row) and isinstance(first_row[at], FigureCell)
        kind = ' class="n"' if is_number else ""
        head += f'<th scope="col"{kind}>{text_of(name)}</th>'
    body = "".join(f"<tr>{''.join(map(_render_cell, row))}</tr>" for row in content.rows)
    foot = ""
    if content.more:
        more = format_count(content.more, "more row")
        foot = f'<tfoot><tr><td colspan="{len(content.head)}">and {more}</td></tr></tfoot>'
    markup = (
        f"<table><caption>{text_of(content.caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table>"
    )
    name = f"Table: {content.caption}"
    if title is not None:
        name += f" ({title})"
    return _scrolling(markup, name)


def _render_cell(value: Value) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, FigureCell):
        return f'<td class="n" data-v="{value.value!r}">{text_of(value.text)}</td>'
    return f"<td>{text_of(value)}</td>"


def _scrolling(markup: str, name: str) -> str:
    return (
        '<div class="scroll" role="region" tabindex="0" '
        f'aria-label="{text_of(name)}">{markup}</div>'
    )


def load_style() -> str:
    """Return the style, which applies below an element of the class `sbbf`."""
    return load_file("pictures/style.css")


def load_file(name: str) -> str:
    """Return the text of a file of the package."""
    data = get_data("sbbf_tool.extensions.report", name)
    assert data is not None, "the package contains the file"
    return data.decode()
