"""Filters that share bytes with pages, page indexes or other filters of the file."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from sbbf_tool.file.layout import Range, owned_ranges
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import Footer

_FILTER = "filter"


@dataclass(frozen=True, slots=True)
class Overlap:
    """Another range that shares bytes with a filter."""

    words: str
    filter_of: tuple[int, int] | None
    """Row group and leaf column of the other filter; None for pages and page indexes."""


def find_overlaps(
    file: ParquetFile, filters: Iterable[StoredFilter]
) -> dict[tuple[int, int], tuple[Overlap, ...]]:
    """Return the other ranges that share bytes with each filter, by row group and column; filters
    that share none are omitted."""
    own = [
        Range(stored.place.offset, stored.end, _FILTER, stored.row_group, stored.column)
        for stored in filters
    ]
    ranges = sorted([*own, *owned_ranges(file.footer)])
    starts = [owned.start for owned in ranges]
    furthest = list(accumulate((owned.end for owned in ranges), max))
    overlaps = {}
    for mine in own:
        neighbours = _meeting(ranges, starts, furthest, mine)
        shared = tuple(_describe(file.footer, neighbour) for neighbour in neighbours)
        if shared:
            overlaps[mine.row_group, mine.column] = shared
    return overlaps


def _describe(footer: Footer, neighbour: Range) -> Overlap:
    name = footer.columns[neighbour.column].name
    words = f"the {neighbour.kind} of column {name}, row group {neighbour.row_group}"
    if neighbour.kind == _FILTER:
        return Overlap(words, (neighbour.row_group, neighbour.column))
    return Overlap(words, None)


def _meeting(
    ranges: Sequence[Range], starts: Sequence[int], furthest: Sequence[int], mine: Range
) -> Iterator[Range]:
    """Yield the other ranges that share a byte with `mine`. `furthest[i]` is the largest end among
    the first i + 1 ranges."""
    at = bisect_left(starts, mine.end) - 1
    while at >= 0 and furthest[at] > mine.start:
        if ranges[at].end > mine.start and ranges[at] != mine:
            yield ranges[at]
        at -= 1
