"""The memory that kernels work on: flat byte views, whose shapes are checked before the first value
is processed.

The Python kernels get their buffers here; the C kernel makes the same checks with its own messages,
and the tests require the same results from both. Nothing is copied. Wrong shapes raise ValueError,
and a read-only bitset BufferError. Both are faults of the caller, not of a file, except in
`prefixed_spans`, which reads bytes of a file (`hashing.hash_length_prefixed` raises UnreadableError
instead).
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
# BloomFilter.md: "z is greater than or equal to one and less than 2 to the 31st power"
MAX_BLOCKS = 2**31 - 1

OFFSETS_DECREASE = "offsets decrease"

# From this size on, a bitset has more 4 KiB pages than a processor's TLB holds.
_MANY_PAGES = 4 << 20


def flat(buffer: Buffer) -> memoryview:
    """View `buffer` as one dimension of bytes. Raises BufferError if it is not contiguous."""
    view = memoryview(buffer)
    if not view.c_contiguous:
        raise BufferError("the buffer is not contiguous")
    if not view.nbytes:
        return memoryview(b"")  # memoryview.cast rejects shapes with a zero in them
    return view.cast("B")


def rows(values: Buffer, width: int) -> tuple[memoryview, int]:
    """View `values` as bytes, and count the values of `width` bytes."""
    if width < 1:
        raise ValueError(f"the width of a value must be at least 1 byte, not {width}")
    view = flat(values)
    count, rest = divmod(len(view), width)
    if rest:
        raise ValueError(f"{len(view)} bytes are not a whole number of values of {width} bytes")
    return view, count


def offsets_in(data: Buffer, offsets: Buffer, offset_width: int) -> tuple[memoryview, memoryview]:
    """View `data` as bytes and `offsets` as signed native integers of `offset_width` bytes.

    The first offset and the last one are checked here; the kernel checks their order.
    """
    if offset_width not in (4, 8):
        raise ValueError(f"offsets must have 4 or 8 bytes, not {offset_width}")
    view = flat(data)
    raw = flat(offsets)
    if len(raw) % offset_width:
        raise ValueError(
            f"{len(raw)} bytes are not a whole number of offsets of {offset_width} bytes"
        )
    places = raw.cast("i" if offset_width == 4 else "q")
    if not len(places):
        raise ValueError("there are no offsets; n values need n + 1 offsets")
    if places[0] < 0 or places[-1] > len(view):
        raise ValueError(
            f"offsets from {places[0]} to {places[-1]} exceed the {len(view)} bytes of data"
        )
    return view, places


def key_of_order(order: str, width: int) -> Callable[[bytes], int | bytes]:
    """Return the sort key for values of `width` bytes in an order (see
    `interface.Kernel.extremes_fixed`)."""
    if order in ("signed", "unsigned"):
        if width not in (4, 8):
            raise ValueError(f"integers must have 4 or 8 bytes, not {width}")
        return lambda value: int.from_bytes(value, "little", signed=order == "signed")
    if order == "decimal":
        return lambda value: int.from_bytes(value, "big", signed=True)
    if order != "bytes":
        raise ValueError(f"unknown order {order!r}")
    return bytes


def prefixed_spans(page: memoryview, count: int) -> Iterator[tuple[int, int]]:
    """Iterate over start and end of each of `count` values in a PLAIN BYTE_ARRAY page: a u32
    little-endian length, then that many bytes.

    Raises ValueError if the page ends too early, or if bytes follow the last value.
    """
    if count < 0:
        raise ValueError(f"the count must be at least 0, not {count}")
    end = 0
    for i in range(count):
        start = end + 4
        if start > len(page):
            raise ValueError(
                f"value {i} of {count} has no length: the page ends at byte {len(page):,}"
            )
        end = start + int.from_bytes(page[end:start], "little")
        if end > len(page):
            raise ValueError(
                f"value {i} of {count} ends at byte {end:,}, the page at byte {len(page):,}"
            )
        yield start, end
    if end != len(page):
        raise ValueError(f"the page has {len(page) - end} bytes after its last value")


def hashes_of(hashes: Buffer) -> memoryview:
    """View `hashes` as native unsigned 64-bit integers."""
    view = flat(hashes)
    if len(view) % 8:
        raise ValueError(f"{len(view)} bytes are not a whole number of 64-bit hashes")
    return view.cast("Q")


def blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """View the bytes of the first `num_blocks` blocks of `bitset`."""
    view = flat(bitset)
    if not 1 <= num_blocks <= MAX_BLOCKS:
        raise ValueError(f"a filter has 1 to 2^31 - 1 blocks, not {num_blocks}")
    if num_blocks * BLOCK_BYTES > len(view):
        raise ValueError(f"{num_blocks} blocks do not fit in a bitset of {len(view)} bytes")
    return view[: num_blocks * BLOCK_BYTES]


def writable_blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """View the blocks for writing. Raises BufferError if the bitset is read-only."""
    view = blocks(bitset, num_blocks)
    if view.readonly:
        raise BufferError("the bitset is read-only")
    return view


def even_blocks(bitset: Buffer, num_blocks: int) -> memoryview:
    """View the blocks for folding, which needs an even number of them."""
    if num_blocks % 2:
        raise ValueError(f"folding needs an even number of blocks, not {num_blocks}")
    return blocks(bitset, num_blocks)


def new_bitset(num_bytes: int) -> Buffer:
    """Allocate zeroed memory for a new bitset, on huge pages if it is large and the system has
    them.

    Insertions touch the bitset at random; on pages of 4 KiB most of them need an address look-up
    first. Inserting into 16 MiB is two to three times as fast on pages of 2 MiB.
    """
    if num_bytes < _MANY_PAGES or sys.platform != "linux":
        return bytearray(num_bytes)
    try:
        memory = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"cannot allocate a bitset of {num_bytes:,} bytes") from error
    with suppress(OSError):  # a Linux kernel without huge pages
        memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
