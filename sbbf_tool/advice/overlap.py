"""The overlap of row groups' ranges, from min to max: for a value in one range, the share of the other ranges that also contain the value.

The footer does not state how values are distributed between min and max. Numbers are assumed to be distributed uniformly; so are the
eight bytes of text or byte values that follow the common prefix of the bounds.
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
    """A random sample of all items offered, with a bounded size."""

    def __init__(self, capacity: int) -> None:
        self.items: list[Item] = []
        self.total = 0
        self._capacity = capacity
        self._random = Random(0)  # a fixed seed, so that the same files give the same answer

    def offer(self, item: Item) -> None:
        self.total += 1
        if len(self.items) < self._capacity:
            self.items.append(item)
        elif (index := self._random.randrange(self.total)) < self._capacity:
            self.items[index] = item


def measure_overlap(ranges: Sequence[Bounds]) -> float | None:
    """Measure the overlap: 0 if no two ranges overlap, 1 if all are the same; None for fewer than two ranges."""
    if len(ranges) < 2:
        return None
    positions = np.array(_scale_bounds(ranges))
    low, high = positions[:, 0], positions[:, 1]
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    length = (high - low)[:, None]
    meets = common >= 0
    chance = np.where(length > 0, np.clip(common, 0, None) / np.where(length > 0, length, 1), meets)
    np.fill_diagonal(chance, 0)
    return float(chance.sum() / (len(ranges) * (len(ranges) - 1)))


def _scale_bounds(ranges: Sequence[Bounds]) -> list[tuple[float, float]]:
    """Scale the bounds so that the lowest becomes 0 and the highest 1."""
    if isinstance(ranges[0].low, bytes):
        return _scale_pairs(_convert_keys([bounds.low for bounds in ranges] + [bounds.high for bounds in ranges], len(ranges)))
    if isinstance(ranges[0].low, float):
        most = 1e300  # infinities have no finite distance
        return _scale_pairs([(min(max(low, -most), most), min(max(high, -most), most)) for low, high in ranges])
    return _scale_pairs([(bounds.low, bounds.high) for bounds in ranges])


def _scale_pairs(pairs: Sequence[tuple[int, int]] | Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Scale pairs to between 0 and 1.

    Integers are divided as integers, because they may be too large for a float and their differences too small.
    """
    least, most = min(low for low, _ in pairs), max(high for _, high in pairs)
    span = most - least
    return [((low - least) / span, (high - least) / span) if span else (0.0, 0.0) for low, high in pairs]


def _convert_keys(keys: Sequence[bytes], half: int) -> list[tuple[int, int]]:
    """Convert the keys to numbers, and pair the numbers of the first half with those of the second half."""
    # The lowest and the highest key differ at the first byte at which any two keys differ.
    lowest, highest = min(keys), max(keys)
    prefix = next((index for index, (first, second) in enumerate(zip(lowest, highest, strict=False)) if first != second), len(lowest))
    numbers = [int.from_bytes(key[prefix : prefix + _BYTES].ljust(_BYTES, b"\0"), "big") for key in keys]
    return list(zip(numbers[:half], numbers[half:], strict=True))
