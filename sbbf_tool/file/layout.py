"""The purpose of each byte range of a file, and the ranges without a purpose.

A footer refers to pages, page indexes and filters. Other bytes are left over from a change (a superseded footer, or a filter to which the
footer no longer refers), or belong to another tool, which may find them through a key-value entry. Known leftovers may be dropped; other
bytes are never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter, parse_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, TAIL_BYTES, Footer

OLD_FOOTER, OLD_FILTER, UNKNOWN = "superseded footer", "unreferenced filter", "unknown"

_MAGICS = b"PAR"  # the common prefix of both magics
# Only this much of a gap is searched for leftovers, however large the gap is.
_SEARCH_WINDOWS = (1 << 20, 8 << 20, 64 << 20)


class Range(NamedTuple):
    start: int
    end: int
    kind: str

    @property
    def length(self) -> int:
        return self.end - self.start


class OwnedRange(NamedTuple):
    """Bytes that belong to a column chunk."""

    start: int
    end: int
    kind: str
    row_group: int
    column: int


def unreferenced_ranges(file: ParquetFile, filters: list[StoredFilter]) -> list[Range]:
    """Return, in order, the ranges before the footer to which neither the footer nor these filters refer, each with its likely content.

    A filter whose key is missing counts as referenced if the footer states its length.
    """
    pages = [(owned.start, owned.end) for owned in owned_ranges(file.footer)]
    accounted = sorted([(0, len(MAGIC)), (file.footer.start, file.footer.end), *pages, *_filter_ranges(filters), *_locked_filters(file)])
    gaps: list[Range] = []
    position = 0
    for start, end in accounted:
        if start > position:
            gaps += _classify(file, position, min(start, file.footer.start))
        position = max(position, end)
    return gaps


def end_of_data(footer: Footer) -> int:
    """Return the end of the last page or page index."""
    return max((owned.end for owned in owned_ranges(footer)), default=len(MAGIC))


def _filter_ranges(filters: list[StoredFilter]) -> Iterator[tuple[int, int]]:
    for stored in filters:
        yield stored.place.offset, max(stored.end, stored.place.offset + (stored.place.length or 0))


def _locked_filters(file: ParquetFile) -> Iterator[tuple[int, int]]:
    for row_group in range(file.footer.num_row_groups):
        for column in file.footer.columns:
            place = file.footer.filter_place(row_group, column.index)
            if place is not None and place.length is not None and file.encryption_of(row_group, column) is not None:
                yield place.offset, place.offset + place.length


def owned_ranges(footer: Footer) -> Iterator[OwnedRange]:
    """Yield the pages and page indexes of every chunk, if the footer states them unencrypted."""
    for number in range(footer.num_row_groups):
        for column, meta in enumerate(footer.chunk_metas(number)):
            for kind, start, length in meta.parts():
                if 0 < start < footer.start and length > 0:
                    yield OwnedRange(start, min(start + length, footer.start), kind, number, column)


def _classify(file: ParquetFile, start: int, end: int) -> Iterator[Range]:
    position = start
    while position < end:
        leftover = _filter_at(file, position, end) or _footer_at(file, position, end)
        if leftover is None:
            yield Range(position, end, UNKNOWN)
            return
        yield leftover
        position = leftover.end


def _filter_at(file: ParquetFile, start: int, end: int) -> Range | None:
    if (stop := file.end_of_encrypted_filter(start, end)) is not None:
        return Range(start, stop, OLD_FILTER)
    try:
        header = parse_header(file.source.read(start, min(HEADER_GUESS, end - start)))
    except UnreadableError:
        return None
    stop = start + header.length + header.num_bytes
    if stop > end or header.unsupported_reason or header.num_bytes < BLOCK_BYTES:
        return None
    return Range(start, stop, OLD_FILTER)


def _footer_at(file: ParquetFile, start: int, end: int) -> Range | None:
    """Return the footer that starts here, with length word and magic; the length word distinguishes it from bytes that look alike."""
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
        length = at + len(MAGIC) - TAIL_BYTES
        is_magic = window[at : at + len(MAGIC)] in (MAGIC, MAGIC_ENCRYPTED)
        if is_magic and length > 0 and int.from_bytes(window[length:at], "little") == length:
            try:
                file.parse_footer_ending_at(start + length + TAIL_BYTES)
            except (UnreadableError, RefusedError):
                return None
            return Range(start, start + length + TAIL_BYTES, OLD_FOOTER)
        at = window.find(_MAGICS, at + 1)
    return None
