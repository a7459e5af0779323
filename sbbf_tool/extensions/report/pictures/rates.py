"""False-positive rates: against bits per value, as the curve of the format and filters as dots, and
at every half of their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import floor, log2, log10
from typing import NamedTuple

from sbbf_tool.advice.totals import FoldedSize
from sbbf_tool.bloom.sizing import fpp_of_bits
from sbbf_tool.extensions.report.pictures.figure import (
    MOST_MARKS,
    WIDTH,
    Figure,
    LogAxis,
    Value,
    circle,
    label,
    line,
    path,
    picture,
    rate,
    shorten,
    table,
)
from sbbf_tool.extensions.report.pictures.figure import size as format_bytes
from sbbf_tool.numbers import format_count, format_number, format_percent, format_size

_MARGIN = 80
_RIGHT = WIDTH - 20
_TOP = 20
_BOTTOM = 320
_LEAST_FPP = 1e-9
_LEAST_BITS = 1.0
_MOST_BITS = 4096.0
_STEPS = 160
_COLUMNS = 50
_ROWS = 40


class Dot(NamedTuple):
    """A filter: bits per distinct value, and per stored value; None where unknown."""

    name: str
    bits: float | None
    bits_of_stored: float | None
    fpp: float


class Dots:
    """Dots of any number of filters: beyond 2,000, only the number of dots in each cell of a grid
    is kept."""

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
        """Column, row and number of dots of each cell, if there are too many dots for a mark
        each."""
        return [] if self._dots else sorted(self._cells.items())


def _cell_of(bits: float, fpp: float) -> tuple[int, int]:
    bits = min(max(bits, _LEAST_BITS), _MOST_BITS)
    fpp = min(max(fpp, _LEAST_FPP), 1.0)
    column = (log2(bits) - log2(_LEAST_BITS)) / log2(_MOST_BITS / _LEAST_BITS) * _COLUMNS
    row = log10(fpp / _LEAST_FPP) / log10(1 / _LEAST_FPP) * _ROWS
    return min(_COLUMNS - 1, floor(column)), min(_ROWS - 1, floor(row))


def cell_bounds(cell: tuple[int, int]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the lowest and highest bits per value, and the lowest and highest rate, of a cell."""
    column, row = cell
    return (
        (_bits_at(column / _COLUMNS), _bits_at((column + 1) / _COLUMNS)),
        (_fpp_at(row / _ROWS), _fpp_at((row + 1) / _ROWS)),
    )


def _bits_at(share: float) -> float:
    return float(_LEAST_BITS * (_MOST_BITS / _LEAST_BITS) ** share)


def _fpp_at(share: float) -> float:
    return float(_LEAST_FPP * (1 / _LEAST_FPP) ** share)


def draw_rates(key: str, title: str, dots: Dots) -> str:
    """Draw the curve and the dots; a line leads from a dot to the bits per stored value, duplicates
    included, if these differ."""
    x = LogAxis(_LEAST_BITS, _MOST_BITS, _MARGIN, _RIGHT)
    y = LogAxis(_LEAST_FPP, 1.0, _BOTTOM, _TOP)
    write_bits = partial(format_number, exact=True)
    marks = x.draw_with(y, write_bits, "bits per value", "false-positive rate")
    curve = []
    for step in range(_STEPS + 1):
        bits = _bits_at(step / _STEPS)
        fpp = fpp_of_bits(bits)
        if fpp >= _LEAST_FPP:
            curve.append((x(bits), y(fpp)))
    marks.append(path(curve, "curve"))
    for dot in dots.items:
        marks += _draw_dot(dot, x, y)
    for cell, filters in dots.cells:
        marks.append(_draw_cell(cell, filters, x, y))
    description = f"the curve of the format and {format_count(dots.total, 'filter')}"
    return picture(key, title, description, _BOTTOM + 40, marks)


def _draw_cell(cell: tuple[int, int], filters: int, x: LogAxis, y: LogAxis) -> str:
    """Draw a number of filters as a dot in the middle of their cell, the larger the more there
    are."""
    (low, high), (least, most) = cell_bounds(cell)
    title = (
        f"{format_count(filters, 'filter')}: {format_number(low)} to {format_number(high)} bits "
        f"per value, rate {format_percent(least)} to {format_percent(most)}"
    )
    radius = min(8.0, 2 + log10(filters))
    return circle(x((low * high) ** 0.5), y((least * most) ** 0.5), radius, "filter", title)


def _draw_dot(dot: Dot, x: LogAxis, y: LogAxis) -> list[str]:
    bits = dot.bits or dot.bits_of_stored
    assert bits is not None
    height = y(dot.fpp)
    values = "distinct value" if dot.bits else "stored value"
    rate_text = f"rate {format_percent(dot.fpp)}"
    title = f"{dot.name}: {format_number(bits)} bits per {values}, {rate_text}"
    if not dot.bits:
        title += ", full" if dot.fpp else ", empty"
        return [circle(x(bits), height, 5, "hollow", title)]
    mark = circle(x(bits), height, 4, "filter", title)
    if dot.bits_of_stored is None or dot.bits_of_stored > 0.8 * bits:
        return [mark]
    place = x(dot.bits_of_stored)
    stored = f"{dot.name}: {format_number(dot.bits_of_stored)} bits per stored value: values repeat"
    return [
        line(place, height, x(bits), height, "thin"),
        circle(place, height, 2.5, "hollow", stored),
        mark,
    ]


