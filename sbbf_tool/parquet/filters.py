"""A Bloom filter as stored in a file: header, then bitset (parquet-format BloomFilter.md, "File
Format").

    bloom_filter_offset -> | BloomFilterHeader (Thrift compact) | bitset of numBytes |

No `PageHeader` encloses the header. Only its own `numBytes` defines the length of the bitset; the
footer's `bloom_filter_length`, which is newer and optional, is compared with it but never overrides
it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact
from sbbf_tool.parquet.idl.ttypes import BloomFilterHeader
from sbbf_tool.parquet.splice import FilterPlace
from sbbf_tool.parquet.structs import parse_prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.parquet.draft_headers import HeaderReading

HEADER_GUESS = 64
"""Bytes to fetch at an offset to have a whole header: today's headers take 15 to 19, drafts' inside
a PageHeader some more."""

MODULE_OVERHEAD = 4 + 12 + 16

# Fields 2, 3 and 4 are unions. Their first members, which are empty structs, are BLOCK, XXHASH and
# UNCOMPRESSED.

_FORM = b"\x1c\x1c\x00\x00" * 3 + b"\x00"
# numBytes is an i32: at most five bytes of varint, the fifth with four bits.
_SIZE = re.compile(b"\x15([\x80-\xff]{0,3}[\x00-\x7f]|[\x80-\xff]{4}[\x00-\x0f])", re.DOTALL)
_USUAL_HEADER = re.compile(_SIZE.pattern + re.escape(_FORM), re.DOTALL)
_LEAST_HEADER_BYTES = 2 + len(_FORM)


class FilterHeader(NamedTuple):
    """A parsed header: its length, the bytes of the bitset after it, and, if the bitset must not be
    interpreted, the reason."""

    length: int
    num_bytes: int
    unsupported_reason: str | None = None
    readings: tuple[HeaderReading, ...] = ()
    """The drafts that the header may belong to; the other fields describe the first."""

    @property
    def refusal(self) -> str | None:
        """Why the filter cannot be queried, with a hint if it follows a draft; None if it can."""
        if not self.readings:
            return self.unsupported_reason
        return f"{self.unsupported_reason}; name the dialect to query it"

    def within(self, room: int, stated_length: int | None) -> FilterHeader:
        """Return the header with only the readings of the stated length, or, if there are none, all
        that fit in `room` bytes."""
        for length in (stated_length, None):
            fitting = [reading for reading in self.readings if reading.fits(room, length)]
            if fitting:
                return _draft(tuple(fitting))
        return self


class StoredFilter(NamedTuple):
    """A filter of one column chunk, as footer and header describe it together."""

    row_group: int
    column: int
    place: FilterPlace
    header: FilterHeader
    encrypted_header_bytes: int | None = None
    """Bytes of the header's module if header and bitset are encrypted; None if they are not."""

    @property
    def is_encrypted(self) -> bool:
        return self.encrypted_header_bytes is not None

    @property
    def header_bytes(self) -> int:
        """Bytes of the header as stored."""
        if self.encrypted_header_bytes is not None:
            return self.encrypted_header_bytes
        return self.header.length

    @property
    def bitset_offset(self) -> int:
        """First byte of the bitset, or of its module."""
        return self.place.offset + self.header_bytes

    @property
    def length(self) -> int:
        """Bytes of header and bitset as stored."""
        return self.header_bytes + self.bitset_bytes

    @property
    def bitset_bytes(self) -> int:
        """Bytes of the bitset as stored: a module adds a length word, nonce and tag."""
        if self.is_encrypted:
            return self.header.num_bytes + MODULE_OVERHEAD
        return self.header.num_bytes

    @property
    def end(self) -> int:
        return self.place.offset + self.length

    @property
    def num_blocks(self) -> int:
        """Blocks in use. If the bitset is not a multiple of 32 bytes, as parquet-java can write it,
        its last bytes are unused."""
        return self.header.num_bytes // BLOCK_BYTES

    def warnings(self) -> list[str]:
        """Describe what at least one reader rejects or misreads; empty for a filter that every
        known reader accepts."""
        warnings = []
        stated_length = self.place.length
        size = self.header.num_bytes
        if stated_length is None:
            warnings.append(
                "bloom_filter_length is missing: parquet-java 1.14.0 to 1.15.2 may lose rows, "
                "hyparquet ignores the filter"
            )
        elif stated_length != self.length:
            warnings.append(
                f"bloom_filter_length is {stated_length}, but header and bitset have "
                f"{self.length} bytes: some readers ignore or misread it"
            )
        if size % BLOCK_BYTES:
            warnings.append(
                f"the bitset of {size} bytes is not a whole number of blocks; its last "
                f"{size % BLOCK_BYTES} bytes are unused"
            )
        if size > sizing.MAX_BYTES:
            warnings.append(
                "the bitset is larger than 128 MiB: Trino fails; parquet-java, Arrow and Velox "
                "reject it"
            )
        elif size < sizing.MIN_BYTES:
            warnings.append("the bitset is smaller than 64 bytes: Impala reads past its end")
        elif size & (size - 1):
            warnings.append(
                "the size of the bitset is not a power of two: Arrow C++ and Velox reject it, "
                "Impala misreads it"
            )
        return warnings


