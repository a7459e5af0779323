"""The drafts' hashes and blocks: against published vectors, plain integers, and filters that the
branch's own class wrote."""

from __future__ import annotations

import json
from array import array

import mmh3
import pytest

from sbbf_tool.bloom import murmur3_spec, spec
from sbbf_tool.bloom.dialects import (
    CURRENT,
    DIALECTS,
    DRAFTS,
    GUAVA_SEED,
    MASK,
    MODULO,
    MURMUR3,
    find_dialect,
)
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UsageError
from support.tables import each

IDS = [dialect.name for dialect in DIALECTS]


# MurmurHash3


def test_the_verification_value_of_its_author():
    """SMHasher's `VerificationTest`: hashes of 0, 1, ... 255 bytes with other seeds, hashed again;
    0x6384BA69 is published for x64_128."""

    def digest(data: bytes, seed: int) -> bytes:
        return b"".join(
            half.to_bytes(8, "little") for half in murmur3_spec.murmur3_x64_128(data, seed)
        )

    every = b"".join(digest(bytes(range(length)), 256 - length) for length in range(256))
    assert int.from_bytes(digest(every, 0)[:4], "little") == 0x6384BA69


def test_the_hash_is_that_of_mmh3():
    for length in (*range(36), 64, 100, 5000):
        data = bytes((7 * at + (at >> 8)) % 251 for at in range(length))
        for seed in (0, 1, GUAVA_SEED, 2**32 - 1):
            assert murmur3_spec.murmur3_x64_128(data, seed) == mmh3.hash64(
                data, seed, signed=False
            ), (length, seed)


@each("offsets", [[0, 5, 3], [0, 99], [-1, 2]])
def test_wrong_offsets(offsets):
    with pytest.raises(ValueError, match="offsets"):
        find_dialect("draft1-raw").hasher(1, is_number=False).hash_variable(
            b"abcdefgh", array("i", offsets), 4
        )


# Blocks


@each("num_blocks", [1, 3, 32])
@each("dialect", DRAFTS)
def test_a_kernel_builds_what_the_draft_describes(kernel, dialect, num_blocks):
    """The bits, set one by one after the draft's own words, are those that a kernel sets from
    hashes that were put in today's."""
    values = [bytes([n, n // 3, 7]) for n in range(50)]
    by_hand = bytearray(num_blocks * 32)
    for value in values:
        h = (
            murmur3_spec.murmur3(value, dialect.seed)
            if dialect.hash == MURMUR3
            else spec.xxh64(value)
        )
        index = {
            "remainder": (h >> 32) % num_blocks,
            "lowest bits": (h >> 32) & (num_blocks - 1),
        }.get(dialect.sentence.rpartition("by ")[2], ((h >> 32) * num_blocks) >> 32)
        block = spec.read_block(by_hand, index)
        spec.block_insert(block, h & 0xFFFF_FFFF)
        spec.write_block(by_hand, index, block)
    bloom = BloomFilter.empty(num_blocks * 32)
    bloom.insert_hashes(dialect.hasher(num_blocks, is_number=False).hash_fixed(b"".join(values), 3))
    assert bytes(bloom) == bytes(by_hand)


# The table


def test_names_are_unique_and_an_unknown_name_is_reported():
    assert len(set(IDS)) == len(IDS)
    assert find_dialect("current") is CURRENT
    with pytest.raises(
        UsageError, match="there is no dialect 'draft3'; the dialects are current, draft1-raw"
    ):
        find_dialect("draft3")


# Filters that the branch's own class wrote


def holds_all(dialect, bitset, values, is_number):
    bloom = BloomFilter(bitset)
    hasher = dialect.hasher(bloom.num_blocks, is_number=is_number)
    return all(bloom.check_hash(hasher.hash_value(value)) for value in values)


WROTE = {"dd7e655de": "draft1-raw", "35eba1605": "branch-12", "ba28686ac": "branch-16"}


def test_every_filter_of_the_branch_answers_in_its_dialect_alone(conformance):
    table = json.loads((conformance / "drafts" / "legacy.json").read_text())
    assert len(table) >= 15
    for name, entry in table.items():
        bitset = (conformance / "drafts" / name).read_bytes()[entry["header_bytes"] :]
        values = [bytes.fromhex(text) for text in entry["values_plain_hex"]]
        is_number = entry["type"] != "binary"
        right = find_dialect(WROTE[name.partition("_")[0]])
        for dialect in DIALECTS:
            # Dialects that differ in nothing but the header give the same bits.
            means_the_same = (dialect.hash, dialect.seed) == (right.hash, right.seed) and (
                {dialect.block, right.block} <= {MASK, MODULO} or dialect.block == right.block
            )
            nothing = (
                is_number and dialect.numbers_as_nothing,
                is_number and right.numbers_as_nothing,
            )
            expected = means_the_same and nothing[0] == nothing[1]
            assert holds_all(dialect, bitset, values, is_number) == expected, (name, dialect.name)
