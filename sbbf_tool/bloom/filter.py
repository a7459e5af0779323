"""`BloomFilter`: a bitset of 256-bit blocks to query, build, fold and measure (parquet-format
BloomFilter.md, "Technical Approach").

It deviates once, to support existing files: the specification has whole blocks only, but
parquet-java writes any requested number of bytes, such as 1000. Readers use the whole blocks in
them, here 31, and so does this class; it keeps the bytes after them, which have no meaning.

This module does not import numpy. It handles single values in plain integers, and leaves bulk work
to `kernels.active()`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import inf, log, log1p
from typing import TYPE_CHECKING

from sbbf_tool.bloom import kernels, sizing, spec
from sbbf_tool.bloom.buffers import MAX_BLOCKS, flat, new_bitset
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.errors import UnreadableError, UsageError

if TYPE_CHECKING:
    from typing_extensions import Buffer

BLOCK_BYTES = spec.BLOCK_BYTES
_BLOCK_BITS = BLOCK_BYTES * 8
_WORD_BITS = 32
_ALL_SET_PRODUCT: int = _WORD_BITS**spec.WORDS_PER_BLOCK


def check_block(block: Buffer, h: int) -> bool:
    """Return whether `block`, the 32 bytes that hash `h` selects, has all bits of `h` set; for
    probes that read one block of a file.

    Raises ValueError unless `block` has 32 bytes.
    """
    if len(view := flat(block)) != BLOCK_BYTES:
        raise ValueError(f"a block has {BLOCK_BYTES} bytes, not {len(view)}")
    bits = _bits_in_block(h & 0xFFFF_FFFF)
    return int.from_bytes(view, "little") & bits == bits


# Cached, since a query over many files looks up one value in thousands of blocks. The eight words
# of a block are little-endian and in order, so they form one little-endian number.
@lru_cache(maxsize=4096)
def _bits_in_block(x: int) -> int:
    return sum(word << _WORD_BITS * at for at, word in enumerate(spec.mask(x)))


class BloomFilter:
    """A split-block Bloom filter. False means certainly absent, True possibly present.

    It uses the given bitset without copying it: bytes allow queries only, a bytearray insertions
    too. Values are passed as their plain-encoded bytes, hashes as unsigned 64-bit integers.
    """

    __slots__ = ("_bitset", "_measurement", "num_blocks")

    num_blocks: int
    """Whole blocks of 32 bytes; the specification's `z`."""

    def __init__(self, bitset: Buffer) -> None:
        """Wrap a bitset. Raises UnreadableError below 32 bytes, or for 2^31 blocks and more."""
        self._bitset = flat(bitset)
        self.num_blocks = len(self._bitset) // BLOCK_BYTES
        self._measurement: tuple[int, int] | None = None
        if not 1 <= self.num_blocks <= MAX_BLOCKS:
            raise UnreadableError(
                f"a bitset of {len(self._bitset):,} bytes is not a filter",
                hint="a filter has 1 to 2^31 - 1 blocks of 32 bytes",
            )

    @classmethod
    def empty(cls, num_bytes: int) -> BloomFilter:
        """Make an empty filter of `num_bytes` bytes. Raises UsageError below 32 bytes."""
        if num_bytes < BLOCK_BYTES:
            raise UsageError(f"a filter has at least {BLOCK_BYTES} bytes, not {num_bytes}")
        return cls(new_bitset(num_bytes))

    @classmethod
    def sized_for(cls, ndv: float, fpp: float) -> BloomFilter:
        """Make an empty filter of the size that `sizing.bytes_for` computes for `ndv` distinct
        values at this FPP."""
        return cls.empty(sizing.bytes_for(ndv, fpp))

    def copy(self) -> BloomFilter:
        """Copy the bits to a new bitset that accepts insertions."""
        return BloomFilter(bytearray(self._bitset))

    @property
    def bitset(self) -> memoryview:
        """All bytes of the bitset as stored in a file, read-only."""
        return self._bitset.toreadonly()

    @property
    def num_bytes(self) -> int:
        """Length of the bitset in bytes; the `numBytes` of a header."""
        return len(self._bitset)

    # --- Insert and query ---

    def insert(self, plain: Buffer) -> None:
        """Insert a value, given as its plain-encoded bytes. Raises BufferError if the bitset is
        read-only."""
        self.insert_hash(hash_value(plain))

    def insert_hash(self, h: int) -> None:
        """Insert a hash. Raises BufferError if the bitset is read-only."""
        if self._bitset.readonly:
            raise BufferError("the bitset is read-only; insert into a copy()")
        spec.filter_insert(self._bitset, self.num_blocks, h)
        self._measurement = None

    def insert_hashes(self, hashes: Buffer) -> None:
        """Insert many hashes: a buffer of native unsigned 64-bit integers. Raises BufferError if
        the bitset is read-only."""
        kernels.active().insert(self._bitset, self.num_blocks, hashes)
        self._measurement = None

    def __contains__(self, plain: Buffer) -> bool:
        """Return whether a value may be in the set: False is certain, True is not."""
        return self.check_hash(hash_value(plain))

    def check_hash(self, h: int) -> bool:
        """Return whether hash `h` may have been inserted: False is certain, True is not."""
        return spec.filter_check(self._bitset, self.num_blocks, h)

    def check_hashes(self, hashes: Buffer) -> bytes:
        """Check many hashes; return one byte per hash: 0 certainly absent, 1 possibly present."""
        return kernels.active().check(self._bitset, self.num_blocks, hashes)

    def count_missing(self, hashes: Buffer) -> int:
        """Count the hashes that are certainly absent."""
        return kernels.active().count_missing(self._bitset, self.num_blocks, hashes)

    # --- Fold and unite ---

    @property
    def can_fold(self) -> bool:
        """Whether the filter can be folded to half its size: the number of blocks must be even."""
        return self.num_blocks % 2 == 0

    def fold(self) -> BloomFilter:
        """Build the filter of half the size that the same insertions would give. Raises UsageError
        for an odd number of blocks.

        Bytes after the last whole block are dropped.
        """
        if not self.can_fold:
            raise UsageError(
                f"a filter of {self.num_blocks} blocks cannot be folded",
                hint="blocks are folded in pairs",
            )
        return BloomFilter(kernels.active().fold(self._bitset, self.num_blocks))

    def folds(self) -> Iterator[BloomFilter]:
        """Yield this filter, and its folds to every half of its size down to 64 bytes."""
        fold = self
        yield fold
        while fold.can_fold and fold.num_blocks * BLOCK_BYTES > sizing.MIN_BYTES:
            fold = fold.fold()
            yield fold

    def fold_to_fpp(self, fpp: float) -> BloomFilter:
        """Return the smallest fold, of 64 bytes or more, whose measured FPP is at most `fpp`; this
        filter itself if there is none."""
        best = self
        for fold in self.folds():
            if fold.fpp > fpp and fold is not self:
                break
            best = fold
        return best

    def fold_to_bytes(self, num_bytes: int) -> BloomFilter:
        """Return the fold of exactly `num_bytes` bytes; this filter itself if it has that size.

        Raises UsageError unless folding, which needs an even number of blocks each time, leads to
        that size.
        """
        best = self
        while best.num_bytes > num_bytes >= BLOCK_BYTES and best.can_fold:
            best = best.fold()
        if best.num_bytes != num_bytes:
            raise UsageError(
                f"a filter of {self.num_bytes:,} bytes does not fold to {num_bytes:,}",
                hint="folding halves the number of blocks, and this filter has "
                f"{self.num_blocks:,} blocks of {BLOCK_BYTES} bytes",
            )
        return best

    def union(self, other: BloomFilter) -> BloomFilter:
        """Build the filter that the insertions of both would give. Raises UsageError unless both
        have the same size."""
        if self.num_bytes != other.num_bytes:
            raise UsageError(
                f"filters of {self.num_bytes:,} and {other.num_bytes:,} bytes cannot be combined",
                hint="fold the larger one first",
            )
        bits = int.from_bytes(self._bitset, "little")
        bits |= int.from_bytes(other._bitset, "little")
        united = bits.to_bytes(self.num_bytes, "little")
        return BloomFilter(bytearray(united))

    __or__ = union

    # --- Measure ---

    def _measure(self) -> tuple[int, int]:
        if self._measurement is None:
            self._measurement = kernels.active().measure(self._bitset, self.num_blocks)
        return self._measurement

    @property
    def bits_set(self) -> int:
        """Bits set, of `num_blocks` times 256."""
        return self._measure()[0]

    @property
    def fill_ratio(self) -> float:
        """Share of bits set."""
        return self.bits_set / (self.num_blocks * _BLOCK_BITS)

    @property
    def fpp(self) -> float:
        """The measured FPP: the probability that a hash which was never inserted is found.

        For one block, this is the product of the shares of bits set in its eight words. The result
        is the mean over all blocks, computed in integers and divided once.
        """
        return self._measure()[1] / (self.num_blocks * _ALL_SET_PRODUCT)

    @property
    def estimated_ndv(self) -> float:
        """Number of distinct values inserted, estimated from the fill ratio; `math.inf` if every
        bit is set: then any number is possible.

        The words i of all blocks form a row of m = 32 z bits, of which every value sets exactly
        one, at random: n values leave m (1 - 1/m)^n of them unset on average, whichever blocks they
        select. (Per block: k values leave 32 (31/32)^k of a word, and k is Poisson-distributed.)
        There are eight such rows. The estimate is the n whose average equals the observation, n =
        ln(unset fraction) / ln(1 - 1/m), which is the maximum-likelihood estimate from the number
        of bits set (Whang et al., "A linear-time probabilistic counting algorithm", 1990). Its
        standard deviation is about 5 % / sqrt(z) of n, or 1 % for a kilobyte, up to some 50 values
        per block; it doubles at 100, where the filter is nearly useless, and keeps growing.
        """
        bits = self.num_blocks * _BLOCK_BITS
        unset = bits - self.bits_set
        if not unset:
            return inf
        row_bits = self.num_blocks * _WORD_BITS
        # Without abs, an empty filter would give -0.0.
        return abs(log(unset / bits) / log1p(-1 / row_bits))

    @property
    def has_identical_blocks(self) -> bool:
        """Whether there are two or more blocks and all are the same. Such a filter is empty,
        saturated, or not the result of hashing."""
        if self.num_blocks < 2:
            return False
        whole = self._bitset[: self.num_blocks * BLOCK_BYTES]
        step = 1 << 15
        num_repeated = min(len(whole), step) // BLOCK_BYTES
        pattern = bytes(whole[:BLOCK_BYTES]) * num_repeated
        for start in range(0, len(whole), step):
            part = bytes(whole[start : start + step])
            if part != pattern[: len(part)]:
                return False
        return True

    def __bytes__(self) -> bytes:
        return bytes(self._bitset)

    def __eq__(self, other: object) -> bool:
        """Return whether all bytes are the same, including those after the last whole block."""
        if not isinstance(other, BloomFilter):
            return NotImplemented
        return bytes(self._bitset) == bytes(other._bitset)

    __hash__ = None  # type: ignore[assignment]  # filters are mutable

    def __repr__(self) -> str:
        return f"<BloomFilter: {self.num_bytes:,} bytes, {self.fill_ratio:.1%} full>"
