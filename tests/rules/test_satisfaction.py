"""The judgment of an existing filter: what a request accepts, and that it accepts what is built for
it."""

from __future__ import annotations

import struct

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.rules.satisfaction import BROKEN, SATISFIED, TOO_LARGE, WEAKER, judge_filter
from support.tables import each

VALUES = 500


def make_filter(num_bytes: int, values: int = VALUES) -> BloomFilter:
    bloom = BloomFilter.empty(num_bytes)
    for value in range(values):
        bloom.insert_hash(hash_value(struct.pack("<q", value)))
    return bloom


ENOUGH = sizing.bytes_for(VALUES, 0.01)


@each(
    "num_bytes, target, outcome, is_limited",
    [
        (ENOUGH, Sizing(0.01), SATISFIED, False),
        (ENOUGH // 2, Sizing(0.01), WEAKER, False),
        (ENOUGH * 4, Sizing(0.01), SATISFIED, False),
        (ENOUGH * 8, Sizing(0.01), TOO_LARGE, False),
        (ENOUGH * 8 + 32, Sizing(0.01), TOO_LARGE, False),
        # A limit on the size.
        (ENOUGH // 4, Sizing(0.01, max_bytes=ENOUGH // 4), SATISFIED, True),
        (ENOUGH // 4, Sizing(0.01, max_bytes=ENOUGH // 2 - 1), SATISFIED, True),
        (ENOUGH // 8, Sizing(0.01, max_bytes=ENOUGH // 4), WEAKER, False),
        (ENOUGH // 2, Sizing(0.01, max_bytes=ENOUGH // 4), TOO_LARGE, False),
        # A size that the request states.
        (sizing.bytes_for(100_000, 0.01), Sizing(0.01, ndv=100_000), SATISFIED, False),
        (sizing.bytes_for(100_000, 0.01) * 8, Sizing(0.01, ndv=100_000), TOO_LARGE, False),
        (ENOUGH, Sizing(0.01, ndv=100_000), SATISFIED, False),
        (sizing.bytes_for(100, 0.01), Sizing(0.01, ndv=100), SATISFIED, True),
        (sizing.bytes_for(50, 0.01), Sizing(0.01, ndv=100), WEAKER, False),
    ],
)
def test_outcomes(num_bytes: int, target: Sizing, outcome: str, is_limited: bool):
    judgment = judge_filter(make_filter(num_bytes), target, VALUES)
    assert (judgment.outcome, judgment.is_limited) == (outcome, is_limited)
    assert judgment.needs_rebuild == (outcome != SATISFIED)


def test_a_quarter_more_than_the_target_is_accepted():
    bloom = make_filter(ENOUGH)
    assert judge_filter(bloom, Sizing(bloom.fpp / 1.24), VALUES).outcome == SATISFIED
    assert judge_filter(bloom, Sizing(bloom.fpp / 1.26), VALUES).outcome == WEAKER


@each("values, outcome", [(7, BROKEN), (0, SATISFIED), (None, SATISFIED)])
def test_an_empty_filter_is_broken_if_there_are_values(values: int | None, outcome: str):
    assert judge_filter(BloomFilter.empty(64), Sizing(), values).outcome == outcome


def test_a_full_filter_is_weak_unless_it_is_as_large_as_the_limit():
    bloom = BloomFilter(b"\xff" * 64)
    assert judge_filter(bloom, Sizing(), 1000).outcome == WEAKER
    assert judge_filter(bloom, Sizing(max_bytes=64), 1000).outcome == SATISFIED


@each("fpp", [0.9, 0.1, 0.01, 1e-6, 1e-12])
@each("values", [0, 1, 2, 3, 10, 1000])
def test_the_smallest_fold_within_the_target_is_accepted(fpp: float, values: int):
    """That is the filter which is built, whatever the number of values that its bits suggest."""
    bloom = make_filter(1 << 20, values).fold_to_fpp(fpp)
    if bloom.fpp <= fpp:
        assert judge_filter(bloom, Sizing(fpp), values).outcome == SATISFIED
