"""False-positive rate against bits per value: the curve of the format, and filters as dots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from math import floor, log2, log10
from typing import NamedTuple

from sbbf_tool.bloom.sizing import fpp_of_bits
from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS, WIDTH, LogAxis, circle, line, path, picture
from sbbf_tool.numbers import format_count, format_number, format_percent

_MARGIN, _RIGHT, _TOP, _BOTTOM = 80, WIDTH - 20, 20, 320
_LEAST_FPP = 1e-9
_LEAST_BITS, _MOST_BITS = 1.0, 4096.0
_STEPS = 160
_COLUMNS, _ROWS = 50, 40


class Dot(NamedTuple):
    """A filter: bits per distinct value, and per stored value; None where unknown."""

    name: str
    bits: float | None
    bits_of_stored: float | None
    fpp: float


class Dots:
    """Dots of any number of filters: beyond 2,000, only the number of dots in each cell of a grid is kept."""

    def __init__(self, dots: Iterable[Dot] = ()) -> None:
        self.total = 0
        self._dots: list[Dot] = []
        self._cells: Counter[tuple[int, int]] = Counter()
        for dot in dots:
            self.add(dot)

    def add(self, dot: Dot) -> None:
        """Add a dot; one without bits per value is not in the picture."""
        bits = dot.bits or dot.bits_of_stored
        if bits is None:
            return
        self.total += 1
        if self.total <= MOST_MARKS // 2:  # each may have a second mark
            self._dots.append(dot)
        else:
            self._dots.clear()
        self._cells[_cell_of(bits, dot.fpp)] += 1

    @property
    def items(self) -> Sequence[Dot]:
        """The dots, if each has a mark of its own."""
        return self._dots

    @property
    def cells(self) -> Sequence[tuple[tuple[int, int], int]]:
        """Column, row and number of dots of each cell, if there are too many dots for a mark each."""
        return [] if self._dots else sorted(self._cells.items())


def _cell_of(bits: float, fpp: float) -> tuple[int, int]:
    column = (log2(min(max(bits, _LEAST_BITS), _MOST_BITS)) - log2(_LEAST_BITS)) / log2(_MOST_BITS / _LEAST_BITS) * _COLUMNS
    row = log10(min(max(fpp, _LEAST_FPP), 1.0) / _LEAST_FPP) / log10(1 / _LEAST_FPP) * _ROWS
    return min(_COLUMNS - 1, floor(column)), min(_ROWS - 1, floor(row))


def cell_bounds(cell: tuple[int, int]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lowest and highest bits per value, and the lowest and highest rate, of a cell."""
    column, row = cell
    bits = [_LEAST_BITS * (_MOST_BITS / _LEAST_BITS) ** ((column + end) / _COLUMNS) for end in (0, 1)]
    rates = [_LEAST_FPP * (1 / _LEAST_FPP) ** ((row + end) / _ROWS) for end in (0, 1)]
    return (bits[0], bits[1]), (rates[0], rates[1])


def draw_rates(key: str, title: str, dots: Dots) -> str:
    """Draw the curve and the dots; a line leads from a dot to the bits per stored value, duplicates included, if these differ."""
    x = LogAxis(_LEAST_BITS, _MOST_BITS, _MARGIN, _RIGHT)
    y = LogAxis(_LEAST_FPP, 1.0, _BOTTOM, _TOP)
    marks = x.draw_with(y, partial(format_number, exact=True), "bits per value", "false-positive rate")
    samples = (_LEAST_BITS * (_MOST_BITS / _LEAST_BITS) ** (at / _STEPS) for at in range(_STEPS + 1))
    curve = [(x(bits), y(rate)) for bits in samples if (rate := fpp_of_bits(bits)) >= _LEAST_FPP]
    marks.append(path(curve, "curve"))
    for dot in dots.items:
        marks += _draw_dot(dot, x, y)
    for cell, filters in dots.cells:
        (low, high), (least, most) = cell_bounds(cell)
        place = f"{format_number(low)} to {format_number(high)} bits per value, rate {format_percent(least)} to {format_percent(most)}"
        radius = min(8.0, 2 + log10(filters))
        marks.append(
            circle(x((low * high) ** 0.5), y((least * most) ** 0.5), radius, "filter", f"{format_count(filters, 'filter')}: {place}")
        )
    return picture(key, title, f"the curve of the format and {format_count(dots.total, 'filter')}", _BOTTOM + 40, marks)


def _draw_dot(dot: Dot, x: LogAxis, y: LogAxis) -> list[str]:
    bits = dot.bits or dot.bits_of_stored
    assert bits is not None
    bits_text = f"{format_number(bits)} bits per {'distinct value' if dot.bits else 'stored value'}"
    title = f"{dot.name}: {bits_text}, rate {format_percent(dot.fpp)}"
    if not dot.bits:
        return [circle(x(bits), y(dot.fpp), 5, "hollow", f"{title}, {'full' if dot.fpp else 'empty'}")]
    mark = circle(x(bits), y(dot.fpp), 4, "filter", title)
    if dot.bits_of_stored is None or dot.bits_of_stored > 0.8 * bits:
        return [mark]
    place = x(dot.bits_of_stored)
    stored = f"{dot.name}: {format_number(dot.bits_of_stored)} bits per stored value: values repeat"
    return [line(place, y(dot.fpp), x(bits), y(dot.fpp), "thin"), circle(place, y(dot.fpp), 2.5, "hollow", stored), mark]
