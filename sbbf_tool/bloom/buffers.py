"""The memory that kernels work on: flat byte views of the right shape, or an error before a single value is looked at.

The Python kernels take their buffers through here; the C kernel makes the same checks in its own words, and the tests hold both
to the same answers. Views, never copies. Wrong shapes raise ValueError, a bitset that cannot be written
BufferError: both mean that the caller, not a file, is at fault, except in `prefixed_spans`, which reads bytes of a file
(`hashing.hash_length_prefixed` says so to its caller).
"""

from __future__ import annotations

import mmap
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

BLOCK_BYTES = 32
MAX_BLOCKS = 2**31 - 1  # BloomFilter.md: "z is greater than or equal to one and less than 2 to the 31st power"

OFFSETS_DECREASE = "offsets decrease"

# From here on a bitset has more pages of 4 KiB than a processor remembers the addresses of.
_MANY_PAGES = 4 << 20


def flat(buffer: Buffer) -> memoryview:
    """`buffer` as a one-dimensional view of its bytes. Raises BufferError when it is not contiguous."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise BufferError("the buffer is not contiguous")
    if not view.nbytes:
        return memoryview(b"")  # memoryview.cast refuses shapes with a zero in them
    return view.cast("B")


def rows(values: Buffer, width: int) -> tuple[memoryview, int]:
    """`values` as bytes, and how many values of `width` bytes they are."""
    if width < 1:
        raise ValueError(f"a width of {width} bytes")
    view = flat(values)
    count, rest = divmod(len(view), width)
    if rest:
        raise ValueError(f"{len(view)} bytes are not a whole number of values of {width} bytes")
    return view, count


def offsets_in(data: Buffer, offsets: Buffer, offset_width: int) -> tuple[memoryview, memoryview]:
    """`data` as bytes, and `offsets` as signed native integers whose ends lie in `data`. Their order is left to the kernel to check."""
    if offset_width not in (4, 8):
        raise ValueError(f"offsets of {offset_width} bytes; Arrow has 4 and 8")
    view, raw = flat(data), flat(offsets)
    if len(raw) % offset_width:
        raise ValueError(f"{len(raw)} bytes are not a whole number of offsets of {offset_width} bytes")
    places = raw.cast("i" if offset_width == 4 else "q")
    if not len(places):
        raise ValueError("no offsets; n values have n + 1")
    if places[0] < 0 or places[-1] > len(view):
        raise ValueError(f"offsets from {places[0]} to {places[-1]} leave the {len(view)} bytes of data")
    return view, places


def key_of_order(order: str, width: int) -> Callable[[bytes], int | bytes]:
    """What compares as values of `width` bytes do in an order (see `interface.Kernel.extremes_fixed`)."""
    if order in ("signed", "unsigned"):
        if width not in (4, 8):
            raise ValueError(f"integers of {width} bytes; they have 4 or 8")
        return lambda value: int.from_bytes(value, "little", signed=order == "signed")
    if order == "decimal":
        return lambda value: int.from_bytes(value, "big", signed=True)
    if order != "bytes":
        raise ValueError(f"no order is called {order!r}")
    return bytes


def prefixed_spans(page: memoryview, count: int) -> Iterator[tuple[int, int]]:
    """Start and end of each of `count` values in a PLAIN BYTE_ARRAY page: a u32 little-endian length, then as many bytes.

    Nothing may follow the last one.
    """
    if count < 0:
        raise ValueError(f"a count of {count} values")
    end = 0
    for i in range(count):
        start = end + 4
        if start > len(page):
            raise ValueError(f"value {i} of {count} has no length: the page ends at byte {len(page)}")
        end = start + int.from_bytes(page[end:start], "little")
        if end > len(page):
            raise ValueError(f"value {i} of {count} ends at byte {end}, the page at byte {len(page)}")
        yield start, end
    if end != len(page):
        raise ValueError(f"the page has {len(page) - end} bytes after its last value")


def hashes_of(hashes: Buffer) -> memoryview:
    """`hashes` as native unsigned 64-bit integers."""
    view = flat(hashes)
    if len(view) % 8:
        raise ValueError(f"{len(view)} bytes are not a whole number of 64-bit hashes")
    return view.cast("Q")


def blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """The bytes of the first `num_blocks` blocks of `bitset`."""
    view = flat(bitset)
    if not 1 <= num_blocks <= MAX_BLOCKS:
        raise ValueError(f"{num_blocks} blocks; a filter has 1 to 2^31 - 1")
    if num_blocks * BLOCK_BYTES > len(view):
        raise ValueError(f"{num_blocks} blocks do not fit in a bitset of {len(view)} bytes")
    return view[: num_blocks * BLOCK_BYTES]


def writable_blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """The same, and they can be written to; BufferError otherwise."""
    view = blocks(bitset, num_blocks)
    if view.readonly:
        raise BufferError("the bitset is read-only")
    return view


def even_blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """The same, and they come in pairs, as folding needs."""
    if num_blocks % 2:
        raise ValueError(f"{num_blocks} blocks do not come in pairs")
    return blocks(bitset, num_blocks)


def new_bitset(num_bytes: int) -> Buffer:
    """Zeroed memory to build a bitset in, on huge pages when it is large and the system has them.

    Insertions go all over the bitset; on pages of 4 KiB most of them would first have to look up where their page is. Inserting into
    16 MiB is two to three times as fast on pages of 2 MiB.
    """
    if num_bytes < _MANY_PAGES or sys.platform != "linux":
        return bytearray(num_bytes)
    try:
        memory = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{num_bytes:,} bytes for a bitset") from error
    with suppress(OSError):  # a kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
