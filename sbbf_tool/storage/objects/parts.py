"""The parts that a new version of an object consists of: S3's rules for multipart uploads.

A part has 5 MiB to 5 GiB, except that the last may be smaller; an upload has at most 10,000 parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

MIB = 1 << 20
LEAST_PART, MOST_PARTS = 5 * MIB, 10_000

# A part that the store copies takes no memory of this process; several large parts are faster than one.
_COPY_PART = 512 * MIB
_UPLOAD_PART = 16 * MIB


class Part(NamedTuple):
    """Bytes `start` to `end` of the new object. If `is_copy`, the store copies them from the same offset of the old object."""

    start: int
    end: int
    is_copy: bool


def plan_parts(keep: int, size: int, can_copy: bool) -> tuple[Part, ...] | None:
    """Plan the parts of an object of `size` bytes that keeps the first `keep` bytes of the old one; None if a single request is enough."""
    if can_copy and keep >= LEAST_PART:
        return (*_split(0, keep, _COPY_PART, True), *_split(keep, size, _UPLOAD_PART, False))
    return tuple(_split(0, size, _UPLOAD_PART, False)) if size >= LEAST_PART else None


def _split(start: int, end: int, usual: int, is_copy: bool) -> Iterator[Part]:
    """Split a range into parts of nearly the same size, so that each has the minimum size."""
    size = end - start
    if not size:
        return
    # At most half of the parts, since the object also has parts of the other kind.
    count = -(-size // max(usual, -(-size // (MOST_PARTS // 2))))
    for number in range(count):
        yield Part(start + size * number // count, start + size * (number + 1) // count, is_copy)
