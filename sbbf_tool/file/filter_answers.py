"""The answers of the filters of row groups for the values of a question: the one decision for every
command, Spark and the data source.

For many values they are bitmaps: bit i, counted from the lowest bit of the first byte, stands for
value i. Bytes after the last set bit may be missing. A bitmap takes an eighth of a byte per value:
the answers of 30 filters for a million values take 4 MB, however many of the values may be stored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter, check_block
from sbbf_tool.bloom.spec import block_index
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.doubts import doubt_of_filter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Candidates, Question
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.filters import HEADER_GUESS, StoredFilter
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY
from sbbf_tool.reports.probe import NO_FILTER

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect
    from sbbf_tool.parquet.columns import Column


# Reading a whole bitset costs about as much as this many reads of one block.
_BLOCKS_PER_BITSET_READ = 64
_MANY_HASHES = 1024
"""For more hashes than this the whole bitset is read: counting the selected blocks would cost more
than it saves."""
EMPTY_FILTER = "the filter is empty, but the column chunk has values"
"""Why there is no answer for a row group that query engines skip all the same."""
_EMPTY_BLOCK = bytes(BLOCK_BYTES)
_WINDOW = 1 << 16


class BulkAnswer(NamedTuple):
    """Answer of the filter or the dictionary of one row group for many values."""

    values: bytes = b""
    """The values that it may hold, as a bitmap."""
    answer: str = ABSENT
    """Answer for the other values."""
    reason: str | None = None
    unreadable: str | None = None
    """Its place, and what is wrong, if its bytes contradict the format: it excludes nothing."""


def by_filter(
    file: ParquetFile,
    row_group: int,
    question: Question,
    candidates: Candidates,
    dialect: Dialect | None = None,
) -> BulkAnswer:
    """Query one row group's filter for these candidates; in `dialect` if the filter follows that
    dialect. The chunk must not be in doubt."""
    reason = None
    stored = file.stored_filter(row_group, question.column)
    if stored is not None:
        if dialect is not None:
            from sbbf_tool.file.drafts import in_dialect

            stored, hasher, reason = in_dialect(file, stored, dialect)
            if hasher is not None:
                question = question.rehash(hasher)
        reason = reason or stored.header.refusal or doubt_of_filter(file, stored)
    if reason:
        return BulkAnswer(answer=CANNOT_SAY, reason=reason)
    meta = file.footer.chunk_meta(row_group, question.column.index)
    non_null_values = meta.non_null_values
    if question.column.is_null_typed and not non_null_values:
        return BulkAnswer()
    if stored is None:
        return BulkAnswer(answer=NO_FILTER)
    hashes, owners = question.hashes_in(candidates)
    flags, is_empty = may_hold(file, stored, hashes)
    if is_empty and non_null_values != 0:
        return BulkAnswer(answer=CANNOT_SAY, reason=EMPTY_FILTER)
    uncertain = equals.uncertainty(file.footer, question.column)
    answer = CANNOT_SAY if uncertain else ABSENT
    values = build_bitmap(flags, owners)
    return BulkAnswer(values, answer, uncertain)


def expect_filters(
    file: ParquetFile, question: Question, by_row_group: Mapping[int, Candidates]
) -> None:
    """Announce that the filters of these row groups will be queried, each for its candidates: see
    `Source.prefetch`."""
    column = question.column
    hashes = {}
    for row_group, candidates in by_row_group.items():
        hashes[row_group], _ = question.hashes_in(candidates)
    file.expect_filters(
        [column], also=_likely_blocks(file, column, hashes), row_groups=[*by_row_group]
    )
    file.source.prefetch(_blocks(file, column, hashes))


_Hashes: TypeAlias = Mapping[int, memoryview]
"""The hashes that are looked for, by row group."""


def _likely_blocks(
    file: ParquetFile, column: Column, by_row_group: _Hashes
) -> Iterator[tuple[int, int]]:
    """Predict the ranges to read from the recorded lengths of the filters, so that most probes need
    one round trip."""
    for row_group, hashes in by_row_group.items():
        place = file.footer.filter_place(row_group, column.index)
        if place is None or place.length is None or place.length <= 0:
            continue
        if len(hashes) > _MANY_HASHES:
            yield place.offset, place.length
            continue
        # The largest power of two is probably the bitset, and what remains its header.
        num_bytes = 1 << place.length.bit_length() - 1
        header_bytes = place.length - num_bytes
        if num_bytes >= BLOCK_BYTES and header_bytes <= HEADER_GUESS:
            start = place.offset + header_bytes
            num_blocks = num_bytes // BLOCK_BYTES
            for h in hashes:
                block = block_index(h, num_blocks)
                yield start + block * BLOCK_BYTES, BLOCK_BYTES


def _blocks(file: ParquetFile, column: Column, by_row_group: _Hashes) -> Iterator[tuple[int, int]]:
    """Yield the ranges of these row groups that `may_hold` will read."""
    for row_group, hashes in by_row_group.items():
        if file.encryption_of(row_group, column) is not None:
            continue
        try:
            stored = file.stored_filter(row_group, column)
        except UnreadableError:
            continue  # reported when it is queried
        if stored is not None and not stored.header.unsupported_reason:
            yield from _blocks_of(stored, hashes)


def _blocks_of(stored: StoredFilter, hashes: memoryview) -> list[tuple[int, int]]:
    whole = (stored.bitset_offset, stored.bitset_bytes)
    if len(hashes) > _MANY_HASHES:
        return [whole]
    indices = {block_index(h, stored.num_blocks) for h in hashes}
    if _is_read_whole(stored, indices):
        return [whole]
    offsets = (stored.bitset_offset + index * BLOCK_BYTES for index in indices)
    return [(offset, BLOCK_BYTES) for offset in offsets]


def _is_read_whole(stored: StoredFilter, blocks: Collection[int]) -> bool:
    # An encrypted bitset can only be authenticated as a whole.
    if stored.is_encrypted:
        return True
    most_blocks = min(_BLOCKS_PER_BITSET_READ, stored.num_blocks // 4)
    return len(blocks) > most_blocks


def may_hold(file: ParquetFile, stored: StoredFilter, hashes: memoryview) -> tuple[bytes, bool]:
    """Return 1 for each hash that the filter may hold, otherwise 0; and whether the filter is
    empty, which excludes every value.

    Read each block once, or the whole bitset if that is cheaper, and beyond that only if all blocks
    so far are zeros.
    """
    if len(hashes) <= _MANY_HASHES:
        by_block = defaultdict[int, list[int]](list)
        for at, h in enumerate(hashes):
            block = block_index(h, stored.num_blocks)
            by_block[block].append(at)
        if not _is_read_whole(stored, by_block):
            return _check_blocks(file, stored, hashes, by_block)
    bitset = file.read_bitset(stored)
    bloom = BloomFilter(bitset)
    first_bytes = bitset[:_WINDOW]
    is_empty = not first_bytes.strip(b"\0") and not bitset.strip(b"\0")
    if len(hashes) <= _BLOCKS_PER_BITSET_READ:
        return bytes(map(bloom.check_hash, hashes)), is_empty
    return bloom.check_hashes(hashes), is_empty


def _check_blocks(
    file: ParquetFile, stored: StoredFilter, hashes: memoryview, by_block: dict[int, list[int]]
) -> tuple[bytes, bool]:
    """Do as `may_hold` does, block by block. `by_block` has the places of the hashes that select
    each block."""
    answers = bytearray(len(hashes))
    is_empty = bool(hashes)
    for index, places in by_block.items():
        offset = stored.bitset_offset + index * BLOCK_BYTES
        block = file.source.read(offset, BLOCK_BYTES)
        is_empty = is_empty and block == _EMPTY_BLOCK
        for at in places:
            answers[at] = check_block(block, hashes[at])
    return bytes(answers), is_empty and _has_no_bits(file, stored)


def _has_no_bits(file: ParquetFile, stored: StoredFilter) -> bool:
    """Return whether the bitset is all zeros. Read it up to the first window that is not."""
    for at in range(0, stored.bitset_bytes, _WINDOW):
        length = min(_WINDOW, stored.bitset_bytes - at)
        window = file.source.read(stored.bitset_offset + at, length)
        if window.strip(b"\0"):
            return False
    return True


_DIGITS = bytes.maketrans(b"\0\1", b"01")
_BLOCK_BYTES = 4096
_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]
_NOT_ZERO = rb"[^\0]"


def build_bitmap(flags: bytes, owners: Sequence[int]) -> bytes:
    """Build the bitmap of the values that own a flag of 1: flag i, which is 0 or 1, belongs to
    value `owners[i]`."""
    if 1 not in flags:
        return b""
    if not isinstance(owners, range):
        return bitmap_of(map(owners.__getitem__, _places_of_ones(flags)))
    # A number in base 2 is parsed in linear time; its last digit is its lowest bit.
    digits = flags.translate(_DIGITS)[::-1]
    return _to_bytes(int(digits, 2) << owners.start)


def _places_of_ones(flags: bytes) -> Iterator[int]:
    # Most flags are 0, over which `find` goes at the speed of memory.
    at = flags.find(1)
    while at >= 0:
        yield at
        at = flags.find(1, at + 1)


def bitmap_of(positions: Iterable[int]) -> bytes:
    """Build the bitmap of these values."""
    bitmap = bytearray()
    for position in positions:
        at = position >> 3
        bit = position & 7
        num_missing = at + 1 - len(bitmap)
        if num_missing > 0:
            bitmap.extend(bytes(num_missing))
        bitmap[at] |= 1 << bit
    return bytes(bitmap)


def unite(bitmaps: Iterable[bytes]) -> bytes:
    """Build the bitmap of the values that are in any of these."""
    united = 0
    for bitmap in bitmaps:
        united |= int.from_bytes(bitmap, "little")
    return _to_bytes(united)


def count_bits(bitmap: bytes) -> int:
    """Count the values in a bitmap."""
    return int.from_bytes(bitmap, "little").bit_count()


def positions(bitmap: bytes) -> Iterator[int]:
    """Yield the values in a bitmap, in order."""
    for match in re.finditer(_NOT_ZERO, bitmap):
        at = match.start()
        for bit in _BITS[bitmap[at]]:
            yield at * 8 + bit


def iterate(bitmaps: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each value that is in any bitmap, in order, and the numbers of the bitmaps that have
    it. Memory holds one block of values."""
    lengths = (len(bitmap) for _, bitmap in bitmaps)
    num_bytes = max(lengths, default=0)
    for start in range(0, num_bytes, _BLOCK_BYTES):
        first_value = start * 8
        numbers = defaultdict[int, list[int]](list)
        for number, bitmap in bitmaps:
            block = bitmap[start : start + _BLOCK_BYTES]
            for position in positions(block):
                numbers[first_value + position].append(number)
        for position in sorted(numbers):
            yield position, tuple(numbers[position])


def _to_bytes(bits: int) -> bytes:
    num_bytes = (bits.bit_length() + 7) // 8
    return bits.to_bytes(num_bytes, "little")
