"""Size of Paimon's filters, as the constructor `BloomFilter64(long items, double fpp)` computes it.

The arithmetic is Java's: casting a double to `int` truncates and saturates, `int` sums wrap around, and `%` takes the sign of the dividend.
At an fpp of one in a million, ten million items therefore work, but a hundred million give a negative array size; an `fpp` below zero
becomes NaN and gives the smallest filter. This module reproduces all of this, so that filters have exactly the size that Paimon gives them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon.bloom64_spec import to_int32

DEFAULT_ITEMS = 1_000_000
"""Paimon's default for `file-index.bloom-filter.<column>.items`: 599,067 bytes of bits per data file."""
DEFAULT_FPP = 0.1
"""Paimon's default for `file-index.bloom-filter.<column>.fpp`."""

_INT_MAX = (1 << 31) - 1
_LONG_MAX = (1 << 63) - 1


class FilterShape(NamedTuple):
    """Shape of a filter: `num_bits` (a multiple of 8) and `num_hash_functions` (k, at least 1)."""

    num_bits: int
    num_hash_functions: int


def compute_sizing(items: int, fpp: float) -> FilterShape:
    """Compute the shape that Paimon gives a filter for `items` expected distinct values and a target false-positive rate.

    Raises UsageError if Paimon's own constructor throws an exception: the size overflows, or the numbers are invalid.
    """
    if not -_LONG_MAX - 1 <= items <= _LONG_MAX:
        raise UsageError(f"items must fit in a 64-bit integer, not {items}")
    ln2 = math.log(2)
    raw_num_bits = _int_of(float(-items) * _log(fpp) / (ln2 * ln2))
    num_bits = to_int32(raw_num_bits + 8 - int(math.fmod(raw_num_bits, 8)))  # a multiple of 8 grows by 8, as in Paimon
    if num_bits < 0:
        message = f"the filter size that Paimon computes for {items} items at fpp {fpp!r} overflows or is negative"
        raise UsageError(message, hint="use fewer items or a larger fpp")
    per_item = num_bits / float(items) if items else math.inf if num_bits else math.nan
    return FilterShape(num_bits, max(1, to_int32(_round(per_item * ln2))))


def _log(value: float) -> float:
    """Compute Java's Math.log: NaN below zero, minus infinity at zero."""
    if value > 0:
        return math.log(value)
    return -math.inf if value == 0 else math.nan


def _int_of(value: float) -> int:
    """Cast as Java's `(int) double`: NaN becomes 0, the fraction is truncated, values out of range are clamped."""
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
