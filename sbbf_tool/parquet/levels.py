"""Definition levels: the hybrid of run lengths and bit packing (parquet-format Encodings.md, "Run Length Encoding / Bit-Packing Hybrid").

    run     header, an unsigned varint; even: run length << 1, then one level; odd: groups << 1 | 1, then 8 packed levels per group

A value is present if its definition level is the highest of the column. Otherwise it, or a list or struct around it, is null or empty.
"""

from __future__ import annotations


def count_highest(levels: memoryview, highest: int, count: int) -> int:
    """Count how many of the first `count` levels equal `highest`. If `highest` is 0, return `count`: such columns store no levels.

    Raises ValueError if there are fewer levels, or the bytes cannot be levels.
    """
    if not highest:
        return count
    width = highest.bit_length()
    num_highest, remaining, position = 0, count, 0
    while remaining > 0:
        header, position = _varint(levels, position)
        if header & 1:
            size = (header >> 1) * width
            packed = levels[position : position + size]
            # The last group may be cut to the bytes that hold the remaining levels.
            num_levels = min(remaining, (header >> 1) * 8, len(packed) * 8 // width)
            if not num_levels:
                raise ValueError("the levels end early")
            num_highest += _count_packed(packed, highest, width, num_levels)
            position += size
            remaining -= num_levels
        else:
            size = (width + 7) // 8
            if position + size > len(levels) or not header:
                raise ValueError("the levels end early, or a run is empty")
            run = min(remaining, header >> 1)
            if int.from_bytes(levels[position : position + size], "little") == highest:
                num_highest += run
            position += size
            remaining -= run
    return num_highest


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ValueError("the levels end early, or a number among them is too large")


def _count_packed(packed: memoryview, highest: int, width: int, count: int) -> int:
    """Count how many of the first `count` levels, of `width` bits each, least significant bit first, equal `highest`."""
    bits = int.from_bytes(packed, "little") & (1 << count * width) - 1
    if width == 1:
        return bits.bit_count()
    import numpy as np

    each = np.unpackbits(np.frombuffer(packed, np.uint8), count=count * width, bitorder="little").reshape(count, width)
    return int(np.count_nonzero((each << np.arange(width, dtype=np.uint16)).sum(axis=1) == highest))
