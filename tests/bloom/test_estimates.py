"""Estimates against measurements: FPPs and counts of filters built from random hashes, with fixed seeds.

Bounds are five standard deviations, those of the counts measured once over two hundred filters: about 5 % / sqrt(blocks), and more
when few bits are left unset.
"""

from __future__ import annotations

import math
import random
from array import array

import pytest

from sbbf_tool.bloom import kernels
from sbbf_tool.bloom.filter import BloomFilter
from support.tables import each


@pytest.fixture(autouse=True)
def fast_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels agree on every bit, and millions of hashes would take the slow one minutes."""
    if kernels.name() == "spec":
        monkeypatch.setattr(kernels, "_get_choice", lambda: (kernels.load("numpy"), ""))


def some_hashes(count: int, seed: int) -> array[int]:
    return array("Q", random.Random(seed).randbytes(8 * count))


def build(num_bytes: int, ndv: int, seed: int = 1) -> BloomFilter:
    bloom = BloomFilter.empty(num_bytes)
    bloom.insert_hashes(some_hashes(ndv, seed))
    return bloom


@each("per_block", [8, 25, 100])
@each("num_bytes", [1000, 1 << 14])
def test_absent_values_pass_as_often_as_the_fpp_states(num_bytes: int, per_block: int) -> None:
    bloom = build(num_bytes, per_block * (num_bytes // 32))
    queries = 100_000
    hits = queries - bloom.count_missing(some_hashes(queries, seed=2))
    deviation = math.sqrt(queries * bloom.fpp * (1 - bloom.fpp))
    assert abs(hits - queries * bloom.fpp) < 5 * deviation + 1


@each("per_block", [0.1, 5, 25, 50, 100, 150])
@each("num_blocks", [31, 1024])
def test_the_fill_ratio_estimates_the_count(num_blocks: int, per_block: float) -> None:
    ndv = round(num_blocks * per_block)
    estimate = build(32 * num_blocks, ndv).estimated_ndv
    assert estimate == pytest.approx(ndv, rel=0.04 if per_block > 100 else 5 * 0.09 / math.sqrt(num_blocks))
