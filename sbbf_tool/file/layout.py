"""The purpose of each byte range of a file, and the ranges without a purpose.

A footer refers to pages, page indexes and filters. Other bytes are left over from a change (a
superseded footer, or a filter to which the footer no longer refers), or belong to another tool,
which may find them through a key-value entry. Known leftovers may be dropped; other bytes are never
dropped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter, parse_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, TAIL_BYTES, Footer
from sbbf_tool.parquet.footer_structs import table_of_structs
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData
from sbbf_tool.parquet.pages import ChunkMeta
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.parquet.structs import read_prefix

try:
    from sbbf_tool.parquet import _scan
except ImportError:
    _scan = None  # type: ignore[assignment]

OLD_FOOTER = "superseded footer"
OLD_FILTER = "unreferenced filter"
UNKNOWN = "unknown"
PAGES = "pages"
METADATA_COPY = "column metadata"
"""A copy of a chunk's `ColumnMetaData`, to which `ColumnChunk.file_offset` refers: Polars and older
writers store one after each chunk."""

_MAGICS = b"PAR"  # the common prefix of both magics
# Only this much of a gap is searched for leftovers, however large the gap is.
_METADATA_WINDOW = 1 << 10
_MOST_METADATA_BYTES = 1 << 20
_SEARCH_WINDOWS = (1 << 20, 8 << 20, 64 << 20)


class Range(NamedTuple):
    start: int
    end: int
    kind: str
    row_group: int = -1
    column: int = -1
    """Like `row_group`, -1 for bytes that do not belong to a column chunk."""

    @property
    def length(self) -> int:
        return self.end - self.start


def unreferenced_ranges(file: ParquetFile, filters: list[StoredFilter]) -> list[Range]:
    """Return, in order, the ranges before the footer to which neither the footer nor these filters
    refer, each with its likely content.

    A filter whose key is missing counts as referenced if the footer states its length.
    """
    ranges = ranges_between(file, filters)
    return [unused for unused in ranges if unused.kind != METADATA_COPY]


def ranges_between(file: ParquetFile, filters: list[StoredFilter]) -> list[Range]:
    """Return, in order, the ranges before the footer that are neither pages nor page indexes nor
    these filters, with their content."""
    gaps = gaps_between(file, filters)
    copies = _metadata_copies(file.footer) if gaps else {}
    ranges: list[Range] = []
    for start, end in gaps:
        ranges += _classify(file, start, end, copies)
    return ranges


def gaps_between(file: ParquetFile, filters: list[StoredFilter]) -> list[tuple[int, int]]:
    """Return start and end of what `ranges_between` looks into; nothing is read."""
    footer = file.footer
    accounted = sorted(
        [
            (0, len(MAGIC)),
            (footer.start, footer.end),
            *_owned(footer),
            *_filter_ranges(filters),
            *_locked_filters(file),
        ]
    )
    gaps = []
    position = 0
    for start, end in accounted:
        if start > position:
            end_of_gap = min(start, footer.start)
            gaps.append((position, end_of_gap))
        if end > position:
            position = end
    return gaps


def _metadata_copies(footer: Footer) -> dict[int, ChunkKey]:
    """Map the offsets where copies of the metadata of chunks may be to the chunks."""
    names = ("file_offset", "data_page_offset", "dictionary_page_offset", "total_compressed_size")
    copies = {}
    chunks = enumerate(zip(*footer.numbers(*names), strict=True))
    for at, (offset, data, dictionary, size) in chunks:
        key = divmod(at, len(footer.columns))
        copies[offset] = key
        # Polars 1 and 2 state a wrong offset for chunks with a dictionary; their copy, too, is
        # after the pages.
        first_page = dictionary if 0 < dictionary < data else data
        copies[first_page + max(0, size)] = key
    return copies


def end_of_data(footer: Footer) -> int:
    """Return the end of the last page or page index."""
    ends = (end for _, end in _owned(footer))
    return max(ends, default=len(MAGIC))


def shares_bytes(file: ParquetFile, stored: StoredFilter) -> bool:
    """Return whether a filter shares a byte with pages, page indexes or other filters, whose
    lengths the footer states."""
    if file.ranges is None:
        file.ranges = StatedRanges(file.footer)
    return bool(file.ranges.shared_with(file, stored))


class StatedRanges:
    """The pages and page indexes of a file, and its filters as the footer states them, by
    position."""

    def __init__(self, footer: Footer) -> None:
        pages, filters = _walk_over_places(footer) or _list_places(footer)
        self._footer = footer
        self._pages = sorted(pages)
        ends = (end for _, end in self._pages)
        self._page_ends = list(accumulate(ends, max))
        self._filters = sorted(filters)
        ends = (end for _, end, _ in self._filters)
        self._filter_ends = list(accumulate(ends, max))

    def shared_with(self, file: ParquetFile, stored: StoredFilter) -> bool:
        """Return whether another range shares a byte with a filter; of a filter before it without a
        stated length, read the header."""
        start = stored.place.offset
        num_pages = bisect_left(self._pages, (stored.end,))
        if num_pages and self._page_ends[num_pages - 1] > start:
            return True
        num_before = bisect_left(self._filters, (start,))
        num_inside = bisect_left(self._filters, (stored.end,)) - num_before
        if num_inside > 1:
            return True
        if not num_before:
            return False
        if self._filter_ends[num_before - 1] > start:
            return True
        _, _, key_before = self._filters[num_before - 1]
        row_group, number = key_before
        place_before = self._footer.filter_place(row_group, number)
        if place_before is None or place_before.length is not None:
            return False
        column = file.footer.columns[number]
        try:
            before = file.stored_filter(row_group, column)
        except UnreadableError:
            return False
        return before is not None and before.end > start


_Places = tuple[Iterable[tuple[int, int]], Iterable[tuple[int, int, ChunkKey]]]
"""Start and end of pages and page indexes; start, end and chunk of filters."""


def _stated_end(place: FilterPlace) -> int:
    return place.offset + (place.length or 0)


def _list_places(footer: Footer) -> _Places:
    filters = (
        (place.offset, _stated_end(place), key) for key, place in footer.filter_places().items()
    )
    return _owned(footer), filters


def _walk_over_places(footer: Footer) -> _Places | None:
    """List the same places much faster; None for a footer that is not plain, or without the
    extension. Pages that follow each other are one range."""
    if _scan is None or footer.index is None:
        return None
    places = _scan.places(footer.raw, table_of_structs(), footer.start)
    if places is None:
        return None
    spans, filters = (memoryview(numbers).cast("q") for numbers in places)
    num_columns = len(footer.columns)
    return zip(spans[::2], spans[1::2], strict=True), (
        (offset, offset + max(0, length), divmod(number, num_columns))
        for offset, length, number in zip(filters[::3], filters[1::3], filters[2::3], strict=True)
    )


def _filter_ranges(filters: list[StoredFilter]) -> Iterator[tuple[int, int]]:
    for stored in filters:
        end = max(stored.end, _stated_end(stored.place))
        yield stored.place.offset, end


def _locked_filters(file: ParquetFile) -> Iterator[tuple[int, int]]:
    footer = file.footer
    if not footer.has_encrypted_chunks:
        return
    for (row_group, number), place in footer.filter_places().items():
        if place.length is None:
            continue
        column = footer.columns[number]
        if file.encryption_of(row_group, column) is not None:
            yield place.offset, _stated_end(place)


class _Part(NamedTuple):
    """One kind of parts of column chunks: first byte and length in each chunk, row group by row
    group; 0 where there is none."""

    kind: str
    starts: Sequence[int]
    lengths: Sequence[int]


def _parts(footer: Footer) -> list[_Part]:
    """List pages and page indexes of every chunk that are in this file, as the footer states them
    unencrypted."""
    data, dictionary, index, lengths, paths, *indexes = footer.numbers(
        "data_page_offset",
        "dictionary_page_offset",
        "index_page_offset",
        "total_compressed_size",
        "file_path",
        "column_index_offset",
        "column_index_length",
        "offset_index_offset",
        "offset_index_length",
    )
    first_pages = _lower(_lower(data, dictionary), index)
    parts = [
        _Part(PAGES, first_pages, lengths),
        _Part("column index", *indexes[:2]),
        _Part("offset index", *indexes[2:]),
    ]
    if not any(paths):
        return parts
    is_here = []
    for at, path in enumerate(paths):
        key = divmod(at, len(footer.columns))
        is_here.append(not path or footer.elsewhere(*key) is None)
    parts_here = []
    for part in parts:
        starts = list(map(mul, part.starts, is_here))
        parts_here.append(part._replace(starts=starts))
    return parts_here


def _lower(first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
    """Return the lower of each two offsets; an offset that is not positive is none."""
    if not any(second):
        return first
    pairs = zip(first, second, strict=True)
    return [b if b > 0 and (b < a or a <= 0) else a for a, b in pairs]


def _leading_bytes(footer: Footer, pages: _Part) -> dict[int, int]:
    """Return the distance from filter to pages for each chunk, by number, that has its filter
    before its pages."""
    # The names are those for the places of filters: read once.
    names = ("bloom_filter_offset", "bloom_filter_length", "file_path")
    offsets, *_ = footer.numbers(*names)
    if not any(offsets):
        return {}
    end = footer.start
    chunks = enumerate(zip(offsets, pages.starts, pages.lengths, strict=True))
    return {
        at: start - offset
        for at, (offset, start, length) in chunks
        if 0 < offset < start < end and length > 0
    }


def _owned(footer: Footer) -> Iterable[tuple[int, int]]:
    """Return start and end of the pages and page indexes of every chunk, as `owned_ranges` does."""
    parts = _parts(footer)
    end = footer.start
    if _leading_bytes(footer, parts[0]):
        return [(owned.start, owned.end) for owned in owned_ranges(footer)]
    spans = []
    for part in parts:
        # Wide files have very many chunks.
        if not any(part.starts):
            continue
        starts_and_lengths = zip(part.starts, part.lengths, strict=True)
        spans += [
            (start, start + length if start + length < end else end)
            for start, length in starts_and_lengths
            if 0 < start < end and length > 0
        ]
    return spans


def owned_ranges(footer: Footer) -> Iterator[Range]:
    """Yield the pages and page indexes of every chunk, if the footer states them unencrypted."""
    parts = _parts(footer)
    num_columns = len(footer.columns)
    ranges = []
    for part in parts:
        spans = enumerate(zip(part.starts, part.lengths, strict=True))
        for at, (start, length) in spans:
            if 0 < start < footer.start and length > 0:
                row_group, column = divmod(at, num_columns)
                ranges.append(Range(start, start + length, part.kind, row_group, column))
    leading_bytes = {}
    for at, distance in _leading_bytes(footer, parts[0]).items():
        leading_bytes[divmod(at, num_columns)] = distance
    if leading_bytes:
        ranges = list(_without_leading_filters(footer, ranges, leading_bytes))
    for owned in ranges:
        end = min(owned.end, footer.start)
        yield owned._replace(end=end)


def _without_leading_filters(
    footer: Footer, ranges: list[Range], leading_bytes: dict[tuple[int, int], int]
) -> Iterator[Range]:
    """Shorten the pages of chunks whose `total_compressed_size` includes the filter before their
    first page.

    The first draft has the filter at the beginning of its column chunk, as a page. `leading_bytes`
    is the distance from filter to pages, by row group and column. The size includes the filter if
    the pages would otherwise reach into the next contents by at most that many bytes. This then
    holds for all such chunks of the file, and for those whose filter was removed later.
    """
    pages = {(owned.row_group, owned.column): owned for owned in ranges if owned.kind == PAGES}
    starts = [owned.start for owned in ranges]
    starts.append(footer.start)
    for key, distance in leading_bytes.items():
        starts.append(pages[key].start - distance)
    starts.sort()
    leading = {}
    is_included = False
    for key, distance in leading_bytes.items():
        start = pages[key].start
        if _next(starts, start - distance) != start:
            continue
        leading[key] = distance
        end = pages[key].end
        if end - distance <= _next(starts, start) < end:
            is_included = True
    if not is_included:
        yield from ranges
        return
    for owned in ranges:
        if owned.kind == PAGES:
            distance = leading.get((owned.row_group, owned.column), 0)
            end = min(owned.end - distance, _next(starts, owned.start))
            yield owned._replace(end=max(owned.start + 1, end))
        else:
            yield owned


def _next(starts: list[int], position: int) -> int:
    """Return the first of the sorted numbers above `position`, or the last number."""
    place = bisect_right(starts, position)
    return starts[min(place, len(starts) - 1)]


def _classify(
    file: ParquetFile, start: int, end: int, copies: Mapping[int, ChunkKey]
) -> Iterator[Range]:
    position = start
    while position < end:
        leftover = None
        if position in copies:
            meta = file.footer.chunk_meta(*copies[position])
            leftover = _metadata_copy_at(file, position, end, meta)
        if leftover is None:
            leftover = _filter_at(file, position, end) or _footer_at(file, position, end)
        if leftover is None:
            yield Range(position, end, UNKNOWN)
            return
        yield leftover
        position = leftover.end


def _metadata_copy_at(file: ParquetFile, start: int, end: int, meta: ChunkMeta) -> Range | None:
    read = file.source.read
    limit = min(end, start + _MOST_METADATA_BYTES)
    try:
        copy, length = read_prefix(ColumnMetaData, read, start, limit, _METADATA_WINDOW)
    except UnreadableError:
        return None
    if not meta.is_copy(copy):
        return None
    return Range(start, start + length, METADATA_COPY)


def _filter_at(file: ParquetFile, start: int, end: int) -> Range | None:
    end_of_encrypted = file.end_of_encrypted_filter(start, end)
    if end_of_encrypted is not None:
        return Range(start, end_of_encrypted, OLD_FILTER)
    data = file.source.read(start, min(HEADER_GUESS, end - start))
    try:
        header = parse_header(data)
    except UnreadableError:
        return None
    stop = start + header.length + header.num_bytes
    if stop > end or header.unsupported_reason or header.num_bytes < BLOCK_BYTES:
        return None
    return Range(start, stop, OLD_FILTER)


def _footer_at(file: ParquetFile, start: int, end: int) -> Range | None:
    """Return the footer that starts here, with length word and magic; the length word distinguishes
    it from bytes that look alike."""
    # Most footers are short, and most gaps hold several, so the window grows only as far as needed.
    for size in _SEARCH_WINDOWS:
        window = file.source.read(start, min(end - start, size))
        leftover = _footer_in(file, window, start)
        if leftover is not None or len(window) < size:
            return leftover
    return None


def _footer_in(file: ParquetFile, window: bytes, start: int) -> Range | None:
    at = window.find(_MAGICS)
    while at >= 0:
        magic = window[at : at + len(MAGIC)]
        length = at + len(MAGIC) - TAIL_BYTES
        stated_length = int.from_bytes(window[max(0, length) : at], "little")
        if magic in (MAGIC, MAGIC_ENCRYPTED) and 0 < length == stated_length:
            end = start + length + TAIL_BYTES
            try:
                file.parse_footer_ending_at(end)
            except (UnreadableError, RefusedError):
                return None
            return Range(start, end, OLD_FOOTER)
        at = window.find(_MAGICS, at + 1)
    return None
