"""Where the bytes are: a bar from the first byte of a file to the last, and below it a lane for
each kind of content."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sbbf_tool.extensions.report.pictures.figure import MOST_MARKS, WIDTH, label, picture, rect
from sbbf_tool.numbers import format_count, format_size

_MARGIN, _SPAN = 130, WIDTH - 150
_LANE, _BAR = 16, 26
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
    runs: list[Mark] = []
    step = max(1.0, size / max(1, most))
    all_parts = sorted(parts)
    is_many = len(all_parts) > most
    for part in all_parts:
        last = runs[-1] if runs else None
        if (
            is_many
            and last is not None
            and int(last.start / step) == int(part.start / step)
            and (not by_kind or last.kind == part.kind)
        ):
            kind = last.kind if last.bytes >= part.end - part.start else part.kind
            runs[-1] = Mark(
                last.start,
                max(last.end, part.end),
                last.bytes + part.end - part.start,
                last.parts + 1,
                kind,
                last.name,
            )
        else:
            runs.append(Mark(part.start, part.end, part.end - part.start, 1, part.kind, part.name))
    return runs


def draw_byte_map(
    key: str,
    title: str,
    parts: Sequence[Span],
    size: int,
    before: tuple[Sequence[Span], int] | None = None,
) -> str:
    """Draw a file of `size` bytes; `before` are the parts and the size of its earlier version,
    which is drawn above it."""
    scale = _SPAN / max(1, size, before[1] if before is not None else 0)
    kinds = [kind for kind in KINDS if any(part.kind == kind for part in parts)]
    most = MOST_MARKS // (len(kinds) + 2)
    marks, y = [], 6.0
    bars = [(f"before: {format_size(before[1])}", before)] if before is not None else []
    for name, (content, length) in [
        *bars,
        (f"{'now' if bars else 'file'}: {format_size(size)}", (parts, size)),
    ]:
        marks.append(label(_MARGIN - 8, y + 17, name, "end"))
        runs = merge_parts(content, length, most // 2, by_kind=False)
        marks += [_draw_run(run, y, _BAR, scale) for run in runs]
        y += _BAR + 8
    for kind in kinds:
        lane = [part for part in parts if part.kind == kind]
        marks.append(label(_MARGIN - 8, y + 12, KINDS[kind][1], "end"))
        marks += [_draw_run(run, y, _LANE - 2, scale) for run in merge_parts(lane, size, most)]
        y += _LANE + 4
    marks += [
        label(_MARGIN, y + 10, "byte 0", kind="s"),
        label(_MARGIN + _SPAN, y + 10, f"{format_size(int(_SPAN / scale))}", "end", "s"),
    ]
    return picture(
        key, title, f"{format_count(len(parts), 'part')} of {size:,} bytes", y + 18, marks
    )


def _draw_run(run: Mark, y: float, height: float, scale: float) -> str:
    many = f" and {format_count(run.parts - 1, 'more part')}" if run.parts > 1 else ""
    title = f"{run.name}{many}: {format_size(run.bytes)}, bytes {run.start:,} to {run.end - 1:,}"
    return rect(
        _MARGIN + run.start * scale,
        y,
        max(_LEAST_WIDTH, (run.end - run.start) * scale),
        height,
        KINDS[run.kind][0],
        title,
    )
