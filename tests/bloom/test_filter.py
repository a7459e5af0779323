"""`BloomFilter`: what goes in is found, every size is served, folds and unions are what would have
been built."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.bloom.filter import BloomFilter, check_block
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.bloom.spec import block_index
from sbbf_tool.errors import UnreadableError, UsageError
from support.tables import each

pytestmark = pytest.mark.usefixtures("kernel")

# Bytes, blocks: one block; no power of two; a size that parquet-java writes on request; less than a
# block over.
SIZES = [(32, 1), (64, 2), (96, 3), (1000, 31), (1023, 31), (1024, 32)]


def some_hashes(count: int, seed: int = 1) -> array[int]:
    bits = random.Random(seed)
    return array("Q", [bits.getrandbits(64) for _ in range(count)])


def build(num_bytes: int, hashes: array[int]) -> BloomFilter:
    bloom = BloomFilter.empty(num_bytes)
    bloom.insert_hashes(hashes)
    return bloom


@each("num_bytes, num_blocks", SIZES)
def test_what_was_inserted_is_found_at_every_size(num_bytes: int, num_blocks: int) -> None:
    bloom = BloomFilter.empty(num_bytes)
    assert (bloom.num_bytes, bloom.num_blocks) == (num_bytes, num_blocks)
    words = [f"word {i}".encode() for i in range(20)]
    for word in words:
        assert word not in bloom or bloom.bits_set
        bloom.insert(word)
    assert all(word in bloom for word in words)
    assert bloom.count_missing(array("Q", map(hash_value, words))) == 0
    assert bytes(bloom)[num_blocks * 32 :] == bytes(num_bytes % 32)


@given(
    num_blocks=st.integers(1, 50),
    inserted=st.integers(0, 2**64 - 1),
    query=st.integers(0, 2**64 - 1),
)
def test_one_block_answers_for_the_filter(num_blocks: int, inserted: int, query: int) -> None:
    bloom = BloomFilter.empty(num_blocks * 32)
    bloom.insert_hash(inserted)
    start = block_index(query, num_blocks) * 32
    assert check_block(bloom.bitset[start : start + 32], query) == bloom.check_hash(query)


def test_other_sizes_are_refused() -> None:
    for length in (0, 31, 33, 64):
        with pytest.raises(ValueError, match=f"a block has 32 bytes, not {length}"):
            check_block(bytes(length), 1)
    for num_bytes in (0, 1, 31):
        with pytest.raises(UnreadableError, match=f"a bitset of {num_bytes} bytes"):
            BloomFilter(bytes(num_bytes))
        with pytest.raises(UsageError):
            BloomFilter.empty(num_bytes)


def test_a_filter_over_bytes_can_be_queried_but_not_changed() -> None:
    bloom = BloomFilter(bytes(build(64, some_hashes(5))))
    for attempt in (
        lambda: bloom.insert(b"x"),
        lambda: bloom.insert_hash(1),
        lambda: bloom.insert_hashes(array("Q", [1])),
    ):
        with pytest.raises(BufferError):
            attempt()
    before = bytes(bloom)
    duplicate = bloom.copy()
    duplicate.insert(b"x")
    assert b"x" in duplicate
    assert bytes(bloom) == before


# --- Fold and unite ---


@given(half=st.integers(1, 30), seed=st.integers(0, 99))
def test_a_fold_is_what_would_have_been_built_at_half_the_size(half: int, seed: int) -> None:
    hashes = some_hashes(60, seed)
    assert build(half * 64, hashes).fold() == build(half * 32, hashes)


def test_an_uneven_number_of_blocks_does_not_fold() -> None:
    bloom = build(1000, some_hashes(9))
    assert not bloom.can_fold
    with pytest.raises(UsageError, match="31 blocks"):
        bloom.fold()
    assert bloom.fold_to_fpp(1.0) is bloom


@given(st.sampled_from([32, 96, 1000]), st.integers(0, 40), st.integers(0, 40))
def test_a_union_is_what_would_have_been_built_from_both(
    num_bytes: int, first_count: int, second_count: int
) -> None:
    a, b = some_hashes(first_count, 1), some_hashes(second_count, 2)
    assert build(num_bytes, a) | build(num_bytes, b) == build(num_bytes, a + b)
    assert build(num_bytes, a).union(build(num_bytes, b)) == build(num_bytes, a + b)


def test_filters_of_different_sizes_do_not_unite() -> None:
    with pytest.raises(UsageError, match="64 and 32 bytes"):
        BloomFilter.empty(64) | BloomFilter.empty(32)


@each("num_bytes", [64, 1 << 16])
def test_a_block_that_differs_is_seen_wherever_it_is(num_bytes: int) -> None:
    bloom = BloomFilter.empty(num_bytes)
    assert bloom.has_identical_blocks
    bloom.insert_hash((1 << 64) - 1)
    assert not bloom.has_identical_blocks
