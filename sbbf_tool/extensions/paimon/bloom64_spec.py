"""Paimon's filter and its integer hash in plain ints: slow and simple, as the reference in the tests of every fast kernel.

Transcribed from utils/BloomFilter64.java and fileindex/bloomfilter/FastHash.java, whose `int` and `long` wrap around. The
tool itself calls only `to_int32`.
"""

from __future__ import annotations

from collections.abc import Iterator

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1


def to_int32(value: int) -> int:
    """Cast as Java's `(int) value`: the low 32 bits, signed."""
    low = value & MASK32
    return low - (1 << 32) if low >> 31 else low


def to_int64(value: int) -> int:
    """Cast as Java's `(long) value`: the low 64 bits, signed."""
    low = value & MASK64
    return low - (1 << 64) if low >> 63 else low


def wang_hash(key: int) -> int:
    """Compute FastHash.getLongHash: Thomas Wang's 64-bit mix of a signed long, as an unsigned number. Right shifts keep the sign."""
    key = to_int64(~key + (key << 21))
    key = key ^ (key >> 24)
    key = to_int64(key + (key << 3) + (key << 8))
    key = key ^ (key >> 14)
    key = to_int64(key + (key << 2) + (key << 4))
    key = key ^ (key >> 28)
    return (key + (key << 31)) & MASK64


def positions(hash64: int, num_hash_functions: int, num_bits: int) -> Iterator[int]:
    """Yield the bits of a hash: `h1 + i * h2` for i = 1..k in 32-bit arithmetic, inverted when negative, modulo `num_bits`."""
    h1 = to_int32(hash64)
    h2 = to_int32(hash64 >> 32)
    for i in range(1, num_hash_functions + 1):
        position = to_int32(h1 + to_int32(i * h2))
        if position < 0:
            position = ~position
        yield position % num_bits


def insert(bits: bytearray, num_hash_functions: int, hash64: int) -> None:
    """Set the bits of a hash, lowest bit of a byte first."""
    for position in positions(hash64, num_hash_functions, len(bits) * 8):
        bits[position >> 3] |= 1 << (position & 7)


def contains(bits: bytes | bytearray, num_hash_functions: int, hash64: int) -> bool:
    """Return whether every bit of a hash is set."""
    return all(bits[p >> 3] & (1 << (p & 7)) for p in positions(hash64, num_hash_functions, len(bits) * 8))
