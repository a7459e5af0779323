"""The kernel that needs no compiler: numpy for everything of fixed width, the xxhash package, value
by value, for the rest.

Interface and results are those of `spec`, which documents what is computed and cites the sources;
this module documents only how. It works in batches whose intermediate arrays stay in the
processor's caches.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from sbbf_tool.bloom import buffers, spec
from sbbf_tool.bloom.spec import PRIMES, SALT, WORDS_PER_BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    U8 = NDArray[np.uint8]
    U64 = NDArray[np.uint64]

NAME = "numpy"

_BATCH = 1 << 12
_BLOCKS_AT_ONCE = 1 << 12

# For fewer values per call, calling xxhash once per value costs less than numpy's overhead per
# operation.
_FEW = 32

_P1, _P2, _P3, _P4, _P5 = map(np.uint64, PRIMES)
_SALT = np.array(SALT, np.uint32)
_HALF = np.uint64(32)
_ZERO = np.uint64(0)
_STRIPE_BYTES = 32

# Every second bit, pair of bits and group of four bits of a word, and the lowest bit of each byte.
_SECOND_BITS = np.uint32(0x55555555)
_SECOND_PAIRS = np.uint32(0x33333333)
_SECOND_FOURS = np.uint32(0x0F0F0F0F)
_LOWEST_OF_BYTES = np.uint32(0x01010101)


def describe() -> str:
    return "numpy"


def hash_fixed(values: Buffer, width: int) -> memoryview:
    view, count = buffers.rows(values, width)
    hashes = np.empty(count, np.uint64)
    if count < _FEW:
        for i in range(count):
            start = i * width
            hashes[i] = xxhash.xxh64_intdigest(view[start : start + width])
    else:
        table = np.frombuffer(view, np.uint8).reshape(count, width)
        for batch in _batches(count):
            hashes[batch] = _xxh64_rows(table[batch])
    return _as_hashes(hashes)


def hash_variable(data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
    view, places = buffers.offsets_in(data, offsets, offset_width)
    integer = np.int32 if offset_width == 4 else np.int64
    every: NDArray[np.signedinteger] = np.frombuffer(places, integer)
    if (every[1:] < every[:-1]).any():
        raise ValueError(buffers.OFFSETS_DECREASE)
    # After the check: differences of invalid offsets can overflow and look valid.
    lengths = np.diff(every)
    # Strings of one length, such as UUIDs.
    width = int(lengths[0]) if len(lengths) else 0
    if width and (lengths == width).all():
        return hash_fixed(view[places[0] : places[-1]], width)
    return _hash_spans(view, pairwise(places))


def hash_length_prefixed(page: Buffer, count: int) -> memoryview:
    view = buffers.flat(page)
    return _hash_spans(view, buffers.prefixed_spans(view, count))


def extremes_fixed(values: Buffer, width: int, order: str) -> tuple[bytes, bytes] | None:
    if order not in ("signed", "unsigned") or width not in (4, 8):
        return spec.extremes_fixed(values, width, order)
    view, count = buffers.rows(values, width)
    if not count:
        return None
    kind = "i" if order == "signed" else "u"
    numbers = np.frombuffer(view, f"<{kind}{width}")
    return numbers.min().tobytes(), numbers.max().tobytes()


ends_length_prefixed = spec.ends_length_prefixed
extremes_variable = spec.extremes_variable
extremes_length_prefixed = spec.extremes_length_prefixed


def insert(bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
    table = _table(buffers.writable_blocks(bitset, num_blocks))
    every = np.frombuffer(buffers.hashes_of(hashes), np.uint64)
    for batch in _batches(len(every)):
        # The block index grows with the hash, so sorting groups the hashes of a block; their masks
        # are united first, and each block is then written once. Otherwise the last of them would
        # overwrite the others.
        h = np.sort(every[batch])
        block = _block_index(h, num_blocks)
        first = np.flatnonzero(np.diff(block, prepend=-1))
        united_masks = np.bitwise_or.reduceat(_masks(h), first, axis=0)
        table[block[first]] |= united_masks


def check(bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
    table = _table(buffers.blocks(bitset, num_blocks))
    return b"".join(matches.tobytes() for matches in _check_batches(table, hashes))


def count_missing(bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
    table = _table(buffers.blocks(bitset, num_blocks))
    num_missing = 0
    for matches in _check_batches(table, hashes):
        num_missing += len(matches) - int(np.count_nonzero(matches))
    return num_missing


def fold(bitset: Buffer, num_blocks: int) -> bytearray:
    blocks = buffers.even_blocks(bitset, num_blocks)
    pairs = np.frombuffer(blocks, np.uint64).reshape(-1, 2, 4)
    folded = bytearray(len(blocks) // 2)
    folded_table = np.frombuffer(folded, np.uint64).reshape(-1, 4)
    np.bitwise_or(pairs[:, 0], pairs[:, 1], out=folded_table)
    return folded


def measure(bitset: Buffer, num_blocks: int) -> tuple[int, int]:
    words = np.frombuffer(buffers.blocks(bitset, num_blocks), np.uint32)
    table = words.reshape(num_blocks, WORDS_PER_BLOCK)
    bits_set = 0
    products = 0
    for start in range(0, num_blocks, _BLOCKS_AT_ONCE):
        counts = _count_bits(table[start : start + _BLOCKS_AT_ONCE])
        bits_set += int(counts.sum(dtype=np.uint64))
        # A product is at most 32^8 = 2^40, so a sum of 2^12 of them stays far below 2^64.
        products_of_blocks = counts.prod(axis=1, dtype=np.uint64)
        products += int(products_of_blocks.sum())
    return bits_set, products


def _count_bits(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count the bits set in each word, in parallel in fields of 2, 4 and 8 bits (Hacker's Delight,
    5-1); numpy 1 has no `bitwise_count`."""
    counts = words - ((words >> np.uint32(1)) & _SECOND_BITS)
    upper = (counts >> np.uint32(2)) & _SECOND_PAIRS
    counts = (counts & _SECOND_PAIRS) + upper
    counts = (counts + (counts >> np.uint32(4))) & _SECOND_FOURS
    # The product adds up the four bytes in the highest one.
    sums: NDArray[np.uint32] = counts * _LOWEST_OF_BYTES >> np.uint32(24)
    return sums


