"""MurmurHash3 x64_128 in plain integers: slow and obvious. Only drafts of the Bloom filter format
use it.

Source: Austin Appleby's MurmurHash3.cpp (public domain), `MurmurHash3_x64_128`, with its names. The
first draft uses the low 64 of the 128 bits, which are `h1`; so does Guava's
`murmur3_128().hashBytes().asLong()`, which parquet-mr's branch called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer

_U64 = 0xFFFF_FFFF_FFFF_FFFF

C1 = 0x87C37B91114253D5
C2 = 0x4CF5AD432745937F
ADD1 = 0x52DCE729
ADD2 = 0x38495AB5
FMIX1 = 0xFF51AFD7ED558CCD
FMIX2 = 0xC4CEB9FE1A85EC53
BLOCK_BYTES = 16


def _rotl(x: int, bits: int) -> int:
    return (x << bits | x >> (64 - bits)) & _U64


def _mix1(k1: int) -> int:
    return _rotl(k1 * C1 & _U64, 31) * C2 & _U64


def _mix2(k2: int) -> int:
    return _rotl(k2 * C2 & _U64, 33) * C1 & _U64


def _fmix(k: int) -> int:
    k = (k ^ k >> 33) * FMIX1 & _U64
    k = (k ^ k >> 33) * FMIX2 & _U64
    return k ^ k >> 33


def murmur3_x64_128(data: Buffer, seed: int = 0) -> tuple[int, int]:
    """Hash `data` to `h1` and `h2`, unsigned 64-bit integers. `seed` has 32 bits."""
    data = bytes(data)
    h1 = h2 = seed
    tail = len(data) - len(data) % BLOCK_BYTES
    for at in range(0, tail, BLOCK_BYTES):
        k1 = int.from_bytes(data[at : at + 8], "little")
        k2 = int.from_bytes(data[at + 8 : at + 16], "little")
        h1 = _rotl(h1 ^ _mix1(k1), 27)
        h1 = ((h1 + h2) * 5 + ADD1) & _U64
        h2 = _rotl(h2 ^ _mix2(k2), 31)
        h2 = ((h2 + h1) * 5 + ADD2) & _U64
    # The remainder, up to 15 bytes. A missing half changes nothing: mixing zero gives zero.
    k1 = int.from_bytes(data[tail : tail + 8], "little")
    k2 = int.from_bytes(data[tail + 8 :], "little")
    h1 ^= _mix1(k1)
    h2 ^= _mix2(k2)
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _U64
    h2 = (h2 + h1) & _U64
    h1 = _fmix(h1)
    h2 = _fmix(h2)
    h1 = (h1 + h2) & _U64
    return h1, (h2 + h1) & _U64


def murmur3(data: Buffer, seed: int = 0) -> int:
    """Hash `data` to the low 64 bits of `murmur3_x64_128`."""
    return murmur3_x64_128(data, seed)[0]
