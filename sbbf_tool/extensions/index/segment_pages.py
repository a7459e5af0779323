"""The pages of the two files of a segment: rows of units and runs of blocks, as PLAIN values.

A header also states where its page belongs, so that a page of another segment, or of another place,
is not taken for it.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from sbbf_tool.parquet.idl.ttypes import DataPageHeader, Encoding, PageHeader, PageType
from sbbf_tool.parquet.structs import build_struct

WHOLE_FILE = NO_CLASS = UNKNOWN_ROWS = -1
FINGERPRINT_BYTES = 16
UNITS_PER_ROW_GROUP = 4096
MOST_HEADER = 64
"""Bytes of a page header."""
BLOCK = "block"
"""The column of the file of blocks."""
_LONGEST_CHECKSUM = -(2**31)
"""The checksum whose varint has the most bytes, and these bytes, which occur in no other field of a
page header."""
_ITS_BYTES = b"\xff\xff\xff\xff\x0f"
_PLACE_BYTES = 8
_PLACE_FIELD = bytes((0x1C, 0x28, _PLACE_BYTES))
"""Beginning of the statistics of a data page in Thrift's compact protocol: the field `min`, a
binary, and its length. That field is deprecated, and without `max` no reader uses it. A field of
another number would do as well, but Polars and fastparquet read no header with one."""


class Unit(NamedTuple):
    """A row of the file of units."""

    path: str
    row_group: int
    """Number of the row group, or `WHOLE_FILE`."""
    file_bytes: int
    version: str
    """What changes with the content of the file: its ETag, or its times and its inode."""
    rows: int
    """Number of rows, or `UNKNOWN_ROWS`."""
    has_bounds: int
    """1 if `low` and `high` are bounds of the values, as plain bytes of the column; otherwise 0."""
    low: bytes
    high: bytes
    blocks: int
    number: int
    """Number of the class, or `NO_CLASS` for a unit that may hold any value."""
    position: int
    """Position in the class."""
    fingerprint: bytes
    """Hash of path, length and version; see `identity.fingerprint_of`."""
    skipped: str
    """Why a listing skips the file, such as a link; empty for other files."""


TEXT = "text"
I32 = "i"
I64 = "q"
BYTES = "bytes"
FIXED = "fixed"
KINDS = {
    "path": TEXT,
    "row_group": I32,
    "file_bytes": I64,
    "version": TEXT,
    "rows": I64,
    "has_bounds": I32,
    "low": BYTES,
    "high": BYTES,
    "blocks": I32,
    "number": I32,
    "position": I32,
    "fingerprint": FIXED,
    "skipped": TEXT,
}
"""The kind of each column of the file of units."""
_WIDTHS = {I32: 4, I64: 8, FIXED: FINGERPRINT_BYTES}


def place_of(segment: str, column: str, first: int, block: int = 0) -> bytes:
    """Return what a page header states of the place of the page: a hash of the name of the segment,
    the column, the position of the first unit, and the number of the block.

    The names of segments are random: no other index has one of the same name.
    """
    text = "\0".join((segment, column, str(first), str(block)))
    return blake2b(text.encode(), digest_size=_PLACE_BYTES).digest()


def build_page_header(
    page_bytes: int, values: int, checksum: int, place: bytes = bytes(_PLACE_BYTES)
) -> bytes:
    """Build the header of a PLAIN page without levels. Its length depends on the first two numbers
    alone."""
    header = build_struct(
        PageHeader(
            type=PageType.DATA_PAGE,
            uncompressed_page_size=page_bytes,
            compressed_page_size=page_bytes,
            crc=_LONGEST_CHECKSUM,
            data_page_header=DataPageHeader(
                num_values=values,
                encoding=Encoding.PLAIN,
                definition_level_encoding=Encoding.RLE,
                repetition_level_encoding=Encoding.RLE,
            ),
        )
    )
    header = header.replace(_ITS_BYTES, _build_varint(checksum), 1)
    # The last bytes end the structs of the data page and of the page.
    return b"".join((header[:-2], _PLACE_FIELD, place, b"\0", header[-2:]))


def _build_varint(checksum: int) -> bytes:
    """Build the five bytes of a checksum in a header. A varint may have bytes that say no more: all
    five are there."""
    signed = checksum - (1 << 32) if checksum >> 31 else checksum
    folded = (signed << 1 ^ signed >> 31) & 0xFFFF_FFFF
    first_bytes = bytes((folded >> shift & 0x7F) | 0x80 for shift in range(0, 28, 7))
    return first_bytes + bytes((folded >> 28,))


def build_page(data: bytes | memoryview, values: int, place: bytes) -> bytes:
    """Build a page of values that are encoded already."""
    return b"".join((build_page_header(len(data), values, zlib.crc32(data), place), data))


def page_bytes_of(body_bytes: int, values: int) -> int:
    """Return the length of a page with its header, in bytes."""
    return len(build_page_header(body_bytes, values, 0)) + body_bytes


def body_bytes_of(page_bytes: int, values: int) -> int:
    """Return the length of a page without its header, in bytes; 0 if no page has this length."""
    for body_bytes in range(page_bytes, max(0, page_bytes - MOST_HEADER), -1):
        if page_bytes_of(body_bytes, values) == page_bytes:
            return body_bytes
    return 0


def encode(kind: str, values: Sequence[Any]) -> bytes:
    """Encode the values of a column of the file of units."""
    if kind == FIXED:
        return b"".join(values)
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        return b"".join(value.to_bytes(width, "little", signed=True) for value in values)
    data = bytearray()
    for value in values:
        plain = value.encode() if kind == TEXT else value
        data += len(plain).to_bytes(4, "little")
        data += plain
    return bytes(data)


def decode(kind: str, data: bytes, count: int) -> list[Any]:
    """Decode the values of a page that has `count` of them; other bytes give more or fewer. Raises
    ValueError for text that is not UTF-8."""
    if kind in _WIDTHS:
        width = _WIDTHS[kind]
        end = min(len(data), (count + 1) * width)
        parts = [data[at : at + width] for at in range(0, end, width)]
        if kind == FIXED:
            return parts
        return [int.from_bytes(part, "little", signed=True) for part in parts]
    values: list[Any] = []
    at = 0
    while at < len(data) and len(values) <= count:
        start = at + 4
        at = start + int.from_bytes(data[at:start], "little")
        plain = data[start:at]
        values.append(plain.decode() if kind == TEXT else plain)
    return values
