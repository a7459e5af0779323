"""The overlap of row groups' min and max: for a value in one row group's range, the share of the other ranges that also contain it.

The footer does not state how values lie between min and max; they are assumed to lie evenly, by number, or for text and bytes by the
first eight bytes in which the bounds differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, TypeVar

import numpy as np

from sbbf_tool.parquet.statistics import Bounds

_BYTES = 8
Item = TypeVar("Item")


class Reservoir(Generic[Item]):
    """A random sample, of bounded size, of all added items."""

    def __init__(self, most: int) -> None:
        self.kept: list[Item] = []
        self.offered = 0
        self._most = most
        self._random = Random(0)  # the same files give the same answer

    def offer(self, found: Item) -> None:
        self.offered += 1
        if len(self.kept) < self._most:
            self.kept.append(found)
        elif (at := self._random.randrange(self.offered)) < self._most:
            self.kept[at] = found


def overlap(known: Sequence[Bounds]) -> float | None:
    """Return 0 where no two ranges overlap, 1 where all are the same; None for fewer than two."""
    if len(known) < 2:
        return None
    positions = np.array(_positions(known))
    low, high = positions[:, 0], positions[:, 1]
    shared = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    length = (high - low)[:, None]
    meets = shared >= 0
    chance = np.where(length > 0, np.clip(shared, 0, None) / np.where(length > 0, length, 1), meets)
    np.fill_diagonal(chance, 0)
    return float(chance.sum() / (len(known) * (len(known) - 1)))


def _positions(known: Sequence[Bounds]) -> list[tuple[float, float]]:
    """Scale the bounds to between 0, the lowest, and 1, the highest."""
    if isinstance(known[0].low, bytes):
        return _scaled(_numbers([one.low for one in known] + [one.high for one in known], len(known)))
    if isinstance(known[0].low, float):
        most = 1e300  # infinities have no distance
        return _scaled([(min(max(low, -most), most), min(max(high, -most), most)) for low, high in known])
    return _scaled([(one.low, one.high) for one in known])


def _scaled(pairs: Sequence[tuple[int, int]] | Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Scale pairs to between 0 and 1. Integers are divided as integers: they may be too large for a float, their differences too small."""
    least, most = min(low for low, _ in pairs), max(high for _, high in pairs)
    span = most - least
    return [((low - least) / span, (high - least) / span) if span else (0.0, 0.0) for low, high in pairs]


def _numbers(keys: Sequence[bytes], half: int) -> list[tuple[int, int]]:
    # The lowest and the highest key differ at the earliest byte at which any two keys differ.
    lowest, highest = min(keys), max(keys)
    shared = next((at for at, (one, other) in enumerate(zip(lowest, highest, strict=False)) if one != other), len(lowest))
    numbers = [int.from_bytes(key[shared : shared + _BYTES].ljust(_BYTES, b"\0"), "big") for key in keys]
    return list(zip(numbers[:half], numbers[half:], strict=True))
