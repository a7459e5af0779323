"""The bytes that this package wrote at the end of a file: filters and footers after the footer from
before its first change.

    | pages | first footer | filters | footer | filters | footer |
                           ^ start of the own tail

There is no record of the changes. They are verified instead, from the last footer back: what
precedes a footer must be filters to which it refers, with the headers that this package writes, one
after the other, and before these another footer of the same file, which differs from it only in
filters. Bytes that are anything else are not part of the tail, and every reference of the last
footer to them stays valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import NamedTuple

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.layout import end_of_data
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import HEADER_GUESS, build_header, parse_header
from sbbf_tool.parquet.footer import MAGIC, MAGIC_ENCRYPTED, TAIL_BYTES, Footer
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.storage.source import Source

_WINDOW = 1 << 20
_LEAST_HASHED = 64


class OwnTail(NamedTuple):
    """The tail of a file: its first byte, which is the end of the file if there is no tail, and the
    filters in it that are in use."""

    start: int
    filters: Mapping[ChunkKey, FilterPlace]


class Addition(NamedTuple):
    """A footer, and the filters between it and the footer after it."""

    before: Footer
    filters: Mapping[ChunkKey, FilterPlace]


def find_own_tail(file: ParquetFile) -> OwnTail:
    """Find the tail of a file; all of it can be dropped with its filters, and the footer before it
    describes the same data."""
    footer = file.footer
    if footer.has_locked_chunks():
        # Their references are unknown.
        return OwnTail(footer.end, {})
    first = footer
    own_places: set[tuple[ChunkKey, FilterPlace]] = set()
    while (addition := _own_addition(file, first)) is not None:
        first = addition.before
        own_places.update(addition.filters.items())
    places = footer.filter_places().items()
    filters = {key: place for key, place in places if place.offset >= first.start}
    # A footer may state another length than the one before: then it is unknown which bytes readers
    # need.
    if not filters.items() <= own_places:
        return OwnTail(footer.end, {})
    return OwnTail(first.end, filters)


def last_addition(file: ParquetFile) -> Addition | None:
    """Return what the last change by this package added, if the footer before it describes the same
    data; otherwise None."""
    if file.footer.has_locked_chunks():
        return None
    return _own_addition(file, file.footer)


def _own_addition(file: ParquetFile, footer: Footer) -> Addition | None:
    """Return what ends at this footer if this package added it to the data of the file; otherwise
    None."""
    addition = addition_of(file, footer)
    if addition is None or addition.before.start < end_of_data(file.footer):
        return None
    if not _is_own(file, footer, addition):
        return None
    return addition


def addition_of(file: ParquetFile, footer: Footer) -> Addition | None:
    """Return the filters that end at this footer without gaps, and the footer that ends where they
    begin; None if none ends there.

    The two footers may describe different data: the caller compares them.
    """
    start = footer.start
    filters = {}
    places = footer.filter_places()
    # The last filter first.
    for key in sorted(places, key=lambda key: -places[key].offset):
        place = places[key]
        if place.length is None or place.length <= 0:
            break
        if place.offset + place.length != start:
            break
        start = place.offset
        filters[key] = place
    before = footer_ending_at(file, start)
    if before is None:
        return None
    return Addition(before, filters)


def footer_ending_at(file: ParquetFile, end: int) -> Footer | None:
    """Return the footer that ends at this byte, or None."""
    if end < TAIL_BYTES:
        return None
    try:
        return file.parse_footer_ending_at(end)
    except (UnreadableError, RefusedError):
        return None


def _is_own(file: ParquetFile, footer: Footer, addition: Addition) -> bool:
    """Return whether a footer differs from the one before only in filters, and all new filters are
    the ones between the two."""
    before = addition.before
    old_places = before.filter_places()
    for key, place in footer.filter_places().items():
        if key in addition.filters:
            continue
        # The length of a filter may have been corrected.
        old_place = old_places.get(key)
        if old_place is None or old_place.offset != place.offset:
            return False
    try:
        recorded_chunks = footer.recorded_chunks() | before.recorded_chunks()
        no_filters: dict[ChunkKey, None] = dict.fromkeys(recorded_chunks)
        old = before.set_filters(no_filters, leave_decrypted=True)
        new = footer.set_filters(no_filters, leave_decrypted=True)
    except UnreadableError:
        # The footer before has no such chunks: it is that of another file.
        return False
    return old == new and _has_own_headers(file, addition.filters)


def _has_own_headers(file: ParquetFile, filters: Mapping[ChunkKey, FilterPlace]) -> bool:
    """Return whether each filter has the header that this package writes; a header that is
    encrypted is not compared."""
    plain = [place for key, place in filters.items() if not file.has_key(*key)]
    file.source.prefetch(map(_range_of_header, plain))
    for place in plain:
        data = file.source.read(*_range_of_header(place))
        try:
            header = parse_header(data)
        except UnreadableError:
            return False
        if header.length + header.num_bytes != place.length:
            return False
        own_header = build_header(header.num_bytes)
        if data[: header.length] != own_header:
            return False
    return True


def _range_of_header(place: FilterPlace) -> tuple[int, int]:
    """Return the offset and the bytes to read of a filter for its header."""
    return place.offset, min(HEADER_GUESS, place.length or 0)


def hash_end(source: Source, end: int) -> str:
    """Hash the footer that ends at `end`, with its length word, and at least the last 64 bytes, as
    far as there are so many."""
    tail = source.read(max(0, end - TAIL_BYTES), min(end, TAIL_BYTES))
    length_word = tail[: -len(MAGIC)]
    magic = tail[-len(MAGIC) :]
    length = _LEAST_HASHED
    if len(tail) == TAIL_BYTES and magic in (MAGIC, MAGIC_ENCRYPTED):
        footer_length = int.from_bytes(length_word, "little") + TAIL_BYTES
        if footer_length <= end:
            length = max(length, footer_length)
    start = max(0, end - length)
    digest = blake2b(digest_size=16)
    for offset in range(start, end, _WINDOW):
        window = source.read(offset, min(_WINDOW, end - offset))
        digest.update(window)
    return digest.hexdigest()
