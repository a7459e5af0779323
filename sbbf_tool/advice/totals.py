"""What `advise` adds up over many files: a column, and how far the ranges of its row groups, from
min to max, overlap.

The size of a total does not depend on the number of files: it consists of sums, histograms and a
random sample of bounds. The overlap is, for a value in one range, the share of the other ranges
that also contain the value. The footer does not state how values are distributed between min and
max. Numbers are assumed to be distributed uniformly; so are the eight bytes of text or byte values
that follow the common prefix of the bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from sbbf_tool.advice.survey import ChunkSurvey, ColumnSurvey, FilterSurvey
from sbbf_tool.bloom import sizing
from sbbf_tool.file.distinct import Distinct, containment
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.statistics import Bounds


@dataclass(slots=True)
class _Sum:
    filters: int = 0
    bytes: int = 0
    fpp: float = 0.0
    worst_fpp: float = 0.0

    def add(self, filters: int, num_bytes: int, fpp: float, worst_fpp: float) -> None:
        self.filters += filters
        self.bytes += num_bytes
        self.fpp += fpp
        self.worst_fpp = max(self.worst_fpp, worst_fpp)


@dataclass(slots=True)
class Folds:
    """Sums over filters, in memory that does not grow with their number."""

    fpp: float
    """Target false-positive rate."""
    bytes_at_target: int = 0
    """Bytes of the bitsets, each folded to the smallest size that meets the target, if any does."""
    _steps: list[_Sum] = field(default_factory=list)
    """For each number of halvings, the filters that can be folded so often."""
    _ends: list[_Sum] = field(default_factory=list)
    """For each number of halvings, the filters that can be folded so often and no further."""

    def add(self, sizes: tuple[tuple[int, float], ...]) -> None:
        """Add a filter by the bytes and the false-positive rate of each of its folds, beginning
        with the filter itself."""
        bytes_at_target, _ = sizes[0]
        for num_bytes, fpp in sizes:
            if fpp <= self.fpp:
                bytes_at_target = num_bytes
        self.bytes_at_target += bytes_at_target
        while len(self._steps) < len(sizes):
            self._steps.append(_Sum())
            self._ends.append(_Sum())
        for step, (num_bytes, fpp) in zip(self._steps, sizes, strict=False):
            step.add(1, num_bytes, fpp, fpp)
        smallest, fpp = sizes[-1]
        self._ends[len(sizes) - 1].add(1, smallest, fpp, fpp)

    def sizes(self) -> Iterator[FoldedSize]:
        """Yield the totals at each number of halvings; a filter that cannot be folded so often
        keeps its smallest size."""
        for halvings, step in enumerate(self._steps):
            total = _Sum()
            for part in (step, *self._ends[:halvings]):
                total.add(part.filters, part.bytes, part.fpp, part.worst_fpp)
            yield FoldedSize(halvings, total.bytes, total.fpp / total.filters, total.worst_fpp)


class FoldedSize(Frozen):
    """The filters of one column after a number of halvings, exactly, from their bits."""

    halvings: int
    bytes: int
    """Bytes of all bitsets; a filter that cannot be folded so often keeps its smallest size."""
    mean_fpp: float
    worst_fpp: float


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
            return
        index = self._random.randrange(self.total)
        if index < self._capacity:
            self.items[index] = item


def measure_overlap(ranges: Sequence[Bounds]) -> float | None:
    """Measure the overlap: 0 if no two ranges overlap, 1 if all are the same; None for fewer than
    two ranges."""
    if len(ranges) < 2:
        return None
    positions = np.array(_scale_bounds(ranges))
    low = positions[:, 0]
    high = positions[:, 1]
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    length = (high - low)[:, None]
    meets = common >= 0
    has_length = length > 0
    share = np.clip(common, 0, None) / np.where(has_length, length, 1)
    chance = np.where(has_length, share, meets)
    np.fill_diagonal(chance, 0)
    return float(chance.sum() / (len(ranges) * (len(ranges) - 1)))


def _scale_bounds(ranges: Sequence[Bounds]) -> list[tuple[float, float]]:
    """Scale the bounds so that the lowest becomes 0 and the highest 1."""
    if isinstance(ranges[0].low, bytes):
        lows = [bounds.low for bounds in ranges]
        highs = [bounds.high for bounds in ranges]
        numbers = _convert_keys(lows + highs)
        pairs = zip(numbers[: len(lows)], numbers[len(lows) :], strict=True)
        return _scale_pairs(list(pairs))
    if isinstance(ranges[0].low, float):
        finite = []
        for low, high in ranges:
            finite.append((_make_finite(low), _make_finite(high)))
        return _scale_pairs(finite)
    return _scale_pairs([(bounds.low, bounds.high) for bounds in ranges])


_MOST = 1e300


def _make_finite(number: float) -> float:
    """Limit an infinity, which has no finite distance to any number."""
    return min(max(number, -_MOST), _MOST)


def _scale_pairs(
    pairs: Sequence[tuple[int, int]] | Sequence[tuple[float, float]],
) -> list[tuple[float, float]]:
    """Scale pairs to between 0 and 1.

    Integers are divided as integers, because they may be too large for a float and their
    differences too small.
    """
    least = min(low for low, _ in pairs)
    span = max(high for _, high in pairs) - least
    if not span:
        return [(0.0, 0.0)] * len(pairs)
    return [((low - least) / span, (high - least) / span) for low, high in pairs]


def _convert_keys(keys: Sequence[bytes]) -> list[int]:
    """Convert the eight bytes that follow the common prefix of the keys to numbers."""
    # The lowest and the highest key differ at the first byte at which any two keys differ.
    prefix = _common_length(min(keys), max(keys))
    numbers = []
    for key in keys:
        tail = key[prefix : prefix + _BYTES].ljust(_BYTES, b"\0")
        numbers.append(int.from_bytes(tail, "big"))
    return numbers


def _common_length(first: bytes, second: bytes) -> int:
    """Return the length of the longest common prefix."""
    for index, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return index
    return len(first)


SAMPLED_FILES = 4
SAMPLED_BOUNDS = 512


class FilterCost(NamedTuple):
    """Estimated bytes of the filters of a column."""

    largest_bitset: int
    all_filters: int
    """All filters with their headers."""
    missing_filters: int
    """Those of row groups without a filter."""
    mean_fpp: float
    """The expected FPP of all filters, weighted by row group."""


@dataclass(slots=True)
class Totals:
    """A column over all files."""

    column: Column
    folds: Folds
    """What its filters take, and would take at smaller sizes."""
    row_groups: int = 0
    """Row groups in which the column has values."""
    bytes: int = 0
    row_group_bytes: int = 0
    most_values: int = 0
    dictionaries: int = 0
    """Row groups whose dictionary holds all values; `counted_dictionaries` is the number of those
    whose dictionary states its length."""
    counted_dictionaries: int = 0
    most_in_dictionary: int = 0
    row_groups_by_ndv: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """Row groups by number of distinct values, if a dictionary states it (large ones are rounded
    up), and by whether they have a filter."""
    row_groups_by_values: Counter[tuple[int, bool]] = field(default_factory=Counter)
    """All other row groups by number of values, and by the same."""
    footer_bytes: int = 0
    """Bytes of the footers of the files in which row groups lack a useful filter."""
    ranges: Reservoir[Bounds] = field(default_factory=lambda: Reservoir(SAMPLED_BOUNDS))
    filters: int = 0
    unreadable_filters: int = 0
    filter_bytes: int = 0
    worst_fpp: float = 0.0
    sum_of_fpp: float = 0.0
    obstacle: str | None = None
    has_nulls: bool = False
    """Whether a row group holds only nulls."""
    values: int = 0
    value_bytes: int = 0
    """Uncompressed bytes of these values."""
    is_geometry: bool = False
    arrow_types: set[str | None] = field(default_factory=set)
    """The column's types in the files' ARROW:schema; None for a file without one."""
    samples: list[Distinct] = field(default_factory=list)
    sample_files: Reservoir[str] = field(default_factory=lambda: Reservoir(SAMPLED_FILES))
    """Random sample of the files that hold values of the column."""

    def add(self, file: str, survey: ColumnSurvey, footer_bytes: int) -> None:
        if survey.chunks:
            self.sample_files.offer(file)
        num_useful = 0
        for stored in survey.filters:
            if stored.fpp is not None and stored.fpp <= sizing.SATURATED_FPP:
                num_useful += 1
        if num_useful < len(survey.chunks):
            self.footer_bytes += footer_bytes
        self.obstacle = self.obstacle or survey.obstacle
        self.has_nulls = self.has_nulls or survey.has_nulls
        self.is_geometry = self.is_geometry or survey.is_geometry
        self.arrow_types.add(survey.arrow_type)
        self._add_chunks(survey.chunks)
        self._add_filters(survey.filters)

    def _add_chunks(self, chunks: Iterable[ChunkSurvey]) -> None:
        for chunk in chunks:
            self.row_groups += 1
            self.bytes += chunk.bytes
            self.values += chunk.values
            self.value_bytes += chunk.value_bytes
            self.row_group_bytes += chunk.row_group_bytes
            self.most_values = max(self.most_values, chunk.values)
            self.dictionaries += chunk.dictionary is not None
            if chunk.dictionary is not None and chunk.dictionary >= 0:
                self.counted_dictionaries += 1
                self.most_in_dictionary = max(self.most_in_dictionary, chunk.dictionary)
                self.row_groups_by_ndv[_round_up(chunk.dictionary), chunk.has_filter] += 1
            else:
                self.row_groups_by_values[_round_up(chunk.values), chunk.has_filter] += 1
            if chunk.bounds is not None:
                self.ranges.offer(chunk.bounds)

    def _add_filters(self, filters: Iterable[FilterSurvey]) -> None:
        for stored in filters:
            self.filters += 1
            self.filter_bytes += stored.bytes
            if stored.fpp is None:
                self.unreadable_filters += 1
                continue
            self.worst_fpp = max(self.worst_fpp, stored.fpp)
            self.sum_of_fpp += stored.fpp
            self.folds.add(stored.sizes)

    @property
    def mean_fpp(self) -> float | None:
        readable = self.filters - self.unreadable_filters
        return self.sum_of_fpp / readable if readable else None

    @property
    def share_after_statistics(self) -> float:
        """Share of the row groups that min and max leave to read, for a value in the range of at
        least one row group."""
        if not self.row_groups:
            return 0.0
        bounded = self.ranges.total
        chance = measure_overlap(self.ranges.items)
        remaining: float = bounded
        if chance is not None:
            remaining = 1 + (bounded - 1) * chance
        return (self.row_groups - bounded + remaining) / self.row_groups

    @property
    def distinct_share(self) -> float | None:
        """Share of distinct values among a row group's values, averaged over the samples; None
        without samples."""
        most = max([sample.values for sample in self.samples], default=0)
        shares = []
        for sample in self.samples:
            if sample.values and sample.values * 2 >= most:
                share = sample.ndv / sample.values
                shares.append(share)
        return _mean(shares)

    @property
    def ndv(self) -> float | None:
        """Number of distinct values in the row group with the most."""
        if not self.row_groups_by_values:
            return max(self.most_in_dictionary, 0.0)
        share = self.distinct_share
        if share is None:
            return None
        return max(self.most_in_dictionary, share * self.most_values)

    @property
    def repetition(self) -> float | None:
        """Share of one row group's distinct values that another also holds, averaged over the
        samples; None for fewer than two samples."""
        shares = []
        for index, first in enumerate(self.samples):
            for second in self.samples[:index]:
                shares.append(containment(first, second))
                shares.append(containment(second, first))
        return _mean([share for share in shares if share is not None])

    def estimate_cost(self, fpp: float) -> FilterCost | None:
        """Estimate what filters with this FPP take; None if the NDV is unknown."""
        ndv = self.ndv
        if ndv is None:
            return None
        share = self.distinct_share or 0.0
        row_groups: Counter[tuple[float, bool]] = Counter()
        for (number, has_filter), count in self.row_groups_by_ndv.items():
            row_groups[float(number), has_filter] += count
        for (number, has_filter), count in self.row_groups_by_values.items():
            row_groups[number * share, has_filter] += count
        all_filters = 0
        missing_filters = 0
        sum_of_fpp = 0.0
        for (estimate, has_filter), count in row_groups.items():
            values = max(1.0, min(estimate, ndv))
            bitset = sizing.bytes_for(values, fpp)
            sum_of_fpp += count * sizing.fpp_of(values, bitset)
            num_bytes = count * (_HEADER_BYTES + bitset)
            all_filters += num_bytes
            if not has_filter:
                missing_filters += num_bytes
        largest_bitset = sizing.bytes_for(max(1.0, ndv), fpp)
        mean_fpp = sum_of_fpp / max(1, row_groups.total())
        return FilterCost(largest_bitset, all_filters, missing_filters, mean_fpp)


_HEADER_BYTES = 16
_STEPS = 1 << 10


def _mean(shares: Sequence[float]) -> float | None:
    if not shares:
        return None
    return sum(shares) / len(shares)


def _round_up(number: int) -> int:
    """Round up by at most a thousandth, so that a histogram has few different numbers."""
    step = max(1, (1 << number.bit_length()) // _STEPS)
    return -(-number // step) * step
