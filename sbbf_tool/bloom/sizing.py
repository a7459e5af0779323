"""A filter's size, its number of distinct values and its FPP, each computed from the other two.

Source: parquet-format BloomFilter.md, "Sizing an SBBF", whose table and examples the tests
reproduce. The specification calls it "not a simple closed-form calculation"; its table results from
the following. Each of z blocks receives k of n values, where k is Poisson-distributed with mean n /
z. In such a block, a given bit of a word is set with probability 1 - (31/32)^k, and a value that
was never inserted finds all of its eight bits set with the eighth power of that probability. The
FPP is the mean over k. (With only two or three blocks, k varies slightly less than a Poisson
variable, so the true FPP is somewhat lower, which is safe.)

FPPs are fractions (0.01 is one in a hundred); sizes are bytes of the bitset, without its header.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil, comb, exp, floor, log1p, log10, sqrt

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.errors import UsageError

MIN_BYTES = 64
"""The smallest size to write: Impala reads a filter of 32 bytes as two blocks."""
MAX_BYTES = 128 * 1024 * 1024
"""The largest size to write: parquet-java, Arrow C++ and Velox reject larger ones."""

SATURATED_FPP = 0.5
"""A filter with a higher FPP, which excludes fewer than half of the absent values, is called
saturated."""

NEAR = 3
"""The FPP at half of a size is near the target if it is at most this many times as high."""

MOST_VALUES = (1 << 63) - 1
"""The largest number of values that a footer can state."""

_KEEP = 31 / 32  # probability that one insertion leaves a given bit of a word unset

# From this many values per block on, fpp_of uses the closed form; below it, the sum.
_CROSSOVER = 32.0


def fpp_of(ndv: float, num_bytes: int) -> float:
    """Return the expected FPP of a filter of `num_bytes` bytes that holds `ndv` distinct values.

    `num_bytes` need not be a power of two, nor a multiple of 32. Raises UsageError below 32 bytes
    or for a negative count.
    """
    if num_bytes < BLOCK_BYTES:
        raise UsageError(f"a filter has at least {BLOCK_BYTES} bytes, not {num_bytes}")
    if not ndv >= 0:
        raise UsageError(f"ndv must be at least 0, not {ndv}")
    return _fpp_at(ndv / (num_bytes // BLOCK_BYTES))


def _fpp_at(mean: float) -> float:
    """Return the FPP of blocks that hold `mean` values on average."""
    return _sum(mean) if mean < _CROSSOVER else _closed_form(mean)


def _sum(mean: float) -> float:
    """Sum the mean over k term by term. No term is negative, so the sum is exact however small the
    FPP is."""
    total = 0.0
    chance = exp(-mean)
    keep = 1.0
    # More than 16 standard deviations: terms after that are smaller than a rounding error.
    for k in range(1, int(mean + 16 * sqrt(mean)) + 32):
        chance *= mean / k
        keep *= _KEEP
        total += chance * (1.0 - keep) ** 8
    return total


def _closed_form(mean: float) -> float:
    """Compute the same mean with the eighth power expanded: the mean of x^k over a
    Poisson-distributed k is exp(-mean * (1 - x)).

    Signs alternate and terms reach 70, so the absolute error is about 1e-14: negligible for FPPs of
    percents, too large for FPPs of 1e-13. Nine terms suffice however full the filter is.
    """
    total = 1.0 + sum((-1.0) ** j * comb(8, j) * exp(-mean * (1.0 - _KEEP**j)) for j in range(1, 9))
    return min(total, 1.0)


def bytes_for(ndv: float, fpp: float) -> int:
    """Return the smallest power of two from 64 bytes to 128 MiB whose FPP with `ndv` values is at
    most `fpp`.

    Returns 128 MiB even if that is not enough: compare with `fpp_of`. Raises UsageError if no
    filter has such an FPP.
    """
    ensure_fpp(fpp)
    if not ndv >= 0:
        raise UsageError(f"ndv must be at least 0, not {ndv}")
    most = _most_values_per_block(fpp)
    size = MIN_BYTES
    while size < MAX_BYTES and ndv / (size // BLOCK_BYTES) > most:
        size *= 2
    return size


def fpp_of_half(ndv: float, num_bytes: int, fpp: float) -> float | None:
    """Return the FPP that a filter has at half of its size, rounded up to two digits; None if no
    such filter is written, or if its FPP is more than `NEAR` times the target `fpp`."""
    if num_bytes < 2 * MIN_BYTES:
        return None
    half_fpp = fpp_of(max(1.0, ndv), num_bytes // 2)
    if not fpp < half_fpp <= NEAR * fpp:
        return None
    unit = 10.0 ** (floor(log10(half_fpp)) - 1)
    return round(ceil(half_fpp / unit) * unit, 15)


@lru_cache(maxsize=64)
def _most_values_per_block(fpp: float) -> float:
    """Return the largest mean number of values per block whose FPP is at most `fpp`."""
    least = 0.0
    most = 1.0
    while _fpp_at(most) <= fpp:
        least = most
        most *= 2
    while (middle := (least + most) / 2) not in (least, most):
        if _fpp_at(middle) <= fpp:
            least = middle
        else:
            most = middle
    return least


def most_values(num_bytes: int, fpp: float) -> int:
    """Return the largest number of distinct values with which a filter of `num_bytes` bytes has at
    most this FPP. Raises UsageError."""
    ensure_fpp(fpp)
    least = 0
    most = 1
    while fpp_of(most, num_bytes) <= fpp:
        least = most
        most *= 2
    while most - least > 1:
        middle = (least + most) // 2
        if fpp_of(middle, num_bytes) <= fpp:
            least = middle
        else:
            most = middle
    return least


def bits_per_value(fpp: float) -> float:
    """Return the bits per value with which a filter has this FPP: 10.53 for 1 %. It is the inverse
    of `fpp_of_bits`."""
    return 8 * BLOCK_BYTES / _most_values_per_block(fpp)


def fpp_of_bits(bits: float) -> float:
    """Return the FPP of a filter of many blocks with this many bits per value."""
    return _fpp_at(8 * BLOCK_BYTES / bits)


def formula_bits_per_value(fpp: float) -> float:
    """Return the bits per value by the closed formula of the first draft: 9.68 for 1 %, which is
    too few.

    The formula is that of an ordinary Bloom filter with eight hash functions, whose values are not
    confined to blocks. parquet-java, Arrow C++, arrow-rs and DuckDB still size by it.
    """
    return -8 / log1p(-(fpp ** (1 / 8)))


def formula_bytes(ndv: float, fpp: float) -> int:
    """Return the size that a writer chooses by the closed formula of the first draft: the next
    power of two, from 32 bytes to 128 MiB."""
    size = BLOCK_BYTES
    while size < MAX_BYTES and size * 8 < ndv * formula_bits_per_value(fpp):
        size *= 2
    return size


LEAST_FPP = fpp_of(1, MAX_BYTES)
"""The lowest FPP of a filter that may be written: the FPP of the largest one with a single
value."""


def ensure_fpp(fpp: float) -> None:
    """Ensure that some filter can have the FPP `fpp`. Raises UsageError."""
    if not hasattr(fpp, "__float__"):
        raise UsageError(f"fpp must be a number, not {fpp!r}")
    if not 0.0 < fpp < 1.0:
        raise UsageError(
            f"fpp must be above 0 and below 1, not {fpp}", hint="0.01 is one in a hundred"
        )
    if fpp < LEAST_FPP:
        hint = f"that is the FPP of the largest filter, {MAX_BYTES >> 20} MiB, with one value"
        raise UsageError(f"fpp must be at least {LEAST_FPP:.2g}, not {fpp}", hint=hint)
