"""The answers of filters for many values as bitmaps: bit i, counted from the lowest bit of the first byte, stands for value i.

Bytes after the last set bit may be missing. A bitmap takes an eighth of a byte per value: the answers of 30 filters for a million values
take 4 MB, however many of the values may be stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_DIGITS = bytes.maketrans(b"\0\1", b"01")
_BLOCK_BYTES = 4096
_BITS = [tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256)]
_NOT_ZERO = rb"[^\0]"


def build_bitmap(flags: bytes, owners: Sequence[int]) -> bytes:
    """Build the bitmap of the values that own a flag of 1: flag i, which is 0 or 1, belongs to value `owners[i]`."""
    if 1 not in flags:
        return b""
    if not isinstance(owners, range):
        return bitmap_of(map(owners.__getitem__, _places_of_ones(flags)))
    # A number in base 2 is parsed in linear time; its last digit is its lowest bit.
    return _to_bytes(int(flags.translate(_DIGITS)[::-1], 2) << owners.start)


def _places_of_ones(flags: bytes) -> Iterator[int]:
    # Most flags are 0, over which `find` goes at the speed of memory.
    at = flags.find(1)
    while at >= 0:
        yield at
        at = flags.find(1, at + 1)


def bitmap_of(positions: Iterable[int]) -> bytes:
    """Build the bitmap of these values."""
    bitmap = bytearray()
    for position in positions:
        if position >> 3 >= len(bitmap):
            bitmap.extend(bytes((position >> 3) + 1 - len(bitmap)))
        bitmap[position >> 3] |= 1 << (position & 7)
    return bytes(bitmap)


def unite(bitmaps: Iterable[bytes]) -> bytes:
    """Build the bitmap of the values that are in any of these."""
    united = 0
    for bitmap in bitmaps:
        united |= int.from_bytes(bitmap, "little")
    return _to_bytes(united)


def count_bits(bitmap: bytes) -> int:
    """Count the values in a bitmap."""
    return int.from_bytes(bitmap, "little").bit_count()


def positions(bitmap: bytes) -> Iterator[int]:
    """Yield the values in a bitmap, in order."""
    for match in re.finditer(_NOT_ZERO, bitmap):
        at = match.start()
        for bit in _BITS[bitmap[at]]:
            yield at * 8 + bit


def iterate(bitmaps: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield each value that is in any bitmap, in order, and the numbers of the bitmaps that have it. Memory holds one block of values."""
    for start in range(0, max((len(bitmap) for _, bitmap in bitmaps), default=0), _BLOCK_BYTES):
        numbers: dict[int, list[int]] = {}
        for number, bitmap in bitmaps:
            for position in positions(bitmap[start : start + _BLOCK_BYTES]):
                numbers.setdefault(start * 8 + position, []).append(number)
        for position in sorted(numbers):
            yield position, tuple(numbers[position])


def _to_bytes(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")
