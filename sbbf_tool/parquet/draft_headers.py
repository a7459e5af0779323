"""The headers of drafts of the format, before they were replaced by today's header (`filters`);
sources as in `bloom.dialects`.

    RAW_12   u32 numBytes | u32 hash = 0 | u32 algorithm = 0
    RAW_16   u32 numBytes | u32 hash = 0 | u32 algorithm = 0 | u32 compression = 0
    WITHOUT_COMPRESSION
             BloomFilterPageHeader { 1 numBytes, 2 algorithm BLOCK, 3 hash MURMUR3 or XXHASH }
    PAGE     PageHeader { 1 type = 4, 2 and 3 sizes, 9 BloomFilterPageHeader }

The raw headers, of parquet-mr's branch, are little-endian and no Thrift; WITHOUT_COMPRESSION is
today's header without field 4.

No header identifies its dialect. First MURMUR3 and later XXHASH were field 1 of the same union; raw
headers were written both before and after the hash changed; and a header of 12 bytes before a
bitset that begins with four zero bytes is also a valid header of 16 bytes. A header only narrows
the choice (`readings`); the column's values decide between the remaining dialects.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.dialects import DRAFTS, PAGE, RAW_12, RAW_16, WITHOUT_COMPRESSION, Dialect
from sbbf_tool.bloom.sizing import MAX_BYTES
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.idl.ttypes import (
    BloomFilterAlgorithm,
    BloomFilterHash,
    BloomFilterPageHeader,
    PageHeader,
    PageType,
    SplitBlockAlgorithm,
    XxHash,
)
from sbbf_tool.parquet.structs import build_struct, parse_prefix

_RAW_12 = struct.Struct("<3I")
_RAW_16 = struct.Struct("<4I")


ParsedHeader: TypeAlias = tuple[int, int]
"""Bytes of a header, and of the bitset after it."""


class HeaderReading(NamedTuple):
    """A dialect that a header may belong to, and the lengths that the header states then."""

    dialect: Dialect
    length: int
    num_bytes: int

    def fits(self, room: int, stated_length: int | None) -> bool:
        """Return whether header and bitset fit in `room` bytes, and take `stated_length` bytes if
        that is not None."""
        total = self.length + self.num_bytes
        return total <= room and stated_length in (None, total)


def readings(data: bytes) -> tuple[HeaderReading, ...]:
    """List the drafts that the header at the start of `data` fits; empty if none. Drafts with
    today's header are not tried."""
    headers = {}
    for form, (parse, _) in FORMS.items():
        try:
            headers[form] = parse(data)
        except UnreadableError:
            continue
    return tuple(
        HeaderReading(dialect, *headers[dialect.header])
        for dialect in DRAFTS
        if dialect.header in headers
    )


def _parse_raw(layout: struct.Struct, data: bytes) -> ParsedHeader:
    """Parse the u32 fields of `layout`. Raises UnreadableError unless they are zeros after a size
    that the branch wrote."""
    if len(data) < layout.size:
        raise UnreadableError(f"the header has {layout.size} bytes, but only {len(data)} are given")
    num_bytes, *zeros = layout.unpack_from(data)
    if any(zeros):
        raise UnreadableError("the header states an unknown hash, algorithm or compression")
    # There is no magic, and many other numbers happen to be followed by as many zero bytes, so the
    # check of the size is strict.
    if not BLOCK_BYTES <= num_bytes <= MAX_BYTES or num_bytes & (num_bytes - 1):
        raise UnreadableError(
            "builds of parquet-mr's Bloom filter branch wrote bitsets whose size is a power of "
            f"two from {BLOCK_BYTES} to {MAX_BYTES} bytes, not {num_bytes}"
        )
    return layout.size, num_bytes


def _parse_without_compression(data: bytes) -> ParsedHeader:
    """Parse a `BloomFilterPageHeader` of the drafts, without compression. Raises
    UnreadableError."""
    header, length = parse_prefix(BloomFilterPageHeader, data)
    return length, _num_bytes(header)


def _parse_page(data: bytes) -> ParsedHeader:
    """Parse a `BloomFilterPageHeader` inside a `PageHeader`, whose sizes only repeat it. Raises
    UnreadableError."""
    page, length = parse_prefix(PageHeader, data)
    if page.type != PageType.BLOOM_FILTER_PAGE or page.bloom_filter_page_header is None:
        raise UnreadableError("the page is not that of a Bloom filter")
    return length, _num_bytes(page.bloom_filter_page_header)


def _build_page(num_bytes: int) -> bytes:
    return build_struct(
        PageHeader(
            PageType.BLOOM_FILTER_PAGE,
            num_bytes,
            num_bytes,
            bloom_filter_page_header=_header(num_bytes),
        )
    )


def _header(num_bytes: int) -> BloomFilterPageHeader:
    # XXHASH is today's name of union field 1; names are not stored.
    return BloomFilterPageHeader(
        num_bytes,
        BloomFilterAlgorithm(BLOCK=SplitBlockAlgorithm()),
        BloomFilterHash(XXHASH=XxHash()),
    )


def _num_bytes(header: BloomFilterPageHeader) -> int:
    is_block = header.algorithm is not None and header.algorithm.BLOCK is not None
    is_known_hash = header.hash is not None and header.hash.XXHASH is not None
    if not is_block or not is_known_hash:
        raise UnreadableError("the header names an algorithm or hash that the drafts did not have")
    if header.compression is not None:
        raise UnreadableError("the header states a compression, which the drafts did not have")
    if header.numBytes is None or header.numBytes < BLOCK_BYTES:
        raise UnreadableError(
            f"the header states a bitset of {header.numBytes} bytes, but one block has "
            f"{BLOCK_BYTES}"
        )
    return int(header.numBytes)


FORMS: dict[str, tuple[Callable[[bytes], ParsedHeader], Callable[[int], bytes]]] = {
    RAW_12: (partial(_parse_raw, _RAW_12), lambda num_bytes: _RAW_12.pack(num_bytes, 0, 0)),
    RAW_16: (partial(_parse_raw, _RAW_16), lambda num_bytes: _RAW_16.pack(num_bytes, 0, 0, 0)),
    WITHOUT_COMPRESSION: (
        _parse_without_compression,
        lambda num_bytes: build_struct(_header(num_bytes)),
    ),
    PAGE: (_parse_page, _build_page),
}
"""The parser and the builder of each form of a header."""
