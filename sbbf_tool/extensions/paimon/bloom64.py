"""Paimon's Bloom filter, the body of a `bloom-filter` index
(fileindex/bloomfilter/BloomFilterFileIndex.java).

    u32 big-endian   k, the number of hash functions
    bytes            the bits, lowest bit of each byte first; their number is 8 * (length - 4)

A hash has 64 bits (see `fast_hash`); `bloom64_spec.positions` defines which bits it sets. This
module does the same for many hashes at once with numpy, whose 32-bit arrays wrap as Java's `int`
does.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64_spec import compute_sizing, to_int32
from sbbf_tool.extensions.paimon.fast_hash import Hashes

KIND = "bloom-filter"
"""The index type of these bytes in a container."""

MAX_PROBES = 4096
"""Maximum number of bits that one query checks. Paimon's sizing never yields more than about 1,100
hash functions. If a filter has more hash functions than this limit, the answer is "maybe" unless
one of the checked bits excludes the value."""

_MAX_BYTES = (1 << 31) // 8 - 1
"""Above this size, the number of bits does not fit Java's int."""
_CHUNK = 1 << 16


class BloomFilter64:
    """Bloom filter of `num_bits` bits and `k` hash functions.

    Inserting sets bits, so this object is not frozen. `k` is unsigned, as stored; `paimon_probes`
    is the number that Paimon's own reader derives from `k`.
    """

    __slots__ = ("bits", "k")

    def __init__(self, bits: NDArray[np.uint8], k: int) -> None:
        if not bits.size:
            raise UnreadableError("the filter has no bits")
        if bits.size > _MAX_BYTES:
            raise UnreadableError(
                f"a filter of {bits.size} bytes is too large: its number of bits does not fit in "
                "a Java int"
            )
        if not 0 <= k < 1 << 32:
            raise UsageError(f"k must fit in 32 bits, not {k}")
        self.bits = bits
        self.k = k

    @classmethod
    def for_items(cls, items: int, fpp: float) -> BloomFilter64:
        """Build an empty filter of exactly the size that Paimon gives it.

        Raises UsageError if Paimon throws an exception.
        """
        num_bits, k = compute_sizing(items, fpp)
        return cls(np.zeros(num_bits // 8, np.uint8), k)

    @property
    def num_bits(self) -> int:
        return self.bits.size * 8

    @property
    def paimon_probes(self) -> int:
        """Number of bits that Paimon's Java reader checks.

        The reader adds up the four bytes of k as *signed* bytes. The number equals `k` below 128,
        is 0 for 128..255 (so that such a filter never skips a file), and is less than `k` above
        255.
        """
        stored = self.k.to_bytes(4, "big")
        total = 0
        for (signed_byte,) in struct.iter_unpack("b", stored):
            total = (total << 8) + signed_byte
        return max(0, to_int32(total))

    def insert(self, hashes: Hashes) -> None:
        """Set the bits of each hash (uint64, any order, repeats allowed)."""
        if self.k > MAX_PROBES:
            raise UsageError(
                f"cannot insert with {self.k} hash functions; the limit is {MAX_PROBES}"
            )
        for start in range(0, len(hashes), _CHUNK):
            h1, h2 = _split_hashes(hashes[start : start + _CHUNK])
            for i in range(1, self.k + 1):
                at = self._positions(h1, h2, i)
                masks = np.left_shift(1, at & 7).astype(np.uint8)
                np.bitwise_or.at(self.bits, at >> 3, masks)

    def contains(self, hashes: Hashes, probes: int | None = None) -> NDArray[np.bool_]:
        """Return for each hash whether the filter may hold it.

        Checks `probes` bits (default `k`), at most `MAX_PROBES`.
        """
        if probes is None:
            probes = self.k
        rounds = min(probes, MAX_PROBES)
        answers = np.ones(len(hashes), np.bool_)
        for start in range(0, len(hashes), _CHUNK):
            h1, h2 = _split_hashes(hashes[start : start + _CHUNK])
            alive = np.arange(len(h1))
            for i in range(1, rounds + 1):
                at = self._positions(h1[alive], h2[alive], i)
                shifts = (at & 7).astype(np.uint8)
                is_set = (self.bits[at >> 3] >> shifts) & 1 == 1
                alive = alive[is_set]
                if not alive.size:
                    break
            chunk = np.zeros(len(h1), np.bool_)
            chunk[alive] = True
            answers[start : start + _CHUNK] = chunk
        return answers

    def _positions(self, h1: NDArray[np.int32], h2: NDArray[np.int32], i: int) -> NDArray[np.int32]:
        positions = h1 + h2 * np.int32(i)
        # The shift gives all ones for negative numbers: the same as ~, without a branch.
        positions ^= positions >> 31
        positions %= np.int32(self.num_bits)
        return positions

    @property
    def fill_ratio(self) -> float:
        """Share of the bits that are set, 0 to 1."""
        bits = int.from_bytes(self.bits.tobytes(), "little")
        return bits.bit_count() / self.num_bits

    def estimate_fpp(self, probes: int | None = None) -> float:
        """Estimate the false-positive rate: the fill ratio to the power of the number of probes."""
        if probes is None:
            probes = self.k
        return float(self.fill_ratio**probes)

    @property
    def estimated_ndv(self) -> float | None:
        """Estimate the number of distinct hashes from the fill ratio, -m/k * ln(1 - fill).

        Return None if it is unknown: the filter is full, or k = 0.
        """
        fill = self.fill_ratio
        if fill == 1 or not self.k:
            return None
        return -self.num_bits / self.k * math.log1p(-fill)


def _split_hashes(hashes: Hashes) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)
    high = (hashes >> np.uint64(32)).astype(np.uint32).view(np.int32)
    return low, high


def parse_bloom64(body: bytes) -> BloomFilter64:
    """Parse a filter from the bytes of its index, copying the bits.

    Raises UnreadableError for fewer than 5 bytes.
    """
    if len(body) < 5:
        raise UnreadableError(
            f"the bloom-filter index has {len(body)} bytes; expected at least 5: 4 for k and 1 "
            "for the bits"
        )
    k = int.from_bytes(body[:4], "big")
    bits = np.frombuffer(body, np.uint8, offset=4).copy()
    return BloomFilter64(bits, k)


def build_bloom64(bloom: BloomFilter64) -> bytes:
    """Build the bytes of the index of a filter, as Paimon writes them."""
    return bloom.k.to_bytes(4, "big") + bloom.bits.tobytes()
