"""Size, count and FPP: the specification's own figures, and each of the three computed from the
other two."""

from __future__ import annotations

import math
import random
from array import array
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.bloom import kernels, sizing
from sbbf_tool.bloom.block_bits import count_blocks_by_bits, expect_blocks_by_bits
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UsageError
from support.tables import each

MIB = 1 << 20


@each(
    "bits_per_value, percent, digits",
    [
        (5, 17.9, 1),
        (6, 9.93, 2),
        (10, 1.26, 2),
        (10.5, 1.01, 2),
        (16.9, 0.0997, 4),
        (20, 0.0420, 4),
        (26.4, 0.0099, 4),
        (41, 0.0010, 4),
    ],
)
def test_the_table_of_the_specification(bits_per_value: float, percent: float, digits: int) -> None:
    """BloomFilter.md, "Sizing an SBBF", rounds to 10, 1, 0.1, 0.01, 0.001 %, and in its text to 18,
    1.26 and 0.04 %."""
    assert round(100 * sizing.fpp_of(8 * MIB / bits_per_value, MIB), digits) == percent


def exact_fpp(mean: Fraction, terms: int) -> float:
    """The sum over k in fractions, so that no digit is lost but by exp(-mean)."""
    total, weight = Fraction(0), Fraction(1)
    for k in range(terms):
        total += weight * (1 - Fraction(31, 32) ** k) ** 8
        weight *= mean / (k + 1)
    return math.exp(-mean) * float(total)


@each("mean", ["1/1000", "1", "8", "25", "31", "33", "60"])
def test_no_digits_are_lost(mean: str) -> None:
    """Tiny rates come from a sum, large ones from a formula that cancels; both match the sum in
    fractions."""
    per_block = Fraction(mean)
    expected = exact_fpp(per_block, 40 + 4 * int(per_block))
    assert sizing.fpp_of(float(per_block * 1024), 32 * 1024) == pytest.approx(expected, rel=1e-11)


@given(st.integers(0, 10**8), st.floats(1e-6, 0.9))
def test_bytes_for_is_the_smallest_power_of_two_that_does(ndv: int, fpp: float) -> None:
    size = sizing.bytes_for(ndv, fpp)
    assert size.bit_count() == 1
    assert sizing.MIN_BYTES <= size <= sizing.MAX_BYTES
    assert sizing.fpp_of(ndv, size) <= fpp or size == sizing.MAX_BYTES
    assert size == sizing.MIN_BYTES or sizing.fpp_of(ndv, size // 2) > fpp


def test_what_is_out_of_range_is_refused() -> None:
    for attempt, arguments, message in [
        *(
            (sizing.bytes_for, (100, fpp), "fpp must be above 0 and below 1")
            for fpp in (0, 1, -0.1, 1.5, math.nan, math.inf)
        ),
        *((sizing.fpp_of, (ndv, 64), "ndv must be at least 0") for ndv in (-1, -0.5, math.nan)),
        *((sizing.fpp_of, (1, size), "a filter has at least") for size in (-64, 0, 31)),
    ]:
        with pytest.raises(UsageError, match=message):
            attempt(*arguments)


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
    assert estimate == pytest.approx(
        ndv, rel=0.04 if per_block > 100 else 5 * 0.09 / math.sqrt(num_blocks)
    )


@each("per_block", [0.2, 1, 8, 25, 100])
def test_blocks_have_as_many_bits_as_expected(per_block: float) -> None:
    num_blocks = 1 << 14
    ndv = round(num_blocks * per_block)
    expected = expect_blocks_by_bits(num_blocks, ndv)
    difference = [
        abs(number - share)
        for number, share in zip(
            count_blocks_by_bits(build(32 * num_blocks, ndv)), expected, strict=True
        )
    ]
    assert sum(expected) == pytest.approx(num_blocks, rel=1e-3)
    assert sum(difference) / num_blocks < 0.12
