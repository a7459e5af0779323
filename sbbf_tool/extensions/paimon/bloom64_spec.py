"""Paimon's filter, its size and its integer hash in plain ints: slow and simple, as the reference
in the tests of every fast kernel.

Transcribed from utils/BloomFilter64.java and fileindex/bloomfilter/FastHash.java. The arithmetic is
Java's: `int` and `long` wrap around, casting a double to `int` truncates and saturates, and `%`
takes the sign of the dividend. At an fpp of one in a million, ten million items therefore work, but
a hundred million give a negative array size; an `fpp` below zero becomes NaN and gives the smallest
filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from sbbf_tool.errors import UsageError

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
    """Compute FastHash.getLongHash: Thomas Wang's 64-bit mix of a signed long.

    The hash is an unsigned number. Right shifts keep the sign.
    """
    key = to_int64(~key + (key << 21))
    key = key ^ (key >> 24)
    key = to_int64(key + (key << 3) + (key << 8))
    key = key ^ (key >> 14)
    key = to_int64(key + (key << 2) + (key << 4))
    key = key ^ (key >> 28)
    return (key + (key << 31)) & MASK64


def positions(hash64: int, num_hash_functions: int, num_bits: int) -> Iterator[int]:
    """Yield the bits of a hash: `h1 + i * h2` for i = 1..k, modulo `num_bits`.

    The sum is one of 32-bit arithmetic, and is inverted when it is negative.
    """
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
    for position in positions(hash64, num_hash_functions, len(bits) * 8):
        if not bits[position >> 3] & (1 << (position & 7)):
            return False
    return True


DEFAULT_ITEMS = 1_000_000
"""Paimon's default for `file-index.bloom-filter.<column>.items`: 599,067 bytes of bits per data
file."""
DEFAULT_FPP = 0.1
"""Paimon's default for `file-index.bloom-filter.<column>.fpp`."""

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1


def compute_sizing(items: int, fpp: float) -> tuple[int, int]:
    """Compute the bits and hash functions that Paimon gives a filter for `items` distinct values.

    The number of bits is a multiple of 8, and there is at least one hash function. Raises
    UsageError if Paimon's own constructor throws an exception: the size overflows, or the numbers
    are invalid.
    """
    if not -_LONG_MAX - 1 <= items <= _LONG_MAX:
        raise UsageError(f"items must fit in a 64-bit integer, not {items}")
    ln2 = math.log(2)
    raw_num_bits = _int_of(float(-items) * _log(fpp) / (ln2 * ln2))
    # A multiple of 8 grows by 8, as in Paimon.
    num_bits = to_int32(raw_num_bits + 8 - int(math.fmod(raw_num_bits, 8)))
    if num_bits < 0:
        raise UsageError(
            f"the filter size that Paimon computes for {items} items at fpp {fpp!r} "
            "overflows or is negative",
            hint="use fewer items or a larger fpp",
        )
    bits_per_item = _divide(num_bits, items)
    return num_bits, max(1, to_int32(_round(bits_per_item * ln2)))


def _divide(dividend: int, divisor: int) -> float:
    """Compute Java's division of doubles: infinity or NaN for a divisor of zero."""
    if divisor:
        return dividend / float(divisor)
    return math.inf if dividend else math.nan


def _log(value: float) -> float:
    """Compute Java's Math.log: NaN below zero, minus infinity at zero."""
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def _int_of(value: float) -> int:
    """Cast as Java's `(int) double`.

    NaN becomes 0, the fraction is truncated, and values out of range are clamped.
    """
    if math.isnan(value):
        return 0
    return int(max(-_INT_MAX - 1, min(_INT_MAX, value)))


def _round(value: float) -> int:
    """Compute Java's Math.round(double): floor of the exact value + 1/2, clamped to a long."""
    if math.isnan(value):
        return 0
    if math.isinf(value) or abs(value) >= _LONG_MAX:
        return _LONG_MAX if value > 0 else -_LONG_MAX - 1
    whole = math.floor(value)
    return whole + (value - whole >= 0.5)
