"""Which units of a segment may hold one of the values of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from sbbf_tool.bloom.spec import block_index
from sbbf_tool.extensions.index.segment import (
    OpenSegment,
    UnitClass,
    damaged,
    find_units,
    parts_of,
)
from sbbf_tool.file.question import Question
from sbbf_tool.file.reuse import Reuse
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.parquet.statistics import Bounds, key_of

_ONE = b"\1"
_FEW = 64
"""Number of hashes up to which numpy is not needed, and all runs of a class are fetched
concurrently."""


class Hits(NamedTuple):
    """The units of a segment that may hold one of the values of a query."""

    flags: bytearray
    """A byte for each unit: 0 if it certainly holds none of them."""
    is_unfit: bool
    """Whether the column of a class has a type that cannot hold one of them."""


def find_hits(segment: OpenSegment, values: Sequence[object]) -> Hits:
    """Query the units of a segment. Raises UnreadableError for a damaged one."""
    segment.ensure_whole()
    flags = bytearray(_ONE * segment.units)
    is_unfit = False
    reuse = Reuse()
    tests: list[_UnitTest] = []
    for group in segment.classes:
        units = slice(group.first, group.first + group.units)
        if not group.type:  # `MissingColumn.answer`
            may_hit = any(map(_is_null, values))
            flags[units] = bytes((may_hit,)) * group.units
            continue
        try:
            question = reuse.question_of(group.column, values, is_strict=False)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(f"no column has the type of a class: {error}", segment.path) from None
        is_unfit = is_unfit or bool(question.unfit)
        # What the column cannot be compared with, null and BOOLEAN are no matter of filters.
        verdicts = {literal.verdict for literal in question.row.special.values()}
        if verdicts <= {None, ABSENT}:
            flags[units] = bytes(group.units)
            tests.append(_UnitTest(segment, group, question, flags))
    runs: list[tuple[UnitClass, int]] = []
    for test in tests:
        runs += test.list_runs()
    segment.expect(runs)
    for test in tests:
        test.mark()
    return Hits(flags, is_unfit)


def _is_null(value: object) -> bool:
    return value is None or str(value).lower() == "null"


class _UnitTest:
    """The test of the units of one class for the hashes of a question."""

    def __init__(
        self, segment: OpenSegment, group: UnitClass, question: Question, flags: bytearray
    ) -> None:
        self._segment = segment
        self._group = group
        self._question = question
        self._flags = flags
        self._hashes = question.row.hashes
        self._ordered = len(question.row.keys)
        """Number of hashes whose values have an order; they come first."""
        self._by_block = _sort_by_block(question, group)
        self._bounds: dict[int, tuple[int, bytes, bytes]] = {}

    def list_runs(self) -> list[tuple[UnitClass, int]]:
        """Return the runs to fetch concurrently; none if there are many."""
        if len(self._by_block) > _FEW:
            return []
        return [(self._group, block) for block, _ in self._by_block]

    def mark(self) -> None:
        """Mark the units that may hold one of the values."""
        if len(self._hashes) > _FEW:
            self._mark_by_many()
            return
        for block, places_of in self._by_block:
            run = self._segment.run(self._group, block)
            for place in places_of:
                self._mark_by_one(run, place)

    def _mark_by_one(self, run: memoryview, place: int) -> None:
        """Mark the units for the hash at this place, which selects the block of the run."""
        start = self._group.first
        for flags in find_units(run, self._hashes[place]):
            at = flags.find(_ONE)
            while at >= 0:
                if not self._flags[start + at] and self._is_within(start + at, place):
                    self._flags[start + at] = 1
                at = flags.find(_ONE, at + 1)
            start += len(flags)

    def _is_within(self, unit: int, place: int) -> bool:
        """Return whether the value of a hash is within the bounds of a unit."""
        if unit not in self._bounds:
            # Those of a row group of the file of units are read together.
            rows = self._segment.read_units(
                "has_bounds", "low", "high", only=lambda rows: unit in rows
            )
            for number, has_bounds, low, high in rows:
                self._bounds[number] = (has_bounds, low, high)
        places_of = self._places_within(*self._bounds[unit])
        return place in places_of or place >= self._ordered

    def _places_within(self, has_bounds: int, low: bytes, high: bytes) -> range:
        """Return the places of the hashes whose values have an order, and are within bounds."""
        if not has_bounds:
            return range(self._ordered)
        low_key = key_of(self._group.column, low)
        high_key = key_of(self._group.column, high)
        if low_key is None or high_key is None:
            return range(self._ordered)
        return self._question.candidates(Bounds(low_key, high_key)).ordered

    def _mark_by_many(self) -> None:
        """Mark the units by arrays, for hashes in thousands of blocks. It ends when no unit is left
        that a further hash could mark."""
        import numpy as np

        group = self._group
        spans = list(self._list_spans())
        starts = np.array([span.start for span in spans])
        stops = np.array([span.stop for span in spans])
        has_unordered = self._ordered < len(self._hashes)
        is_open = (starts < stops) | has_unordered
        bases = []
        for count, step in parts_of(group.units):
            numbers = np.arange(count, dtype=np.uint64)
            bases.append(numbers * np.uint64(step >> 32) << np.uint64(32))
        for block, places_of in self._by_block:
            run = self._segment.run(group, block)
            for place in places_of:
                flags = b"".join(find_units(run, self._hashes[place], bases))
                marked: Any = np.flatnonzero(np.frombuffer(flags, np.bool_) & is_open)
                if place < self._ordered:
                    marked = marked[(starts[marked] <= place) & (place < stops[marked])]
                is_open[marked] = False
                for unit in marked.tolist():
                    self._flags[group.first + unit] = 1
            if not is_open.any():
                return

    def _list_spans(self) -> Iterator[range]:
        """Yield the places of the hashes within the bounds of each unit; see `_places_within`."""
        first = self._group.first
        stop = first + self._group.units
        rows = self._segment.read_units(
            "has_bounds",
            "low",
            "high",
            only=lambda rows: rows.start < stop and first < rows.stop,
        )
        for number, has_bounds, low, high in rows:
            if first <= number < stop:
                yield self._places_within(has_bounds, low, high)


def _sort_by_block(question: Question, group: UnitClass) -> list[tuple[int, list[int]]]:
    """Return the places of the hashes of a question by the block that they select, in the order of
    the blocks."""
    hashes = question.row.hashes

    def block_of(place: int) -> int:
        return block_index(hashes[place], group.blocks)

    places = sorted(range(len(hashes)), key=block_of)
    return [(block, list(places_of)) for block, places_of in groupby(places, block_of)]
