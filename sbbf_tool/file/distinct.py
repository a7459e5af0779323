"""The number of distinct values in a column chunk, and the share of them in another chunk, from a bounded number of hashes.

A hash behaves like a random number, so the k smallest distinct hashes of a set are a random sample of the set, and the k-th smallest shows
how dense the hashes are: n is about (k - 1) / (k-th smallest / 2^64), with a standard error of 1 / sqrt(k - 2) (Bar-Yossef et al.,
"Counting distinct elements in a data stream", 2002; Beyer et al., "On synopses for distinct-value estimation", 2007). A set of fewer
than k values is counted exactly. Two such samples show what share of one set is in the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet import values
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.pages import is_dictionary_encoded
from sbbf_tool.parquet.plain_pages import PlainChunk

if TYPE_CHECKING:
    from numpy.typing import NDArray

SKETCH_SIZE = 1 << 16
"""Hashes in a sketch; the standard error is 0.4 %."""
STANDARD_ERROR = 1 / sqrt(SKETCH_SIZE - 2)
COMPARED = 1 << 10
"""Hashes used to compare two chunks."""
WHOLE_BYTES = 256 << 20
"""Largest chunk that is read as a whole; only the beginning of a larger chunk is read."""
PART_VALUES = 1 << 22

DICTIONARY, EXACT, ESTIMATED, EXTRAPOLATED = "dictionary", "counted", "estimated", "extrapolated"
_HASHES = 2.0**64


class Sketch:
    """The smallest distinct hashes of a stream."""

    def __init__(self, size: int = SKETCH_SIZE) -> None:
        self._size = size
        self._smallest: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.is_complete = True
        """Whether no hash was dropped, so that the count is exact."""

    def add(self, hashes: memoryview) -> None:
        fresh = np.frombuffer(hashes, np.uint64)
        if not self.is_complete:
            fresh = fresh[fresh < self._smallest[-1]]
        merged: NDArray[np.uint64] = np.unique(np.concatenate((self._smallest, fresh)))
        if len(merged) > self._size:
            merged, self.is_complete = merged[: self._size], False
        self._smallest = merged

    @property
    def ndv(self) -> float:
        if self.is_complete:
            return float(len(self._smallest))
        return (self._size - 1) * _HASHES / float(self._smallest[-1])

    def smallest(self, count: int) -> tuple[NDArray[np.uint64], bool]:
        """Return up to `count` of the hashes, and whether these are all."""
        return self._smallest[:count].copy(), self.is_complete and len(self._smallest) <= count


@dataclass(frozen=True, slots=True)
class Distinct:
    """The distinct values of one chunk."""

    values: int
    """Non-null values of the chunk."""
    ndv: float
    how: str
    """`dictionary`: the length of a dictionary that holds all values. `counted`: every value was read. `estimated`: every value was read,
    and the number has the sketch's error. `extrapolated`: an upper bound, from the beginning of the chunk.
    """
    hashes: Any
    """The smallest hashes, sorted."""
    has_all_hashes: bool


def count_distinct(file: ParquetFile, row_group: int, column: Column, count: int) -> Distinct:
    """Count the distinct values among the `count` non-null values of a chunk.

    Reads its dictionary or the whole chunk, or only the beginning of a very large chunk. Raises UnreadableError.
    """
    sketch = Sketch()
    pages = file.pages(row_group, column)
    meta = pages.meta
    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        if is_dictionary_encoded(meta):
            page = PlainChunk(pages.read, column, meta, pages.ensure_size).dictionary()
            if page is not None:
                sketch.add(page.hashes)
                return Distinct(count, float(len(page)), DICTIONARY, *sketch.smallest(COMPARED))
        enough = None if pages.bytes <= WHOLE_BYTES else PART_VALUES
        runs = values.read_chunk(pages.open_arrow, file.footer, row_group, column, meta)
        ndv, num_values, is_all = _estimate_ndv(sketch, (run.hashes() for run in runs), enough, count)
    how = EXTRAPOLATED if not is_all else EXACT if sketch.is_complete else ESTIMATED
    return Distinct(num_values if is_all else count, ndv, how, *sketch.smallest(COMPARED))


def _estimate_ndv(sketch: Sketch, runs: Iterable[memoryview], enough: int | None, count: int) -> tuple[float, int, bool]:
    """Return the number of distinct values, the number of values read (at least `enough`), and whether those were all values.

    In repetitive data, new values become rarer as reading continues. The rate of new values in the second half of the values read,
    extrapolated over the rest, therefore gives an upper bound: a filter sized for it is not too small.
    """
    num_values = half = 0
    ndv_of_half = 0.0
    for hashes in runs:
        if enough is not None and num_values >= enough:
            slope = max(0.0, sketch.ndv - ndv_of_half) / max(1, num_values - half)
            return min(float(count), sketch.ndv + slope * (count - num_values)), num_values, False
        sketch.add(hashes)
        num_values += len(hashes)
        if enough is not None and num_values <= enough / 2:
            half, ndv_of_half = num_values, sketch.ndv
    return min(sketch.ndv, float(num_values)), num_values, True


def containment(first: Distinct, second: Distinct) -> float | None:
    """Return the share of the distinct values of `first` that `second` also holds; None if `first` has none to compare."""
    limit = min((float(distinct.hashes[-1]) for distinct in (first, second) if not distinct.has_all_hashes), default=_HASHES)
    hashes = first.hashes[first.hashes <= limit]
    return float(np.isin(hashes, second.hashes, assume_unique=True).mean()) if len(hashes) else None
