"""The filter: the fast kernel against the plain one, and the effect of the two readings of k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon import bloom64_spec as spec
from sbbf_tool.extensions.paimon.bloom64 import MAX_PROBES, BloomFilter64, build_bloom64, parse_bloom64
from sbbf_tool.extensions.paimon.bloom64_sizing import Sizing, compute_sizing
from sbbf_tool.extensions.paimon.fast_hash import hash_bytes
from support.tables import each

hashes64 = st.integers(0, 2**64 - 1)
awkward = st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 0x80000000_80000000])


def as_array(hashes: list[int]) -> np.ndarray:
    return np.array(hashes, np.uint64)


@given(st.lists(hashes64 | awkward, max_size=30), st.integers(1, 40), st.integers(0, 70), st.lists(hashes64 | awkward, max_size=30))
def test_the_fast_kernel_is_the_plain_one(inserted: list[int], size: int, k: int, queries: list[int]) -> None:
    bits = bytearray(size)
    for value in inserted:
        spec.insert(bits, k, value)
    bloom = BloomFilter64(np.zeros(size, np.uint8), k)
    bloom.insert(as_array(inserted))
    assert bloom.bits.tobytes() == bytes(bits)
    assert bloom.contains(as_array(queries)).tolist() == [spec.contains(bits, k, value) for value in queries]
    assert bloom.contains(as_array(inserted)).all()
    assert bloom.fill_ratio == sum(byte.bit_count() for byte in bits) / bloom.num_bits


def test_many_hashes_cross_chunks() -> None:
    rng = np.random.default_rng(7)
    inserted = rng.integers(0, 2**64, 200_000, np.uint64)
    bloom = BloomFilter64.for_items(200_000, 0.01)
    bloom.insert(inserted)
    assert bloom.contains(inserted).all()
    absent = bloom.contains(rng.integers(0, 2**64, 200_000, np.uint64)).mean()
    assert absent == pytest.approx(0.01, rel=0.2)
    assert bloom.estimate_fpp() == pytest.approx(0.01, rel=0.1)
    assert bloom.estimated_ndv == pytest.approx(200_000, rel=0.01)


def test_the_body_of_the_published_vector() -> None:
    """{"a", "b", ""} with k = 6 in 88 bits: fast_hash's and the filter's bytes as another implementation's tests have them."""
    bloom = BloomFilter64(np.zeros(11, np.uint8), 6)
    bloom.insert(hash_bytes([b"a", b"b", b""]))
    assert build_bloom64(bloom).hex() == "00000006" + "00202003d02000404910c9"


@given(st.binary(min_size=1, max_size=50), st.integers(0, 2**32 - 1))
def test_a_filter_comes_back_as_it_was(bits: bytes, k: int) -> None:
    body = k.to_bytes(4, "big") + bits
    bloom = parse_bloom64(body)
    assert (bloom.k, build_bloom64(bloom)) == (k, body)
    with pytest.raises(UnreadableError):
        parse_bloom64(body[: len(bits) % 5])


def test_paimon_reads_the_bytes_of_k_as_signed() -> None:
    probes = {
        0: 0, 1: 1, 127: 127, 128: 0, 133: 0, 255: 0, 256: 256, 257: 257, 383: 383, 384: 128, 0x8001: 0, 0x10080: 65408,
    }  # fmt: skip
    assert {k: BloomFilter64(np.zeros(1, np.uint8), k).paimon_probes for k in probes} == probes


def test_a_huge_k_is_answered_in_bounded_time() -> None:
    bits = np.full(1 << 10, 255, np.uint8)
    full = BloomFilter64(bits, 2**32 - 1)
    assert full.contains(as_array([1, 2, 3])).all()
    bits[:512] = 0
    assert not full.contains(as_array([1, 2, 3])).any()
    with pytest.raises(UsageError):
        full.insert(as_array([1]))
    assert full.k > MAX_PROBES


@each(
    "items, fpp, sizing",
    [
        (1_000_000, 0.1, (4_792_536, 3)),
        (1, 0.5, (8, 6)),
        (0, 0.1, (8, 1)),  # a division by zero, rounded to a long and cut to an int
        (-1, 0.5, (8, 1)),
        (100, 1.0, (8, 1)),
        (100, -1.0, (8, 1)),  # NaN
        (100, float("nan"), (8, 1)),
        (1, 5e-324, (1552, 1076)),
    ],
)
def test_sizing_where_java_arithmetic_shows(items: int, fpp: float, sizing: tuple[int, int]) -> None:
    assert compute_sizing(items, fpp) == Sizing(*sizing)
    for too_many, rate in ((100_000_000, 1e-6), (1, 0.0), (100, 1.5), (2**63, 0.1), (2**31, 0.1)):
        with pytest.raises(UsageError):
            compute_sizing(too_many, rate)
