"""What is hashed of each type."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.extensions.paimon.bloom64_spec import wang_hash
from sbbf_tool.extensions.paimon.fast_hash import Key, double_keys, float_keys, hash_bytes, hash_longs, timestamp_keys
from support.tables import each

longs = st.integers(-(2**63), 2**63 - 1)


@each(
    "value, expected", [(0, 0), (1, 0x5BCA7C69B794F8CE), (-1, 0x5BCA868437950D03), (10, 0x95EA2955ABD45275), (-(2**63), 0x3BE7D0F7780DE548)]
)
def test_published_integers(value: int, expected: int) -> None:
    assert wang_hash(value) == expected
    assert hash_longs(np.array([value], np.int64)).tolist() == [expected]


@given(st.lists(longs, max_size=50))
def test_many_integers_hash_as_one_by_one(values: list[int]) -> None:
    assert hash_longs(np.array(values, np.int64)).tolist() == [wang_hash(value) for value in values]


def test_published_text() -> None:
    assert [f"{digest:016x}" for digest in hash_bytes([b"", b"example"]).tolist()] == ["ef46db3751d8e999", "e6eda53558c41c5e"]


def test_every_nan_is_the_canonical_one_and_zeros_differ() -> None:
    singles = np.array([0x7FC00000, 0xFFC12345, 0x7F800001, 0, 0x80000000, 0x3F800000], np.uint32).view(np.float32)
    assert float_keys(singles).tolist() == [0x7FC00000] * 3 + [0, -0x80000000, 0x3F800000]
    doubles = np.array([0x7FF8000000000000, 0xFFF8000012345678, 0, 1 << 63], np.uint64).view(np.float64)
    assert double_keys(doubles).tolist() == [0x7FF8000000000000] * 2 + [0, -(2**63)]


@each(
    "per_second, count, millis, micros",
    [(1, -2, -2000, -2_000_000), (10**3, -1, -1, -1000), (10**6, -1, -1, -1), (10**9, -1, -1, -1), (10**9, 1_999_999, 1, 1999)],
)
def test_timestamps_are_rounded_down(per_second: int, count: int, millis: int, micros: int) -> None:
    counts = np.array([count], np.int64)
    assert timestamp_keys(counts, per_second, Key.MILLIS).tolist() == [millis]
    assert timestamp_keys(counts, per_second, Key.MICROS).tolist() == [micros]
