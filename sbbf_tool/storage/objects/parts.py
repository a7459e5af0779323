"""The parts that a new version of an object consists of: S3's rules for multipart uploads.

A part has 5 MiB to 5 GiB, the last may be smaller, and there are at most 10,000.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MIB = 1 << 20
LEAST_PART, MOST_PARTS = 5 * MIB, 10_000

# A part that the store copies takes no memory here, and several large parts are faster than one.
_COPY_PART = 512 * MIB
_UPLOAD_PART = 16 * MIB


class Part(NamedTuple):
    """Bytes `start` to `end` of the new object; `is_copy` where the old object has them at the same offset and the store copies them."""

    start: int
    end: int
    is_copy: bool


def plan_parts(keep: int, size: int, can_copy: bool) -> tuple[Part, ...] | None:
    """Plan the parts of an object of `size` bytes whose first `keep` are the old object's; return None where it needs a single request."""
    if can_copy and keep >= LEAST_PART:
        return (*_split(0, keep, _COPY_PART, True), *_split(keep, size, _UPLOAD_PART, False))
    return tuple(_split(0, size, _UPLOAD_PART, False)) if size >= LEAST_PART else None


def _split(start: int, end: int, usual: int, is_copy: bool) -> Iterator[Part]:
    """Split a range into parts of nearly the same size, so that none falls below the minimum."""
    size = end - start
    if not size:
        return
    # Half the number, since the object also has parts of the other kind.
    count = -(-size // max(usual, -(-size // (MOST_PARTS // 2))))
    for number in range(count):
        yield Part(start + size * number // count, start + size * (number + 1) // count, is_copy)
