"""Bits set in each block of a filter: how many blocks have how many, and how many would have with
values that hash evenly.

A filter whose bits are not those of its values often differs here: many empty blocks, all blocks
alike, or blocks that are full.
"""

from __future__ import annotations

from math import erf, exp, sqrt

from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.filter import BloomFilter

BLOCK_BITS = BLOCK_BYTES * 8
_WORD_BITS = 32
_WORDS = 8
_STEP = 1 << 16
"""Blocks to count at the same time."""


def count_blocks_by_bits(bloom: BloomFilter) -> list[int]:
    """Return the number of blocks with 0, 1, ... 256 bits set."""
    import numpy as np

    ones = np.array([value.bit_count() for value in range(256)], np.uint8)
    data = np.frombuffer(bloom.bitset, np.uint8, bloom.num_blocks * BLOCK_BYTES)
    counts = np.zeros(BLOCK_BITS + 1, np.int64)
    step_bytes = _STEP * BLOCK_BYTES
    for start in range(0, len(data), step_bytes):
        ones_of_bytes = ones[data[start : start + step_bytes]]
        blocks = ones_of_bytes.reshape(-1, BLOCK_BYTES)
        bits_set = blocks.sum(axis=1, dtype=np.int64)
        counts += np.bincount(bits_set, minlength=len(counts))
    return list(map(int, counts))


def expect_blocks_by_bits(num_blocks: int, ndv: float) -> list[float]:
    """Return the expected number of blocks with 0, 1, ... 256 bits set, if `ndv` distinct values
    hash evenly.

    The number of values k of a block is Poisson-distributed. k values set one of 32 bits each in 8
    words, so that the bits set are nearly normal with the mean and the variance of eight occupancy
    problems.
    """
    mean = ndv / num_blocks
    expected = [0.0] * (BLOCK_BITS + 1)
    chance = exp(-mean)
    most_values = mean + 10 * sqrt(mean)
    for k in range(int(most_values) + 12):
        if k:
            chance *= mean / k
        if chance > 1e-9:
            _add_blocks_of(k, chance * num_blocks, expected)
    return expected


def _add_blocks_of(k: int, blocks: float, expected: list[float]) -> None:
    """Add the blocks that hold k values."""
    keep = (31 / 32) ** k
    keep_two = (30 / 32) ** k
    center = _WORDS * _WORD_BITS * (1 - keep)
    unset_bits = _WORD_BITS * keep
    unset_pairs = _WORD_BITS * 31 * keep_two
    variance = _WORDS * (unset_pairs + unset_bits - unset_bits**2)
    deviation = sqrt(max(variance, 0.0))
    if deviation < 0.3:
        expected[round(center)] += blocks
        return

    def share_below(bits: int) -> float:
        distance = bits - 0.5 - center
        return 0.5 * (1 + erf(distance / deviation / sqrt(2)))

    first = max(0, int(center - 6 * deviation))
    last = min(BLOCK_BITS, int(center + 6 * deviation) + 1)
    for bits in range(first, last + 1):
        share = share_below(bits + 1) - share_below(bits)
        expected[bits] += blocks * share
