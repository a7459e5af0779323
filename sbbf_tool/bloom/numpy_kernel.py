"""The kernel that needs no compiler: numpy for whatever has a fixed width, the xxhash package value by value for the rest.

Same interface and same bits as `spec`, which says what is computed and after which paragraphs; this module only says how. Work is
done in batches whose intermediate arrays stay in the processor's caches.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash

from sbbf_tool.bloom import buffers
from sbbf_tool.bloom.spec import SALT, WORDS_PER_BLOCK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    U8 = NDArray[np.uint8]
    U32 = NDArray[np.uint32]
    U64 = NDArray[np.uint64]

NAME = "numpy"

_BATCH = 1 << 14
_BLOCKS_AT_ONCE = 1 << 15

# Below this many values per call, one call into xxhash for each costs less than numpy's overhead per operation.
_FEW = 32

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)


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
    lengths = np.diff(np.frombuffer(places, np.int32 if offset_width == 4 else np.int64))
    if not len(lengths):
        return _as_hashes(np.empty(0, np.uint64))
    if lengths.min() < 0:
        raise ValueError(buffers.OFFSETS_DECREASE)
    if lengths[0] > 0 and (lengths == lengths[0]).all():  # strings of one length, as UUIDs are
        return hash_fixed(view[places[0] : places[-1]], int(lengths[0]))
    return _hash_spans(view, pairwise(places), len(lengths))


def hash_length_prefixed(page: Buffer, count: int) -> memoryview:
    view = buffers.flat(page)
    return _hash_spans(view, buffers.prefixed_spans(view, count), max(count, 0))


def insert(bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
    words = np.frombuffer(buffers.writable_blocks(bitset, num_blocks), "<u4")
    for first_word, key in _located(num_blocks, hashes):
        for i, salt in enumerate(SALT):
            _set_bits(words, first_word + np.uint64(i), _bit(key, salt))


def check(bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
    words = np.frombuffer(buffers.blocks(bitset, num_blocks), "<u4")
    return b"".join(_found(words, first_word, key).tobytes() for first_word, key in _located(num_blocks, hashes))


def count_missing(bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
    words = np.frombuffer(buffers.blocks(bitset, num_blocks), "<u4")
    return sum(len(key) - int(np.count_nonzero(_found(words, first_word, key))) for first_word, key in _located(num_blocks, hashes))


def fold(bitset: Buffer, num_blocks: int) -> bytearray:
    pairs = np.frombuffer(buffers.even_blocks(bitset, num_blocks), np.uint64).reshape(-1, 2, 4)
    folded = bytearray(num_blocks // 2 * buffers.BLOCK_BYTES)
    np.bitwise_or(pairs[:, 0], pairs[:, 1], out=np.frombuffer(folded, np.uint64).reshape(-1, 4))
    return folded


def measure(bitset: Buffer, num_blocks: int) -> tuple[int, int]:
    table = np.frombuffer(buffers.blocks(bitset, num_blocks), np.uint32).reshape(num_blocks, WORDS_PER_BLOCK)
    bits_set = products = 0
    for start in range(0, num_blocks, _BLOCKS_AT_ONCE):
        counts = np.bitwise_count(table[start : start + _BLOCKS_AT_ONCE])
        bits_set += int(counts.sum(dtype=np.uint64))
        # A product is at most 32^8 = 2^40, so a sum of 2^15 of them stays far below 2^64.
        products += int(counts.prod(axis=1, dtype=np.uint64).sum())
    return bits_set, products


# --- Hashing ---


def _batches(count: int) -> Iterator[slice]:
    for start in range(0, count, _BATCH):
        yield slice(start, min(start + _BATCH, count))


def _as_hashes(hashes: U64) -> memoryview:
    # numpy calls the type "L" where a C long has 64 bits; the interface promises "Q" everywhere.
    return hashes.data.cast("B").cast("Q")


def _hash_spans(view: memoryview, spans: Iterator[tuple[int, int]], count: int) -> memoryview:
    digest = xxhash.xxh64_intdigest
    return _as_hashes(np.fromiter((digest(view[start:end]) for start, end in spans), np.uint64))


def _rotate_left(x: U64, bits: int) -> U64:
    return x << np.uint64(bits) | x >> np.uint64(64 - bits)


def _round(accumulator: U64 | np.uint64, lane: U64) -> U64:
    return _rotate_left(accumulator + lane * _P2, 31) * _P1


def _column(table: U8, at: int, dtype: str) -> U64:
    """The integers of type `dtype` that stand at byte `at` of each row, widened to 64 bits."""
    size = np.dtype(dtype).itemsize
    column: U64 = np.ascontiguousarray(table[:, at : at + size]).view(dtype)[:, 0].astype(np.uint64, copy=False)
    return column


def _xxh64_rows(table: U8) -> U64:
    """XXH64, seed 0, of each row; the steps are those of `spec.xxh64`, each done for all rows at once."""
    count, width = table.shape
    position = 0
    if width < 32:
        h = np.full(count, _P5, np.uint64)
    else:
        # The scalar sums wrap, which numpy would warn of; the specification means them to.
        starts = ((int(_P1) + int(_P2)) % 2**64, int(_P2), 0, -int(_P1) % 2**64)
        lanes = [np.full(count, start, np.uint64) for start in starts]
        while width - position >= 32:
            lanes = [_round(lane, _column(table, position + 8 * i, "<u8")) for i, lane in enumerate(lanes)]
            position += 32
        h = _rotate_left(lanes[0], 1) + _rotate_left(lanes[1], 7) + _rotate_left(lanes[2], 12) + _rotate_left(lanes[3], 18)
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


# --- Blocks ---


def _located(num_blocks: int, hashes: Buffer) -> Iterator[tuple[U64, U32]]:
    """Per batch of hashes: the index of the first word of each one's block, and the lower 32 bits, which make the mask."""
    every: U64 = np.frombuffer(buffers.hashes_of(hashes), np.uint64)
    for batch in _batches(len(every)):
        h = every[batch]
        block = (h >> np.uint64(32)) * np.uint64(num_blocks) >> np.uint64(32)
        yield block * np.uint64(WORDS_PER_BLOCK), h.astype(np.uint32)


def _bit(key: U32, salt: int) -> U32:
    return np.uint32(1) << (key * np.uint32(salt) >> np.uint32(27))


def _set_bits(words: NDArray[Any], index: U64, bit: U32) -> None:
    """words[index] |= bit, where an index may occur more than once."""
    # Of several bits for one word in a batch the last one written wins. So write, look which are missing, and write those again:
    # every pass settles at least one bit of every word concerned. Much faster than np.bitwise_or.at when collisions are few.
    while len(index):
        words[index] |= bit
        missing = words[index] & bit == 0
        index, bit = index[missing], bit[missing]


def _found(words: NDArray[Any], first_word: U64, key: U32) -> NDArray[np.bool_]:
    found = np.ones(len(key), np.bool_)
    for i, salt in enumerate(SALT):
        found &= words[first_word + np.uint64(i)] & _bit(key, salt) != 0
    return found
