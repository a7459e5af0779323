"""The split-block Bloom filter in plain integers: the specification, transcribed. It is slow,
obvious, and the reference for others.

Source: parquet-format BloomFilter.md, "Technical Approach" (`mask`, `block_insert`, `block_check`,
`filter_insert`, `filter_check`, under the same names), and the document it cites for hashing, the
XXH64 part of xxHash's specification 0.1.1. This module is not optimized. To check another kernel,
compare it with this one; `SBBF_KERNEL=spec` runs the whole tool with it.

The second half of the module implements the kernel interface (`interface.Kernel`) with the first
half.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from sbbf_tool.bloom import buffers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from typing_extensions import Buffer

NAME = "spec"

BLOCK_BYTES = buffers.BLOCK_BYTES
WORDS_PER_BLOCK = 8
SALT = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)

_U32 = 0xFFFF_FFFF
_U64 = 0xFFFF_FFFF_FFFF_FFFF

# xxHash specification, "XXH64 Algorithm Description".
PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P1, _P2, _P3, _P4, _P5 = PRIMES


def _rotate_left(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & _U64


def _round(accumulator: int, lane: int) -> int:
    return _rotate_left((accumulator + lane * _P2) & _U64, 31) * _P1 & _U64


def _merge(h: int, lane: int) -> int:
    return ((h ^ _round(0, lane)) * _P1 + _P4) & _U64


def _avalanche(h: int) -> int:
    h = (h ^ h >> 33) * _P2 & _U64
    h = (h ^ h >> 29) * _P3 & _U64
    return h ^ h >> 32


def xxh64(data: Buffer, seed: int = 0) -> int:
    """Hash `data` with XXH64 to an unsigned 64-bit integer. Parquet uses seed 0."""
    data = bytes(data)
    position = 0

    def read(size: int) -> int:
        nonlocal position
        position += size
        return int.from_bytes(data[position - size : position], "little")

    # Steps 1 to 3: four accumulators over stripes of 32 bytes, then merged; a short input has no
    # stripes.
    if len(data) < 32:
        h = (seed + _P5) & _U64
    else:
        starts = (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)
        lanes = [start & _U64 for start in starts]
        while len(data) - position >= 32:
            lanes = [_round(lane, read(8)) for lane in lanes]
        rotated = map(_rotate_left, lanes, (1, 7, 12, 18))
        h = sum(rotated) & _U64
        for lane in lanes:
            h = _merge(h, lane)

    # Step 4: the length. Step 5: the remainder, by eights, then one four, then ones.
    h = (h + len(data)) & _U64
    while len(data) - position >= 8:
        lane = _round(0, read(8))
        h = (_rotate_left(h ^ lane, 27) * _P1 + _P4) & _U64
    if len(data) - position >= 4:
        four = read(4) * _P1 & _U64
        h = (_rotate_left(h ^ four, 23) * _P2 + _P3) & _U64
    while position < len(data):
        byte = read(1) * _P5 & _U64
        h = _rotate_left(h ^ byte, 11) * _P1 & _U64

    # Step 6.
    return _avalanche(h)


def mask(x: int) -> list[int]:
    """Build a block, as eight 32-bit words, in which each word has exactly one bit set. `x` is an
    unsigned 32-bit integer."""
    return [1 << ((x * salt & _U32) >> 27) for salt in SALT]


def block_insert(block: list[int], x: int) -> None:
    """Set the bits of `mask(x)` in `block`, eight 32-bit words."""
    for i, bit in enumerate(mask(x)):
        block[i] |= bit


def block_check(block: Sequence[int], x: int) -> bool:
    """Return whether every bit of `mask(x)` is set in `block`, eight 32-bit words."""
    return all(word & bit for word, bit in zip(block, mask(x), strict=True))


def block_index(h: int, num_blocks: int) -> int:
    """Return the block, 0 <= i < `num_blocks`, that the upper half of hash `h` selects. It starts
    at byte 32 * i of the bitset."""
    return ((h >> 32) * num_blocks) >> 32


def read_block(bitset: Buffer, i: int) -> list[int]:
    """Read block `i` of `bitset` as eight words; on disk a word is four bytes, little-endian."""
    start = i * BLOCK_BYTES
    raw = bytes(memoryview(bitset)[start : start + BLOCK_BYTES])
    return [int.from_bytes(raw[at : at + 4], "little") for at in range(0, BLOCK_BYTES, 4)]


def write_block(bitset: Buffer, i: int, block: Sequence[int]) -> None:
    """Write eight words to block `i` of a writable `bitset`."""
    raw = b"".join(word.to_bytes(4, "little") for word in block)
    start = i * BLOCK_BYTES
    memoryview(bitset)[start : start + BLOCK_BYTES] = raw


def filter_insert(bitset: Buffer, num_blocks: int, h: int) -> None:
    """Insert hash `h` into the first `num_blocks` blocks of a writable `bitset` of bytes."""
    i = block_index(h, num_blocks)
    block = read_block(bitset, i)
    block_insert(block, h & _U32)
    write_block(bitset, i, block)


def filter_check(bitset: Buffer, num_blocks: int, h: int) -> bool:
    """Return False when hash `h` was certainly never inserted into the first `num_blocks` blocks of
    `bitset`, else True."""
    block = read_block(bitset, block_index(h, num_blocks))
    return block_check(block, h & _U32)


# --- The kernel interface: interface.Kernel documents each function. ---


def describe() -> str:
    return "spec"


def hash_fixed(values: Buffer, width: int) -> memoryview:
    return _as_numbers(map(xxh64, _rows(values, width)))


def hash_variable(data: Buffer, offsets: Buffer, offset_width: int) -> memoryview:
    view, spans = _spans(data, offsets, offset_width)
    return _as_numbers(xxh64(view[start:end]) for start, end in spans)


def hash_length_prefixed(page: Buffer, count: int) -> memoryview:
    view = buffers.flat(page)
    spans = buffers.prefixed_spans(view, count)
    return _as_numbers(xxh64(view[start:end]) for start, end in spans)


def ends_length_prefixed(page: Buffer, count: int) -> memoryview:
    spans = buffers.prefixed_spans(buffers.flat(page), count)
    return _as_numbers(end for _, end in spans)


def extremes_fixed(values: Buffer, width: int, order: str) -> tuple[bytes, bytes] | None:
    key = buffers.key_of_order(order, width)
    return _extremes(map(bytes, _rows(values, width)), key)


def extremes_variable(
    data: Buffer, offsets: Buffer, offset_width: int
) -> tuple[bytes, bytes] | None:
    view, spans = _spans(data, offsets, offset_width)
    values = (bytes(view[start:end]) for start, end in spans)
    return _extremes(values, bytes)


def extremes_length_prefixed(page: Buffer, count: int) -> tuple[bytes, bytes] | None:
    view = buffers.flat(page)
    spans = buffers.prefixed_spans(view, count)
    values = (bytes(view[start:end]) for start, end in spans)
    return _extremes(values, bytes)


def _as_numbers(numbers: Iterable[int]) -> memoryview:
    return memoryview(array("Q", numbers))


def _rows(values: Buffer, width: int) -> Iterator[memoryview]:
    """Yield each of the values of `width` bytes. Raises at once if they are no such values."""
    view, count = buffers.rows(values, width)
    starts = range(0, count * width, width)
    return (view[start : start + width] for start in starts)


def _spans(
    data: Buffer, offsets: Buffer, offset_width: int
) -> tuple[memoryview, Iterable[tuple[int, int]]]:
    """View `data` as bytes, and pair start and end of each value in it."""
    view, places = buffers.offsets_in(data, offsets, offset_width)
    if any(start > end for start, end in pairwise(places)):
        raise ValueError(buffers.OFFSETS_DECREASE)
    return view, pairwise(places)


def _extremes(
    values: Iterable[bytes], key: Callable[[bytes], int | bytes]
) -> tuple[bytes, bytes] | None:
    extremes: tuple[bytes, bytes] | None = None
    for value in values:
        smallest, largest = extremes or (value, value)
        smallest = min(smallest, value, key=key)
        largest = max(largest, value, key=key)
        extremes = (smallest, largest)
    return extremes


def insert(bitset: Buffer, num_blocks: int, hashes: Buffer) -> None:
    view = buffers.writable_blocks(bitset, num_blocks)
    for h in buffers.hashes_of(hashes):
        filter_insert(view, num_blocks, h)


def check(bitset: Buffer, num_blocks: int, hashes: Buffer) -> bytes:
    view = buffers.blocks(bitset, num_blocks)
    answers = (filter_check(view, num_blocks, h) for h in buffers.hashes_of(hashes))
    return bytes(answers)


def count_missing(bitset: Buffer, num_blocks: int, hashes: Buffer) -> int:
    return check(bitset, num_blocks, hashes).count(0)


def fold(bitset: Buffer, num_blocks: int) -> bytearray:
    view = buffers.even_blocks(bitset, num_blocks)
    folded = bytearray(len(view) // 2)
    for i in range(num_blocks // 2):
        even = read_block(view, 2 * i)
        odd = read_block(view, 2 * i + 1)
        union = [a | b for a, b in zip(even, odd, strict=True)]
        write_block(folded, i, union)
    return folded


def measure(bitset: Buffer, num_blocks: int) -> tuple[int, int]:
    view = buffers.blocks(bitset, num_blocks)
    bits_set = 0
    products = 0
    for i in range(num_blocks):
        counts = [word.bit_count() for word in read_block(view, i)]
        bits_set += sum(counts)
        products += prod(counts)
    return bits_set, products
