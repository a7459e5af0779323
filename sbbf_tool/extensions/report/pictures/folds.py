"""What-if: the false-positive rate of filters at every half of their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import Figure, rate, table
from sbbf_tool.extensions.report.pictures.figure import size as format_bytes
from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS, WIDTH, LogAxis, circle, label, line, path, picture, shorten
from sbbf_tool.numbers import format_percent, format_size

_MARGIN, _RIGHT, _TOP, _BOTTOM = 80, WIDTH - 190, 20, 300
_LEAST_FPP = 1e-9
_HIGH_FPP = 1e-2
"""The scale goes at least half a decade below, so that filters that exclude nothing are a line at its top."""
_MOST_LINES = 12
_LABEL_HEIGHT = 14


class Curve(NamedTuple):
    """The filters of one column: bytes, mean and worst rate at each number of halvings, from 0 on."""

    name: str
    sizes: tuple[tuple[int, float, float], ...]


FOLDS = "What smaller filters would do"
_USELESS_FPP = 0.9
_NOTE = (
    "Each filter folded in half again and again: the rate is exact, and needs no data. The large dot is the filter as it is. A line that "
    "stays low to the left of it means that smaller filters exclude as much; a line at the top, that the filters exclude nothing."
)


def build_folds_figure(key: str, curves: Sequence[Curve]) -> Figure:
    """Build picture and table of the filters at every half of their size, as long as they exclude anything."""
    rows = (
        (curve.name, f"1/{1 << halvings}" if halvings else "as it is", format_bytes(size), rate(mean), rate(worst))
        for curve in curves
        for halvings, (size, mean, worst) in enumerate(curve.sizes)
        if not halvings or mean < _USELESS_FPP
    )
    head = ("column", "size", "bytes of all bitsets", "mean false-positive rate", "worst false-positive rate")
    content = table("Filters at every half of their size", head, rows)
    return Figure(key, FOLDS, _NOTE, draw_folds(f"{key}_p", FOLDS, curves), (content,))


def draw_folds(key: str, title: str, curves: Sequence[Curve]) -> str:
    """Draw a line per column, for the columns whose filters are the largest; sizes of which the rate is above a half end a line."""
    shown_curves = sorted((curve for curve in curves if curve.sizes), key=lambda curve: -curve.sizes[0][0])[:_MOST_LINES]
    points = [size for curve in shown_curves for size in curve.sizes]
    low, high = min((size for size, _, _ in points), default=64), max((size for size, _, _ in points), default=64)
    # A single size still has a grid around it.
    x = LogAxis(low / (1.3 if low < high else 2), high * (1.3 if low < high else 2), _MARGIN, _RIGHT)
    y = LogAxis(max(_LEAST_FPP, min((fpp for _, fpp, _ in points if fpp < _HIGH_FPP), default=_HIGH_FPP) / 2), 1.0, _BOTTOM, _TOP)
    marks = x.draw_with(y, lambda size: format_size(int(size)), "bytes of all bitsets of the column", "mean false-positive rate")
    most = MOST_MARKS // max(1, len(shown_curves))
    for curve in shown_curves:
        sizes = curve.sizes[:most]
        marks.append(path([(x(size), y(fpp)) for size, fpp, _ in sizes], "curve"))
        for halvings, (size, fpp, _) in enumerate(sizes):
            share = f"1/{1 << halvings} of the size" if halvings else "as it is"
            title_of_mark = f"{curve.name}, {share}: {format_size(size)}, rate {format_percent(fpp)}"
            marks.append(circle(x(size), y(fpp), 4 if halvings else 5.5, "heat" if halvings else "filter", title_of_mark))
    marks += _place_labels([(y(curve.sizes[0][1]), x(curve.sizes[0][0]), curve.name) for curve in shown_curves])
    return picture(key, title, f"{len(shown_curves)} columns", _BOTTOM + 40, marks)


def _place_labels(places: list[tuple[float, float, str]]) -> list[str]:
    """Write the name of each curve to the right of its first dot, without overlaps."""
    marks, free = [], float(_TOP)
    for y, x, name in sorted(places):
        at = max(y + 4, free)
        free = at + _LABEL_HEIGHT
        marks += [line(x + 6, y, _RIGHT + 6, at - 4, "l"), label(_RIGHT + 9, at, shorten(name, 28))]
    return marks