# --- Hashing ---


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, _BATCH):
        end = min(start + _BATCH, count)
        yield slice(start, end)


def _as_hashes(hashes: U64) -> memoryview:
    # numpy calls the type "L" if a C long has 64 bits; the interface requires "Q" everywhere.
    return hashes.data.cast("B").cast("Q")


def _hash_spans(view: memoryview, spans: Iterator[tuple[int, int]]) -> memoryview:
    digest = xxhash.xxh64_intdigest
    hashes = (digest(view[start:end]) for start, end in spans)
    return _as_hashes(np.fromiter(hashes, np.uint64))


def _rotate_left(x: U64, bits: int) -> U64:
    return x << np.uint64(bits) | x >> np.uint64(64 - bits)


def _round(accumulator: U64 | np.uint64, lane: U64) -> U64:
    return _rotate_left(accumulator + lane * _P2, 31) * _P1


def _column(table: U8, at: int, dtype: str) -> U64:
    """Read the integers of type `dtype` at byte `at` of each row, widened to 64 bits."""
    size = np.dtype(dtype).itemsize
    columns_of_bytes = np.ascontiguousarray(table[:, at : at + size])
    column = columns_of_bytes.view(dtype)[:, 0]
    return column.astype(np.uint64, copy=False)


def _xxh64_rows(table: U8) -> U64:
    """Hash each row with XXH64, seed 0; the steps are those of `spec.xxh64`, each for all rows at
    once."""
    _, width = table.shape
    h = _merge_stripes(table)
    h = _mix_remainder(h + np.uint64(width), table)
    h = (h ^ h >> np.uint64(33)) * _P2
    h = (h ^ h >> np.uint64(29)) * _P3
    return h ^ h >> _HALF


def _merge_stripes(table: U8) -> U64:
    """Do steps 1 to 3: four accumulators over the whole stripes of each row, then merged; short
    rows have no stripes."""
    count, width = table.shape
    if width < _STRIPE_BYTES:
        return np.full(count, _P5, np.uint64)
    # The scalar sums wrap, as the specification requires; numpy would warn about it.
    starts = ((int(_P1) + int(_P2)) % 2**64, int(_P2), 0, -int(_P1) % 2**64)
    lanes = [np.full(count, start, np.uint64) for start in starts]
    for at in range(0, width - width % _STRIPE_BYTES, _STRIPE_BYTES):
        columns = (_column(table, at + 8 * i, "<u8") for i in range(4))
        lanes = list(map(_round, lanes, columns))
    h = _rotate_left(lanes[0], 1)
    h += _rotate_left(lanes[1], 7)
    h += _rotate_left(lanes[2], 12)
    h += _rotate_left(lanes[3], 18)
    for lane in lanes:
        h = (h ^ _round(_ZERO, lane)) * _P1 + _P4
    return h


def _mix_remainder(h: U64, table: U8) -> U64:
    """Do step 5 with the bytes after the whole stripes: by eights, then one four, then ones."""
    _, width = table.shape
    position = width - width % _STRIPE_BYTES
    while width - position >= 8:
        h = h ^ _round(_ZERO, _column(table, position, "<u8"))
        h = _rotate_left(h, 27) * _P1 + _P4
        position += 8
    if width - position >= 4:
        h = h ^ _column(table, position, "<u4") * _P1
        h = _rotate_left(h, 23) * _P2 + _P3
        position += 4
    for at in range(position, width):
        h = h ^ _column(table, at, "u1") * _P5
        h = _rotate_left(h, 11) * _P1
    return h


# --- Blocks: a table of z rows, each of eight words, in pairs as 64 bits ---


def _table(blocks: memoryview) -> U64:
    return np.frombuffer(blocks, np.uint64).reshape(-1, 4)


def _block_index(h: U64, num_blocks: int) -> NDArray[np.int64]:
    block = (h >> _HALF) * np.uint64(num_blocks) >> _HALF
    return block.astype(np.int64)


def _masks(h: U64) -> U64:
    """Build the block in which each hash sets its bits, as rows of a table like the bitset's."""
    key = h.astype(np.uint32)[:, np.newaxis]
    bits = key * _SALT >> np.uint32(27)
    words = np.uint32(1) << bits
    return words.astype("<u4", copy=False).view(np.uint64)


def _check_batches(table: U64, hashes: Buffer) -> Iterator[NDArray[np.bool_]]:
    """Check, per batch of hashes, whether the block of each has all the bits of its mask."""
    every = np.frombuffer(buffers.hashes_of(hashes), np.uint64)
    for batch in _batches(len(every)):
        h = every[batch]
        blocks = table[_block_index(h, len(table))]
        missing = _masks(h) & ~blocks
        yield (missing[:, 0] | missing[:, 1] | missing[:, 2] | missing[:, 3]) == 0
