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


def describe() -> str:
    return "numpy"


def hash_fixed(values: Buffer, width: int) -> memoryview:
    view, count = buffers.rows(values, width)
    hashes = np.empty(count, np.uint64)
    if count < _FEW:
        for i in range(count):
            hashes[i] = xxhash.xxh64_intdigest(view[i * width : (i + 1) * width])
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
    if len(lengths) and lengths[0] and (lengths == lengths[0]).all():
        return hash_fixed(view[places[0] : places[-1]], int(lengths[0]))
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
        table[block[first]] |= np.bitwise_or.reduceat(_masks(h), first, axis=0)


def check(bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
    table = _table(buffers.blocks(bitset, num_blocks))
    return b"".join(matches.tobytes() for matches in _check_batches(table, hashes))


def count_missing(bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
    table = _table(buffers.blocks(bitset, num_blocks))
    return sum(
        len(matches) - int(np.count_nonzero(matches)) for matches in _check_batches(table, hashes)
    )


def fold(bitset: Buffer, num_blocks: int) -> bytearray:
    pairs = np.frombuffer(buffers.even_blocks(bitset, num_blocks), np.uint64).reshape(-1, 2, 4)
    folded = bytearray(num_blocks // 2 * buffers.BLOCK_BYTES)
    np.bitwise_or(pairs[:, 0], pairs[:, 1], out=np.frombuffer(folded, np.uint64).reshape(-1, 4))
    return folded


def measure(bitset: Buffer, num_blocks: int) -> tuple[int, int]:
    table = np.frombuffer(buffers.blocks(bitset, num_blocks), np.uint32).reshape(
        num_blocks, WORDS_PER_BLOCK
    )
    bits_set = products = 0
    for start in range(0, num_blocks, _BLOCKS_AT_ONCE):
        counts = _count_bits(table[start : start + _BLOCKS_AT_ONCE])
        bits_set += int(counts.sum(dtype=np.uint64))
        # A product is at most 32^8 = 2^40, so a sum of 2^12 of them stays far below 2^64.
        products += int(counts.prod(axis=1, dtype=np.uint64).sum())
    return bits_set, products


def _count_bits(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Count the bits set in each word, in parallel in fields of 2, 4 and 8 bits (Hacker's Delight,
    5-1); numpy 1 has no `bitwise_count`."""
    counts = words - ((words >> np.uint32(1)) & np.uint32(0x55555555))
    counts = (counts & np.uint32(0x33333333)) + ((counts >> np.uint32(2)) & np.uint32(0x33333333))
    sums: NDArray[np.uint32] = (
        ((counts + (counts >> np.uint32(4))) & np.uint32(0x0F0F0F0F)) * np.uint32(0x01010101)
    ) >> np.uint32(24)
    return sums


# --- Hashing ---


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, _BATCH):
        yield slice(start, min(start + _BATCH, count))


def _as_hashes(hashes: U64) -> memoryview:
    # numpy calls the type "L" if a C long has 64 bits; the interface requires "Q" everywhere.
    return hashes.data.cast("B").cast("Q")


def _hash_spans(view: memoryview, spans: Iterator[tuple[int, int]]) -> memoryview:
    digest = xxhash.xxh64_intdigest
    return _as_hashes(np.fromiter((digest(view[start:end]) for start, end in spans), np.uint64))


def _rotate_left(x: U64, bits: int) -> U64:
    return x << np.uint64(bits) | x >> np.uint64(64 - bits)


def _round(accumulator: U64 | np.uint64, lane: U64) -> U64:
    return _rotate_left(accumulator + lane * _P2, 31) * _P1


def _column(table: U8, at: int, dtype: str) -> U64:
    """Read the integers of type `dtype` at byte `at` of each row, widened to 64 bits."""
    size = np.dtype(dtype).itemsize
    column: U64 = (
        np.ascontiguousarray(table[:, at : at + size])
        .view(dtype)[:, 0]
        .astype(np.uint64, copy=False)
    )
    return column


def _xxh64_rows(table: U8) -> U64:
    """Hash each row with XXH64, seed 0; the steps are those of `spec.xxh64`, each for all rows at
    once."""
    count, width = table.shape
    position = 0
    if width < 32:
        h = np.full(count, _P5, np.uint64)
    else:
        # The scalar sums wrap, as the specification requires; numpy would warn about it.
        starts = ((int(_P1) + int(_P2)) % 2**64, int(_P2), 0, -int(_P1) % 2**64)
        lanes = [np.full(count, start, np.uint64) for start in starts]
        while width - position >= 32:
            lanes = [
                _round(lane, _column(table, position + 8 * i, "<u8"))
                for i, lane in enumerate(lanes)
            ]
            position += 32
        h = (
            _rotate_left(lanes[0], 1)
            + _rotate_left(lanes[1], 7)
            + _rotate_left(lanes[2], 12)
            + _rotate_left(lanes[3], 18)
        )
        for lane in lanes:
            h = (h ^ _round(np.uint64(0), lane)) * _P1 + _P4
    h = h + np.uint64(width)
    while width - position >= 8:
        h = _rotate_left(h ^ _round(np.uint64(0), _column(table, position, "<u8")), 27) * _P1 + _P4
        position += 8
    if width - position >= 4:
        h = _rotate_left(h ^ _column(table, position, "<u4") * _P1, 23) * _P2 + _P3
        position += 4
    for at in range(position, width):
        h = _rotate_left(h ^ _column(table, at, "u1") * _P5, 11) * _P1
    h = (h ^ h >> np.uint64(33)) * _P2
    h = (h ^ h >> np.uint64(29)) * _P3
    return h ^ h >> np.uint64(32)


# --- Blocks: a table of z rows, each of eight words, in pairs as 64 bits ---


def _table(blocks: memoryview) -> U64:
    return np.frombuffer(blocks, np.uint64).reshape(-1, 4)


def _block_index(h: U64, num_blocks: int) -> NDArray[np.int64]:
    return ((h >> np.uint64(32)) * np.uint64(num_blocks) >> np.uint64(32)).astype(np.int64)


def _masks(h: U64) -> U64:
    """Build the block in which each hash sets its bits, as rows of a table like the bitset's."""
    key = h.astype(np.uint32)[:, np.newaxis]
    words = np.uint32(1) << (key * _SALT >> np.uint32(27))
    return words.astype("<u4", copy=False).view(np.uint64)


def _check_batches(table: U64, hashes: Buffer) -> Iterator[NDArray[np.bool_]]:
    """Check, per batch of hashes, whether the block of each has all the bits of its mask."""
    every = np.frombuffer(buffers.hashes_of(hashes), np.uint64)
    for batch in _batches(len(every)):
        h = every[batch]
        missing = _masks(h) & ~table[_block_index(h, len(table))]
        yield (missing[:, 0] | missing[:, 1] | missing[:, 2] | missing[:, 3]) == 0
