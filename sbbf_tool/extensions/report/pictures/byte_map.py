"""Where the bytes are: a bar from the first byte of a file to the last, and below it a lane for
each kind of content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import MOST_MARKS, WIDTH, label, picture, rect
from sbbf_tool.numbers import format_count, format_size

_MARGIN = 130
_SPAN = WIDTH - 150
_LANE = 16
_BAR = 26
_LEAST_WIDTH = 1.5

KINDS = {
    "pages": ("pages", "pages"),
    "dictionary page": ("dictionary", "dictionaries"),
    "column index": ("index", "column indexes"),
    "offset index": ("index", "offset indexes"),
    "filter": ("filter", "Bloom filters"),
    "unreferenced": ("unreferenced", "unreferenced"),
    "footer": ("footer", "footer"),
    "other": ("nothing", "other bytes"),
}
"""The class of the colour, and the name of the lane, of each kind of content."""


class Span(NamedTuple):
    start: int
    end: int
    kind: str
    """A key of `KINDS`."""
    name: str


class Mark(NamedTuple):
    """Parts of one kind so close together that they are one mark."""

    start: int
    end: int
    bytes: int
    parts: int
    kind: str
    name: str


def merge_parts(parts: Iterable[Span], size: int, most: int, *, by_kind: bool = True) -> list[Mark]:
    """Merge parts that begin in the same of `most` equal ranges of the file; parts of several kinds
    only unless `by_kind`."""
    marks: list[Mark] = []
    step = max(1.0, size / max(1, most))
    all_parts = sorted(parts)
    is_many = len(all_parts) > most
    for part in all_parts:
        length = part.end - part.start
        last = marks[-1] if is_many and marks else None
        if (
            last is None
            or int(last.start / step) != int(part.start / step)
            or (by_kind and last.kind != part.kind)
        ):
            marks.append(Mark(part.start, part.end, length, 1, part.kind, part.name))
            continue
        marks[-1] = Mark(
            last.start,
            max(last.end, part.end),
            last.bytes + length,
            last.parts + 1,
            last.kind if last.bytes >= length else part.kind,
            last.name,
        )
    return marks


def draw_byte_map(
    key: str,
    title: str,
    parts: Sequence[Span],
    size: int,
    before: tuple[Sequence[Span], int] | None,
) -> str:
    """Draw a file of `size` bytes; `before` are the parts and the size of its earlier version,
    which is drawn above it."""
    bars = [("file", parts, size)]
    if before is not None:
        earlier_parts, earlier_size = before
        bars = [("before", earlier_parts, earlier_size), ("now", parts, size)]
    scale = _SPAN / max(1, *(length for _, _, length in bars))
    parts_by_kind: dict[str, list[Span]] = {}
    for part in parts:
        parts_by_kind.setdefault(part.kind, []).append(part)
    kinds = [kind for kind in KINDS if kind in parts_by_kind]
    most = MOST_MARKS // (len(kinds) + 2)
    marks = []
    y = 6.0
    for name, content, length in bars:
        marks.append(label(_MARGIN - 8, y + 17, f"{name}: {format_size(length)}", "end"))
        merged = merge_parts(content, length, most // 2, by_kind=False)
        marks += [_draw_mark(mark, y, _BAR, scale) for mark in merged]
        y += _BAR + 8
    for kind in kinds:
        _, name = KINDS[kind]
        marks.append(label(_MARGIN - 8, y + 12, name, "end"))
        merged = merge_parts(parts_by_kind[kind], size, most)
        marks += [_draw_mark(mark, y, _LANE - 2, scale) for mark in merged]
        y += _LANE + 4
    marks += [
        label(_MARGIN, y + 10, "byte 0", kind="s"),
        label(_MARGIN + _SPAN, y + 10, format_size(int(_SPAN / scale)), "end", "s"),
    ]
    description = f"{format_count(len(parts), 'part')} of {size:,} bytes"
    return picture(key, title, description, y + 18, marks)


def _draw_mark(mark: Mark, y: float, height: float, scale: float) -> str:
    name = mark.name
    if mark.parts > 1:
        name += f" and {format_count(mark.parts - 1, 'more part')}"
    title = f"{name}: {format_size(mark.bytes)}, bytes {mark.start:,} to {mark.end - 1:,}"
    width = max(_LEAST_WIDTH, (mark.end - mark.start) * scale)
    style, _ = KINDS[mark.kind]
    return rect(_MARGIN + mark.start * scale, y, width, height, style, title)
