"""Definition levels and indices into a dictionary: the hybrid of run lengths and bit packing
(parquet-format Encodings.md, "Run Length Encoding / Bit-Packing Hybrid").

    run     header, an unsigned varint; even: run length << 1, then one level;
            odd: groups << 1 | 1, then 8 packed levels per group

A value is present if its definition level is the highest of the column. Otherwise it, or a list or
struct around it, is null or empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sbbf_tool.parquet import compact

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MOST_BITS = 32
_MOST_HEADER_BYTES = 5


def count_highest(levels: memoryview, highest: int, count: int) -> int:
    """Count how many of the first `count` levels equal `highest`. If `highest` is 0, return
    `count`: such columns store no levels.

    Raises ValueError if there are fewer levels, or the bytes cannot be levels.
    """
    if not highest:
        return count
    num_highest = 0
    for length, run in _runs(levels, highest.bit_length(), count):
        if not isinstance(run, int):
            num_highest += _count_packed(run, highest, length)
        elif run == highest:
            num_highest += length
    return num_highest


def decode(data: memoryview, width: int, count: int) -> NDArray[np.uint32]:
    """Return the first `count` numbers of `width` bits: levels, or indices into a dictionary.
    Raises as `count_highest`."""
    import numpy as np

    if width > _MOST_BITS:
        raise ValueError(f"a number has at most {_MOST_BITS} bits, not {width}")
    if not width:
        return np.zeros(count, np.uint32)
    parts = []
    for length, run in _runs(data, width, count):
        if isinstance(run, int):
            parts.append(np.full(length, run, np.uint32))
        else:
            parts.append(_unpack(run, width, length))
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


def _runs(data: memoryview, width: int, count: int) -> Iterator[tuple[int, int | bytes]]:
    """Yield the length of each run, and the number that it repeats or its packed bytes. Packed runs
    in a row are yielded as one."""
    remaining = count
    position = 0
    num_packed = 0
    packed = []
    while remaining > 0:
        window = data[: position + _MOST_HEADER_BYTES]
        try:
            header, position = compact.read_varint(window, position)
        except IndexError:
            raise ValueError("the levels end early, or a number among them is too large") from None
        if header & 1:
            num_groups = header >> 1
            size = num_groups * width
            groups = data[position : position + size]
            packed.append(groups)
            # The last group may be cut to the bytes that hold the remaining levels.
            num_stored = len(groups) * 8 // width
            length = min(remaining, num_groups * 8, num_stored)
            if not length:
                raise ValueError("the levels end early")
            num_packed += length
        else:
            size = (width + 7) // 8
            if position + size > len(data) or not header:
                raise ValueError("the levels end early, or a run is empty")
            if packed:
                yield num_packed, b"".join(packed)
                packed = []
                num_packed = 0
            length = min(remaining, header >> 1)
            level = int.from_bytes(data[position : position + size], "little")
            yield length, level
        position += size
        remaining -= length
    if packed:
        yield num_packed, b"".join(packed)


def _count_packed(packed: bytes, highest: int, count: int) -> int:
    if highest == 1:
        first_bits = int.from_bytes(packed, "little") & (1 << count) - 1
        return first_bits.bit_count()
    levels = _unpack(packed, highest.bit_length(), count)
    return int((levels == highest).sum())


def _unpack(packed: bytes, width: int, count: int) -> NDArray[np.uint32]:
    """Return the first `count` numbers of `width` bits each, at most 32, least significant bit
    first."""
    import numpy as np

    num_groups = (count + 7) // 8
    plain = np.zeros(num_groups * width + 8, np.uint8)
    size = min(len(packed), num_groups * width)
    plain[:size] = np.frombuffer(packed, np.uint8, size)
    numbers = np.empty((num_groups, 8), np.uint32)
    mask = (1 << width) - 1
    for at in range(8):
        # Number `at` of each group begins in the same byte of its group, and the eight bytes from
        # there have all of its bits.
        start, shift = divmod(at * width, 8)
        words = np.ndarray(num_groups, "<u8", plain, start, (width,))
        numbers[:, at] = words >> shift & mask
    return numbers.ravel()[:count]