_CURVES_RIGHT = WIDTH - 190
_CURVES_BOTTOM = 300
_HIGH_FPP = 1e-2
"""The scale goes at least half a decade below, so that filters that exclude nothing are a line at
its top."""
_MOST_LINES = 12
_LABEL_HEIGHT = 14


class Curve(NamedTuple):
    """The filters of one column: bytes, mean and worst rate at each number of halvings, from 0
    on."""

    name: str
    sizes: tuple[tuple[int, float, float], ...]


def curve_of(name: str, sizes: Iterable[FoldedSize]) -> Curve:
    """Return the curve of a column whose filters have these sizes."""
    points = [(size.bytes, size.mean_fpp, size.worst_fpp) for size in sizes]
    return Curve(name, tuple(points))


FOLDS = "What smaller filters would do"
_USELESS_FPP = 0.9
_NOTE = (
    "Each filter folded in half again and again: the rate is exact, and needs no data. The large "
    "dot is the filter as it is. A line that stays low to the left of it means that smaller "
    "filters exclude as much; a line at the top, that the filters exclude nothing."
)
_FOLDS_HEAD = (
    "column",
    "size",
    "bytes of all bitsets",
    "mean false-positive rate",
    "worst false-positive rate",
)


def build_folds_figure(key: str, curves: Sequence[Curve]) -> Figure:
    """Build picture and table of the filters at every half of their size, as long as they exclude
    anything."""
    content = table("Filters at every half of their size", _FOLDS_HEAD, _rows_of_folds(curves))
    return Figure(key, FOLDS, _NOTE, draw_folds(f"{key}_p", FOLDS, curves), (content,))


def _rows_of_folds(curves: Sequence[Curve]) -> Iterator[tuple[Value, ...]]:
    for curve in curves:
        for halvings, (size, mean, worst) in enumerate(curve.sizes):
            if halvings and mean >= _USELESS_FPP:
                continue
            share = f"1/{1 << halvings}" if halvings else "as it is"
            yield curve.name, share, format_bytes(size), rate(mean), rate(worst)


def draw_folds(key: str, title: str, curves: Sequence[Curve]) -> str:
    """Draw a line per column, for the columns whose filters are the largest; sizes of which the
    rate is above a half end a line."""
    curves_with_sizes = [curve for curve in curves if curve.sizes]
    curves_with_sizes.sort(key=lambda curve: -curve.sizes[0][0])
    shown_curves = curves_with_sizes[:_MOST_LINES]
    x, y = _fold_axes(shown_curves)
    marks = x.draw_with(
        y,
        lambda size: format_size(int(size)),
        "bytes of all bitsets of the column",
        "mean false-positive rate",
    )
    most = MOST_MARKS // max(1, len(shown_curves))
    places = []
    for curve in shown_curves:
        marks += _draw_curve(curve, most, x, y)
        size, fpp, _ = curve.sizes[0]
        places.append((y(fpp), x(size), curve.name))
    marks += _place_labels(places)
    return picture(key, title, f"{len(shown_curves)} columns", _CURVES_BOTTOM + 40, marks)


def _fold_axes(curves: Sequence[Curve]) -> tuple[LogAxis, LogAxis]:
    """Return the scales of sizes and of rates of the curves."""
    sizes = []
    least = _HIGH_FPP
    for curve in curves:
        for size, fpp, _ in curve.sizes:
            sizes.append(size)
            least = min(least, fpp)
    low = min(sizes, default=64)
    high = max(sizes, default=64)
    # A single size still has a grid around it.
    margin = 1.3 if low < high else 2
    return (
        LogAxis(low / margin, high * margin, _MARGIN, _CURVES_RIGHT),
        LogAxis(max(_LEAST_FPP, least / 2), 1.0, _CURVES_BOTTOM, _TOP),
    )


def _draw_curve(curve: Curve, most: int, x: LogAxis, y: LogAxis) -> list[str]:
    """Draw the first `most` sizes of a column, with a larger dot for the filters as they are."""
    sizes = curve.sizes[:most]
    marks = [path([(x(size), y(fpp)) for size, fpp, _ in sizes], "curve")]
    for halvings, (size, fpp, _) in enumerate(sizes):
        share = "as it is"
        radius = 5.5
        kind = "filter"
        if halvings:
            share = f"1/{1 << halvings} of the size"
            radius = 4
            kind = "heat"
        text = f"{curve.name}, {share}: {format_size(size)}, rate {format_percent(fpp)}"
        marks.append(circle(x(size), y(fpp), radius, kind, text))
    return marks


def _place_labels(places: list[tuple[float, float, str]]) -> list[str]:
    """Write the name of each curve to the right of its first dot; of dots at nearly one height,
    the name of the first and how many curves more there are."""
    groups: list[list[tuple[float, float, str]]] = []
    for place in sorted(places):
        if groups and place[0] - groups[-1][0][0] < _LABEL_HEIGHT:
            groups[-1].append(place)
        else:
            groups.append([place])
    marks = []
    for group in groups:
        y, x, name = group[0]
        text = shorten(name, 28)
        if len(group) > 1:
            text = f"{shorten(name, 18)} and {len(group) - 1} more"
        marks += [
            line(x + 6, y, _CURVES_RIGHT + 6, y, "l"),
            label(_CURVES_RIGHT + 9, y + 4, text),
        ]
    return marks