def read_header(
    read: Callable[[int, int], bytes], offset: int, room: int, stated_length: int | None
) -> FilterHeader:
    """Read and parse the header at `offset`, where `read(offset, length)` returns bytes and `room`
    bytes remain.

    `stated_length` is the length of the filter in the footer. Of a header in today's form, no byte
    after the header is read. Raises UnreadableError.
    """
    data = read(offset, min(predict_header_bytes(stated_length), room))
    size = _SIZE.match(data)
    if size is not None:
        length = size.end() + len(_FORM)
        if len(data) < length <= room:
            data += read(offset + len(data), length - len(data))
    if not _USUAL_HEADER.fullmatch(data):
        data = read(offset, min(HEADER_GUESS, room))
    return parse_header(data)


def predict_header_bytes(stated_length: int | None) -> int:
    """Return the bytes of today's header of a filter whose header and bitset have this length; the
    fewest it can have if unknown."""
    if stated_length is None:
        return _LEAST_HEADER_BYTES
    for size_bytes in range(1, 6):
        length = 1 + size_bytes + len(_FORM)
        num_bytes = stated_length - length
        if num_bytes >= BLOCK_BYTES and len(compact.build_int(num_bytes)) == size_bytes:
            return length
    return _LEAST_HEADER_BYTES


def parse_header(data: bytes) -> FilterHeader:
    """Parse the header at the start of `data`. Raises UnreadableError if the bytes cannot be a
    header.

    A header that is well formed but not today's (another algorithm, hash or compression, or a
    draft: see `draft_headers`) is returned with the reason why its bitset must not be interpreted.
    """
    # A file may have tens of thousands of headers, nearly all of them in exactly today's form.
    # Thrift parses only the others.
    usual = _USUAL_HEADER.match(data)
    if usual:
        folded, _ = compact.read_varint(usual[1], 0)
        is_negative = folded & 1
        num_bytes = folded >> 1
        if num_bytes >= BLOCK_BYTES and not is_negative:
            return FilterHeader(usual.end(), num_bytes)
    from sbbf_tool.parquet.draft_headers import readings

    drafts = readings(data)
    if drafts:
        return _draft(drafts)
    header, length = parse_prefix(BloomFilterHeader, data)
    size = header.numBytes
    if size is None:
        raise UnreadableError("not a filter header: numBytes is missing")
    if size < BLOCK_BYTES:
        raise UnreadableError(
            f"the header states a bitset of {size} bytes, but one block has {BLOCK_BYTES}"
        )
    return FilterHeader(length, size, _find_unsupported(header))


def _draft(readings: tuple[HeaderReading, ...]) -> FilterHeader:
    forms = " or ".join(dict.fromkeys(reading.dialect.header for reading in readings))
    names = " or ".join(reading.dialect.name for reading in readings)
    reason = f"its header ({forms}) is that of a draft of the format: {names}"
    return FilterHeader(readings[0].length, readings[0].num_bytes, reason, readings)


def _find_unsupported(header: BloomFilterHeader) -> str | None:
    if header.algorithm is None and header.hash is None:
        return "its header states neither algorithm nor hash"
    if header.algorithm is None or header.algorithm.BLOCK is None:
        return "its header states an algorithm other than split blocks"
    if header.hash is None or header.hash.XXHASH is None:
        return "its header states a hash other than XXH64"
    if header.compression is None or header.compression.UNCOMPRESSED is None:
        return "its bitset is compressed in a way the format does not have"
    return None


def build_header(num_bytes: int) -> bytes:
    """Build today's header for a bitset of `num_bytes`: split blocks, XXH64, uncompressed; 15 to 19
    bytes."""
    return b"\x15" + compact.build_int(num_bytes) + _FORM


def build_draft_header(dialect: Dialect, num_bytes: int) -> bytes:
    """Build the header of this dialect for a bitset of `num_bytes`; some dialects have today's
    header."""
    from sbbf_tool.parquet.draft_headers import FORMS

    if dialect.header not in FORMS:
        return build_header(num_bytes)
    _, build = FORMS[dialect.header]
    return build(num_bytes)


def build_draft_filter(
    dialect: Dialect, values: Iterable[bytes], num_bytes: int, *, is_number: bool
) -> bytes:
    """Build the header and the bitset, of `num_bytes`, of a filter that contains these
    plain-encoded values in this dialect.

    `is_number` says that the column is INT32, INT64, FLOAT or DOUBLE. This function is for fixtures
    and corpora: no reader benefits from a draft's filter.
    """
    bloom = BloomFilter.empty(num_bytes)
    hasher = dialect.hasher(bloom.num_blocks, is_number=is_number)
    for value in values:
        bloom.insert_hash(hasher.hash_value(value))
    return build_draft_header(dialect, num_bytes) + bytes(bloom)
