"""The figures of one file: bytes, folds of its filters, and bits set per block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import sqrt
from operator import sub
from typing import NamedTuple

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
_EARLIER_NOTE = " The report of the earlier file has its filters and footer, but not its pages."
_COLUMNS_HEAD = (
    "column",
    "pages",
    "dictionaries",
    "filters",
    "filters per byte of pages and dictionaries",
)
_BLOCKS = "Bits set per block"
_BLOCKS_HEAD = (
    "column",
    "row group",
    "blocks",
    "empty blocks",
    "fewest bits",
    "most bits",
    "difference from even hashing",
)
_STEP = 8
"""Bits per bar of the histogram of blocks."""
_STARTS = range(0, BLOCK_BITS + 1, _STEP)
"""The fewest bits of each bar."""


def build_bytes_figure(contents: FileContents, earlier: InspectReport | None = None) -> Figure:
    """Build picture and tables of the bytes of a file; `earlier` is the report of an earlier
    `inspect` of it."""
    report = contents.inspect
    kinds = set()
    parts = []
    for part in contents.parts:
        kinds.add(part.kind)
        end = part.offset + part.length
        parts.append(Span(part.offset, end, part.kind, part.name))
    note = _BYTES_NOTE
    if "unreferenced" in kinds:
        note += _UNREFERENCED_NOTE
    before = None
    if earlier is not None:
        before = (_parts_before(earlier), earlier.file_bytes)
        note += _EARLIER_NOTE
    legend = [KINDS[kind] for kind in KINDS if kind in kinds]
    by_content = table(
        "Bytes by content",
        ("content", "parts", "bytes", "share of the file"),
        _rows_by_kind(contents.parts, report.file_bytes),
    )
    by_column = table("Bytes by column", _COLUMNS_HEAD, _rows_by_column(contents))
    return Figure(
        "bytes",
        _BYTES,
        note,
        draw_byte_map("bytes_p", _BYTES, parts, report.file_bytes, before),
        (by_content, by_column),
        tuple(legend),
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
        filters = by_kind["filter"]
        share = None
        if filters and pages:
            share = rate(filters / pages)
        yield (
            column,
            size(by_kind["pages"]),
            size(by_kind["dictionary page"]),
            size(filters),
            share,
        )


def _parts_before(report: InspectReport) -> list[Span]:
    """Return the parts that the report states; the bytes between them are pages and whatever else
    the file had."""
    parts = []
    position = 0
    for part in sorted(_stated_parts(report)):
        if part.start > position:
            parts.append(Span(position, part.start, "pages", "pages, indexes and other bytes"))
        parts.append(part)
        position = max(position, part.end)
    return parts


def _stated_parts(report: InspectReport) -> Iterator[Span]:
    """Yield the filters, the unreferenced bytes and the footer of a report."""
    for row in report.filters:
        if row.offset is not None:
            end = row.offset + (row.header_bytes or 0) + (row.bitset_bytes or 0)
            yield Span(row.offset, end, "filter", f"filter of {row.column}")
    for gap in report.unreferenced:
        yield Span(gap.offset, gap.offset + gap.length, "unreferenced", gap.kind)
    start_of_footer = max(0, report.file_bytes - report.footer_bytes)
    yield Span(start_of_footer, report.file_bytes, "footer", "footer")


class _BlockBins(NamedTuple):
    """The blocks of a filter in the bars of a histogram."""

    detail: FilterDetail
    blocks: list[int]
    """Number of blocks in each bar."""
    expected: list[float]
    """Number of blocks in each bar if values hash evenly."""

    @property
    def place(self) -> str:
        return f"{self.detail.column}, row group {self.detail.row_group}"

    @property
    def deviation(self) -> float:
        """The share of blocks that would have to move to another bar of the histogram to match the
        expectation."""
        differences = sum(map(abs, map(sub, self.blocks, self.expected)))
        return float(differences / 2 / sum(self.blocks))

    @property
    def score(self) -> tuple[bool, float]:
        """Whether several blocks are all alike, and the deviation by that of chance alone: few
        blocks scatter more."""
        blocks = sum(self.blocks)
        deviations = []
        for number in self.expected:
            variance = max(0.0, number * (1 - number / blocks))
            deviations.append(0.4 * sqrt(variance))
        chance = sum(deviations) / blocks
        return _is_uniform(self.detail), self.deviation / (chance + 1 / blocks)


def build_blocks_figure(contents: FileContents) -> Figure | None:
    """Build the histogram of the filter whose blocks differ most from those of values that hash
    evenly; None without filters."""
    filters = _bin_filters(contents)
    if not filters:
        return None
    chosen = max(filters, key=lambda bins: bins.score)
    title = f"{_BLOCKS}: {chosen.place}"
    note = f"The filter of {chosen.place}{_describe_blocks(chosen.detail)}"
    svg = draw_histogram(
        "blocks_p",
        title,
        _bars_of_blocks(chosen),
        f"bits set, of {BLOCK_BITS} of a block",
        "blocks",
        chosen.expected,
    )
    histogram = table(
        f"Blocks by bits set: {chosen.place}",
        ("bits set", "blocks", "expected"),
        _rows_of_histogram(chosen),
    )
    by_filter = table("Blocks of each filter", _BLOCKS_HEAD, map(_row_of_blocks, filters))
    return Figure("blocks", title, note, svg, (histogram, by_filter))


def _bin_filters(contents: FileContents) -> list[_BlockBins]:
    """Return the blocks of each filter that has any, in the bars of a histogram."""
    reports = {(row.row_group, row.column): row for row in contents.inspect.filters}
    filters = []
    for detail in contents.filters:
        if sum(detail.blocks_by_bits):
            report = reports.get((detail.row_group, detail.column))
            filters.append(_bin_blocks(detail, report))
    return filters


def _bars_of_blocks(bins: _BlockBins) -> list[Bar]:
    bars = []
    for start, number in zip(_STARTS, bins.blocks, strict=True):
        blocks = format_count(number, "block")
        title = f"{bins.place}: {blocks} with {_range_of(start)} bits set"
        bars.append(Bar(f"{start}", number, "", title, "filter"))
    return bars


def _rows_of_histogram(bins: _BlockBins) -> Iterator[tuple[Value, ...]]:
    for start, blocks, expected in zip(_STARTS, bins.blocks, bins.expected, strict=True):
        if blocks or expected >= 0.05:
            yield _range_of(start), count(blocks), count(round(expected, 1))


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
        "More blocks at 0 than the line has, or two hills, mean that the bits are not those of "
        "the column's values. Filters of few blocks scatter more."
    )


def _bin_blocks(detail: FilterDetail, report: FilterReport | None) -> _BlockBins:
    """Sum up the blocks of a filter, and those expected of it, in steps; the last step has the full
    blocks alone."""
    by_bits = detail.blocks_by_bits
    expected_by_bits = _expect(detail, report)
    blocks = []
    expected = []
    for start in _STARTS:
        bits = slice(start, start + _STEP)
        blocks.append(sum(by_bits[bits]))
        expected.append(sum(expected_by_bits[bits]))
    return _BlockBins(detail, blocks, expected)


def _range_of(start: int) -> str:
    return f"{start} to {start + _STEP - 1}" if start < BLOCK_BITS else f"{start}"


def _expect(detail: FilterDetail, report: FilterReport | None) -> list[float]:
    blocks = sum(detail.blocks_by_bits)
    if report is None or report.estimated_ndv is None:  # every bit is set
        return [0.0] * BLOCK_BITS + [float(blocks)]
    return expect_blocks_by_bits(blocks, report.estimated_ndv)


def _row_of_blocks(bins: _BlockBins) -> tuple[Value, ...]:
    detail = bins.detail
    with_blocks = [bits for bits, blocks in enumerate(detail.blocks_by_bits) if blocks]
    deviation = None
    if not _is_uniform(detail):
        deviation = rate(bins.deviation)
    return (
        detail.column,
        count(detail.row_group),
        count(sum(detail.blocks_by_bits)),
        count(detail.blocks_by_bits[0]),
        count(with_blocks[0]),
        count(with_blocks[-1]),
        deviation,
    )
