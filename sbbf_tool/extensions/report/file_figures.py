"""The figures of one file: bytes, folds of its filters, and bits set per block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from typing import Any

from sbbf_tool.bloom.block_bits import BLOCK_BITS, expect_blocks_by_bits
from sbbf_tool.extensions.report.contents import FileContents, FilterDetail, StoredPart
from sbbf_tool.extensions.report.pictures.bars import Bar, draw_histogram
from sbbf_tool.extensions.report.pictures.byte_map import KINDS, Span, draw_byte_map
from sbbf_tool.extensions.report.pictures.figure import Figure, Value, count, rate, size, table
from sbbf_tool.numbers import format_count
from sbbf_tool.verbs.inspect import FilterReport, InspectReport

_BYTES = "Where the bytes are"
_BYTES_NOTE = (
    "The whole file from its first byte to its last, and below it each kind of "
    "content in a lane of its own; small parts are widened."
)
_UNREFERENCED_NOTE = (
    " Nothing refers to the unreferenced bytes, for example an older "
    "footer: they take space, and no reader needs them."
)
_BLOCKS = "Bits set per block"
_STEP = 8
"""Bits per bar of the histogram of blocks."""


def build_bytes_figure(contents: FileContents, earlier: InspectReport | None = None) -> Figure:
    """Build picture and tables of the bytes of a file; `earlier` is the report of an earlier
    `inspect` of it."""
    report = contents.inspect
    parts = [
        Span(part.offset, part.offset + part.length, part.kind, part.name)
        for part in contents.parts
    ]
    before = None if earlier is None else (_parts_before(earlier), earlier.file_bytes)
    svg = draw_byte_map("bytes_p", _BYTES, parts, report.file_bytes, before)
    kinds = {part.kind for part in contents.parts}
    return Figure(
        "bytes",
        _BYTES,
        _BYTES_NOTE
        + (_UNREFERENCED_NOTE if "unreferenced" in kinds else "")
        + (
            " The report of the earlier file has its filters and footer, but not its pages."
            if before is not None
            else ""
        ),
        svg,
        (
            table(
                "Bytes by content",
                ("content", "parts", "bytes", "share of the file"),
                _rows_by_kind(contents.parts, report.file_bytes),
            ),
            table(
                "Bytes by column",
                (
                    "column",
                    "pages",
                    "dictionaries",
                    "filters",
                    "filters per byte of pages and dictionaries",
                ),
                _rows_by_column(contents),
            ),
        ),
        tuple((style, name) for kind, (style, name) in KINDS.items() if kind in kinds),
    )


def _rows_by_kind(parts: tuple[StoredPart, ...], total: int) -> Iterator[tuple[Value, ...]]:
    sums: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for part in parts:
        sums[part.kind] += part.length
        numbers[part.kind] += 1
    for kind, (_, name) in KINDS.items():
        if numbers[kind]:
            yield name, count(numbers[kind]), size(sums[kind]), rate(sums[kind] / total)


def _rows_by_column(contents: FileContents) -> Iterator[tuple[Value, ...]]:
    sums: dict[str, Counter[str]] = {}
    for part in contents.parts:
        if part.column is not None:
            sums.setdefault(part.column, Counter())[part.kind] += part.length
    for column, by_kind in sums.items():
        pages = by_kind["pages"] + by_kind["dictionary page"]
        share = by_kind["filter"] / pages if pages and by_kind["filter"] else None
        yield (
            column,
            size(by_kind["pages"]),
            size(by_kind["dictionary page"]),
            size(by_kind["filter"]),
            rate(share),
        )


def _parts_before(report: InspectReport) -> list[Span]:
    """Return the parts that the report states; the bytes between them are pages and whatever else
    the file had."""
    total, footer = report.file_bytes, report.footer_bytes
    parts_of_report = [
        Span(
            row.offset,
            row.offset + (row.header_bytes or 0) + (row.bitset_bytes or 0),
            "filter",
            f"filter of {row.column}",
        )
        for row in report.filters
        if row.offset is not None
    ]
    parts_of_report += [
        Span(each.offset, each.offset + each.length, "unreferenced", each.kind)
        for each in report.unreferenced
    ]
    parts_of_report.append(Span(max(0, total - footer), total, "footer", "footer"))
    parts, position = [], 0
    for part in sorted(parts_of_report):
        if part.start > position:
            parts.append(Span(position, part.start, "pages", "pages, indexes and other bytes"))
        parts.append(part)
        position = max(position, part.end)
    return parts


def build_blocks_figure(contents: FileContents) -> Figure | None:
    """Build the histogram of the filter whose blocks differ most from those of values that hash
    evenly; None without filters."""
    details = [detail for detail in contents.filters if sum(detail.blocks_by_bits)]
    if not details:
        return None
    rows = {(row.row_group, row.column): row for row in contents.inspect.filters}
    deviations = {
        id(detail): _measure_deviation(detail, rows.get((detail.row_group, detail.column)))
        for detail in details
    }
    scores = {
        id(detail): _score(
            detail, deviations[id(detail)], rows.get((detail.row_group, detail.column))
        )
        for detail in details
    }
    chosen = max(details, key=lambda detail: scores[id(detail)])
    report = rows.get((chosen.row_group, chosen.column))
    place = f"{chosen.column}, row group {chosen.row_group}"
    bins = [
        Bar(
            f"{start}",
            blocks,
            "",
            f"{place}: {format_count(blocks, 'block')} with {_range_of(start)} bits set",
            "filter",
        )
        for start, blocks in _bin(chosen.blocks_by_bits)
    ]
    expected = [number for _, number in _bin(_expect(chosen, report))]
    title = f"{_BLOCKS}: {place}"
    note = f"The filter of {place}{_describe_blocks(chosen)}"
    content = table(
        "Blocks of each filter",
        (
            "column",
            "row group",
            "blocks",
            "empty blocks",
            "fewest bits",
            "most bits",
            "difference from even hashing",
        ),
        (
            (
                detail.column,
                count(detail.row_group),
                *_row_of_blocks(detail),
                None if _is_uniform(detail) else rate(deviations[id(detail)]),
            )
            for detail in details
        ),
    )
    histogram = table(
        f"Blocks by bits set: {place}",
        ("bits set", "blocks", "expected"),
        (
            (_range_of(start), count(blocks), count(round(number, 1)))
            for (start, blocks), number in zip(_bin(chosen.blocks_by_bits), expected, strict=True)
            if blocks or number >= 0.05
        ),
    )
    svg = draw_histogram(
        "blocks_p", title, bins, f"bits set, of {BLOCK_BITS} of a block", "blocks", expected
    )
    return Figure("blocks", title, note, svg, (histogram, content))


def _is_uniform(detail: FilterDetail) -> bool:
    """Return whether several blocks are all alike, so that nothing can be expected of them."""
    blocks = sum(detail.blocks_by_bits)
    return blocks > 1 and blocks in detail.blocks_by_bits


def _describe_blocks(detail: FilterDetail) -> str:
    """Say what the histogram of a filter shows, after its name."""
    blocks = sum(detail.blocks_by_bits)
    if blocks == detail.blocks_by_bits[0]:
        return ": it is empty, and excludes every value."
    if blocks == detail.blocks_by_bits[BLOCK_BITS]:
        return ": every bit is set, so it excludes nothing."
    if _is_uniform(detail):
        return (
            f": all of its {blocks:,} blocks have the same number of bits set, which "
            "values that hash evenly never give."
        )
    return (
        ", whose blocks differ most from what values that hash evenly would give (the line). "
        "More blocks at 0 than the line has, or two "
        "hills, mean that the bits are not those of the column's values. Filters of few blocks "
        "scatter more."
    )


def _bin(numbers: tuple[int, ...] | list[float]) -> list[tuple[int, Any]]:
    """Sum up the numbers of blocks in steps; the last step has the full blocks alone."""
    return [
        (start, sum(numbers[start : start + _STEP])) for start in range(0, BLOCK_BITS + 1, _STEP)
    ]


def _range_of(start: int) -> str:
    return f"{start} to {start + _STEP - 1}" if start < BLOCK_BITS else f"{start}"


def _expect(detail: FilterDetail, report: FilterReport | None) -> list[float]:
    ndv = report.estimated_ndv if report is not None else None
    blocks = sum(detail.blocks_by_bits)
    if ndv is None:  # every bit is set
        return [0.0] * BLOCK_BITS + [float(blocks)]
    return expect_blocks_by_bits(blocks, ndv)


def _measure_deviation(detail: FilterDetail, report: FilterReport | None) -> float:
    """Return the share of blocks that would have to move to another bar of the histogram to match
    the expectation."""
    blocks = sum(detail.blocks_by_bits)
    pairs = zip(_bin(detail.blocks_by_bits), _bin(_expect(detail, report)), strict=True)
    return float(sum(abs(number - expected) for (_, number), (_, expected) in pairs) / 2 / blocks)


def _score(
    detail: FilterDetail, deviation: float, report: FilterReport | None
) -> tuple[bool, float]:
    """Return whether several blocks are all alike, and the deviation by that of chance alone: few
    blocks scatter more."""
    blocks = sum(detail.blocks_by_bits)
    expected = (number for _, number in _bin(_expect(detail, report)))
    chance = (
        sum(0.4 * sqrt(max(0.0, number * (1 - number / blocks))) for number in expected) / blocks
    )
    return _is_uniform(detail), deviation / (chance + 1 / blocks)


def _row_of_blocks(detail: FilterDetail) -> tuple[Value, ...]:
    with_blocks = [bits for bits, blocks in enumerate(detail.blocks_by_bits) if blocks]
    return (
        count(sum(detail.blocks_by_bits)),
        count(detail.blocks_by_bits[0]),
        count(with_blocks[0]),
        count(with_blocks[-1]),
    )
