"""The number of distinct values in a column chunk, and the share of them in another chunk, from a
bounded number of hashes.

A hash behaves like a random number, so the k smallest distinct hashes of a set are a random sample
of the set, and the k-th smallest shows how dense the hashes are: n is about (k - 1) / (k-th
smallest / 2^64), with a standard error of 1 / sqrt(k - 2) (Bar-Yossef et al., "Counting distinct
elements in a data stream", 2002; Beyer et al., "On synopses for distinct-value estimation", 2007).
A set of fewer than k values is counted exactly. Two such samples show what share of one set is in
the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

SKETCH_SIZE = 1 << 14
"""Hashes in a sketch; the standard error is 0.8 %."""
STANDARD_ERROR = 1 / sqrt(SKETCH_SIZE - 2)
COMPARED = 1 << 10
"""Hashes used to compare two chunks."""
WHOLE_BYTES = 256 << 20
"""Largest chunk that is read as a whole; only the beginning of a larger chunk is read."""
PART_VALUES = 1 << 22

DICTIONARY = "dictionary"
EXACT = "counted"
ESTIMATED = "estimated"
EXTRAPOLATED = "extrapolated"
_HASHES = 2.0**64
_MANY = 4
"""Times the size of a sketch: as many hashes wait to be sorted together."""


class Sketch:
    """The smallest distinct hashes of a stream."""

    def __init__(self) -> None:
        self._smallest: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._is_complete = True
        self._runs: list[NDArray[np.uint64]] = []
        """Hashes that are not yet in `_smallest`; sorting many together takes less time."""
        self._waiting = 0

    def add(self, hashes: memoryview) -> None:
        fresh = np.frombuffer(hashes, np.uint64)
        if not self._is_complete:
            fresh = fresh[fresh < self._smallest[-1]]
        self._runs.append(fresh)
        self._waiting += len(fresh)
        if self._waiting >= _MANY * SKETCH_SIZE:
            self._merge()

    def _merge(self) -> None:
        """Move the waiting hashes into `_smallest`."""
        if not self._waiting:
            return
        hashes = np.concatenate((self._smallest, *self._runs))
        self._runs = []
        self._waiting = 0
        # Most of many hashes are too large to be kept. They need not be sorted if enough of the
        # others are distinct.
        smaller = hashes
        if len(hashes) > 3 * SKETCH_SIZE:
            limit = 2 * SKETCH_SIZE * _HASHES / len(hashes)
            smaller = hashes[hashes < np.uint64(limit)]
        distinct_hashes = deduplicate(smaller)
        drops_some = len(smaller) < len(hashes)
        if drops_some and len(distinct_hashes) < SKETCH_SIZE:
            distinct_hashes = deduplicate(hashes)
            drops_some = False
        if drops_some or len(distinct_hashes) > SKETCH_SIZE:
            self._is_complete = False
        self._smallest = distinct_hashes[:SKETCH_SIZE]

    @property
    def is_complete(self) -> bool:
        """Whether no hash was dropped, so that the count is exact."""
        self._merge()
        return self._is_complete

    @property
    def ndv(self) -> float:
        if self.is_complete:
            return float(len(self._smallest))
        largest_kept = float(self._smallest[-1])
        return (SKETCH_SIZE - 1) * _HASHES / largest_kept

    def smallest(self) -> tuple[NDArray[np.uint64], bool]:
        """Return the hashes by which chunks are compared, and whether these are all."""
        self._merge()
        are_all = self._is_complete and len(self._smallest) <= COMPARED
        return self._smallest[:COMPARED].copy(), are_all


def deduplicate(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sort the hashes and drop repetitions. numpy's `unique` takes ten times as long, because it
    builds a hash table."""
    ordered = np.sort(hashes)
    is_new = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


class Distinct(Frozen):
    """The distinct values of one chunk."""

    values: int
    """Non-null values of the chunk."""
    ndv: float
    how: str
    """`dictionary`: the distinct entries of a dictionary that holds all values, with the sketch's
    error if many of them repeat. `counted`: every value was read. `estimated`: every value was
    read, and the number has the sketch's error. `extrapolated`: an upper bound, from the beginning
    of the chunk.
    """
    hashes: Any
    """The smallest hashes, sorted."""
    has_all_hashes: bool


def count_distinct(
    file: ParquetFile, row_group: int, column: Column, count: int, enough: int | None = None
) -> Distinct:
    """Count the distinct values among the `count` non-null values of a chunk.

    Reads its dictionary if that has all values, else the whole chunk, or only the beginning of a
    very large chunk: `enough` values or a few more if `enough` is given. Raises UnreadableError.
    """
    sketch = Sketch()
    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        values = StoredValues(file, (row_group, column.index))
        dictionary = values.dictionary
        if dictionary is not None:
            sketch.add(dictionary.hashes)
            ndv = float(len(dictionary))
            # DuckDB 2.0.1 repeats entries in the dictionary of an ENUM.
            least_ndv = ndv * (1 - 5 * STANDARD_ERROR)
            if sketch.is_complete or sketch.ndv < least_ndv:
                ndv = sketch.ndv
            return Distinct(count, ndv, DICTIONARY, *sketch.smallest())
        meta = file.footer.chunk_meta(row_group, column.index)
        if enough is None and meta.bytes > WHOLE_BYTES:
            enough = PART_VALUES
        with closing(values.stored_hashes()) as runs:
            ndv, num_values, is_all = _estimate_ndv(sketch, runs, enough, count)
    if not is_all:
        how = EXTRAPOLATED
    elif sketch.is_complete:
        how = EXACT
    else:
        how = ESTIMATED
    most_values = max(num_values, count)
    return Distinct(most_values, ndv, how, *sketch.smallest())


def _estimate_ndv(
    sketch: Sketch, runs: Iterable[memoryview], enough: int | None, count: int
) -> tuple[float, int, bool]:
    """Return the number of distinct values, the number of values read (at least `enough`), and
    whether those were all values.

    A dictionary stands for its values once, so fewer values than `count` may be all values.

    In repetitive data, new values become rarer as reading continues. The rate of new values in the
    second half of the values read, extrapolated over the rest, therefore gives an upper bound: a
    filter sized for it is not too small.
    """
    num_values = 0
    half = 0
    ndv_of_half = 0.0
    for hashes in runs:
        if enough is not None and num_values >= enough:
            new_values = max(0.0, sketch.ndv - ndv_of_half)
            rate = new_values / max(1, num_values - half)
            ndv = sketch.ndv + rate * (count - num_values)
            return min(float(count), ndv), num_values, False
        sketch.add(hashes)
        num_values += len(hashes)
        if enough is not None and num_values <= enough / 2:
            half = num_values
            ndv_of_half = sketch.ndv
    return min(sketch.ndv, float(num_values)), num_values, True


def containment(first: Distinct, second: Distinct) -> float | None:
    """Return the share of the distinct values of `first` that `second` also holds; None if `first`
    has none to compare."""
    partial = (distinct for distinct in (first, second) if not distinct.has_all_hashes)
    limits = (float(distinct.hashes[-1]) for distinct in partial)
    limit = min(limits, default=_HASHES)
    hashes = first.hashes[first.hashes <= limit]
    if not len(hashes):
        return None
    are_in_second = np.isin(hashes, second.hashes, assume_unique=True)
    return float(are_in_second.mean())
