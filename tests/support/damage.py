"""Bytes and documents with random damage. The caller seeds the random numbers, so that a failure is
there again at the next run."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

BYTES = (0, 1, 0x0C, 0x10, 0x19, 0x1C, 0x7F, 0x80, 0xFC, 0xFF)
"""Ends of ranges, and types of fields and lists in compact Thrift."""
TEXTS = (b"null", b'"', b"{}", b"[", b"\\u0000", b"%00", b"-1", b"9" * 20)


def damage(data: bytes, chance: random.Random) -> bytes:
    """Flip, overwrite, remove or insert a few bytes; rarely cut the rest off."""
    damaged = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4, 8))):
        damaged = damaged or bytearray(1)
        at = chance.randrange(len(damaged))
        match chance.randrange(13):
            case 0 | 1:
                damaged[at] ^= 1 << chance.randrange(8)
            case 2 | 3:
                damaged[at] = chance.choice([*BYTES, chance.randrange(256)])
            case 4 | 5:  # the largest numbers, as varints have them
                damaged[at : at + chance.randrange(1, 10)] = b"\xff" * chance.randrange(
                    1, 12
                ) + bytes([chance.choice((0, 1, 0x0F, 0x7F))])
            case 6 | 7:
                del damaged[at : at + chance.randrange(1, 20)]
            case 8 | 9:
                damaged[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 10 | 11:
                damaged[at:at] = chance.choice(TEXTS)
            case _:
                damaged[at:] = b"\0"
    return bytes(damaged)


def places_of(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to each value below the root of a document."""
    for key, value in (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    ):
        yield (*place, key)
        yield from places_of(value, (*place, key))


def with_value(tree: Any, place: tuple[Any, ...], value: object) -> Any:
    """Return a document with another value at a place."""
    changed = target = copy.deepcopy(tree)
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    return changed
