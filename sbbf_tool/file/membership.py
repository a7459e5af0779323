"""The membership check: a filter is queried for every stored value of its column chunk, and for
keys that the chunk does not hold.

The keys that measure the false-positive rate are random values of the column's own width, not
random hashes. So the whole path from a value to its bits is measured, and agreement with the
estimate, which is computed from the bits alone, is meaningful. A column with few possible values
may hold some of the keys; those keys are omitted.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sbbf_tool.bloom import hashing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file import drafts, misses
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.wrong_statistics import count_by_pages
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import equals, literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.statistics import StatisticsCheck
from sbbf_tool.reports.findings import FilterVerification

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.bloom.interface import ValueHasher
    from sbbf_tool.parquet.values import PlainValues

ABSENT_KEYS = 1 << 14
_MAX_KEY_BYTES = 16 << 20
_KEY_BYTES_OF_TEXT = 16
# Random keys of at least this many bytes count as absent: with a billion values of 8 bytes, the
# chance that one is stored is about 1e-6.
_COLLISION_FREE_BYTES = 8
_FPP_OF_KEYS = 0.001
_EXAMPLES = 3


def verify_filter(
    file: ParquetFile, stored: StoredFilter, bloom: BloomFilter
) -> FilterVerification:
    """Check one filter, whose bitset is `bloom`; if the chunk's pages cannot be decoded, `problem`
    states the reason.

    A draft's filter is queried in its own dialect if the values determine the dialect.
    """
    column = file.footer.columns[stored.column]
    hasher: ValueHasher = hashing
    dialect: str | None = None
    reading = drafts.recognise_draft(file, stored) if stored.header.readings else None
    if reading is not None:
        stored = reading.stored
        bloom = reading.bloom
        dialect = reading.dialect.name
        hasher = drafts.hasher_for(reading.dialect, column, bloom.num_blocks)
    tally = _Tally(column, bloom, hasher)
    problem: str | None = None
    wrong_statistics: tuple[str, ...] = ()
    if hasher is not hashing or not tally.holds_all(file, stored.row_group):
        try:
            wrong_statistics = tally.decode(file, stored.row_group)
        except UnreadableError as error:
            problem = error.message
    verification = _report(stored, column, bloom, tally)
    return replace(
        verification, problem=problem, dialect=dialect, wrong_statistics=wrong_statistics
    )


def _report(
    stored: StoredFilter, column: Column, bloom: BloomFilter, tally: _Tally
) -> FilterVerification:
    """Report what the stored values and the absent keys say of a filter."""
    sample = list(tally.sample)
    cause: str | None = None
    explanation: str | None = None
    hypothesis = misses.explain(bloom, column, sample) if sample else None
    if hypothesis is not None:
        cause = hypothesis.name
        explanation = hypothesis.explanation
    examples = [literals.format_short(column, plain) for plain in sample[:_EXAMPLES]]
    excluded_forms = {literals.format_short(column, plain) for plain in tally.excluded_forms}
    absent = tally.absent_keys()
    measured_fpp = None
    if len(absent):
        num_excluded = bloom.count_missing(absent.data)
        measured_fpp = 1 - num_excluded / len(absent)
    return FilterVerification(
        row_group=stored.row_group,
        column=column.name,
        type=column.type_name,
        offset=stored.place.offset,
        header_bytes=stored.header_bytes,
        bitset_bytes=stored.header.num_bytes,
        stated_length=stored.place.length,
        verified_values=tally.values,
        false_negatives=tally.false_negatives,
        examples=tuple(examples),
        cause=cause,
        explanation=explanation,
        excluded_nans=tally.excluded_nans,
        excluded_forms=tuple(sorted(excluded_forms)),
        excluded_intervals=tally.excluded_intervals,
        excluded_instants=tally.excluded_instants,
        estimated_fpp=bloom.fpp,
        measured_fpp=measured_fpp,
        absent_keys=len(absent),
    )


class _Tally:
    """The counts of a stream of values."""

    def __init__(self, column: Column, bloom: BloomFilter, hasher: ValueHasher) -> None:
        self._column = column
        self._bloom = bloom
        self._hasher = hasher
        key_bytes = column.width or _KEY_BYTES_OF_TEXT
        if column.physical == "BOOLEAN":
            key_bytes = 1
        self._keys, self._filter_of_keys = _random_keys(key_bytes, hasher)  # type: ignore[arg-type]
        self._stored_keys = np.zeros(len(self._keys), np.bool_)
        self.values = 0
        self.false_negatives = 0
        self.excluded_nans = 0
        self.excluded_intervals = 0
        self.excluded_instants = 0
        self.sample: dict[bytes, None] = {}
        """Some of the false negatives, each once."""
        self.excluded_forms: set[bytes] = set()

    def holds_all(self, file: ParquetFile, row_group: int) -> bool:
        """Query the filter for the hashes of a chunk's pages, which pyarrow then need not decode.

        Return False if they do not suffice: the filter or the statistics exclude one of them, which
        may be an unused entry of a dictionary, or pyarrow is needed to know that the pages were
        read correctly (`cross_check`).
        """
        if not StatisticsCheck(file.footer, row_group, self._column).is_complete:
            return False
        count = count_by_pages(file, row_group, self._column, self._holds)
        self.values = count or 0
        return count is not None

    def _holds(self, hashes: memoryview) -> bool:
        if self._bloom.count_missing(hashes):
            return False
        self._mark_keys(hashes)
        return True

    def decode(self, file: ParquetFile, row_group: int) -> tuple[str, ...]:
        """Query the filter for all values of a chunk, and return the statistics that they
        contradict."""
        self.values = 0
        check = StatisticsCheck(file.footer, row_group, self._column)
        for values in file.values(row_group, self._column):
            check.add(values.extremes())
            self._add(values)
        return check.contradictions(self.values)

    def _add(self, values: PlainValues) -> None:
        hashes = values.hashes(self._hasher)
        self.values += len(values)
        shown = hashes
        if equals.narrow_bits(self._column) is not None:
            shown = values.hashes_shown(self._hasher)
        if self._bloom.count_missing(hashes) or self._bloom.count_missing(shown):
            self._add_absent(values, self._are_absent(hashes) | self._are_absent(shown))
        self._mark_keys(hashes)
        # No reader queries a draft's filter for the normalised form.
        if equals.is_interval(self._column) and self._hasher is hashing:
            self.excluded_intervals += self._bloom.count_missing(values.hashes_of_equals())
        if self._column.physical == "INT96" and self._hasher is hashing:
            rounded_down = values.hashes_of_instants_rounded_down()
            self.excluded_instants += self._bloom.count_missing(rounded_down)
        for plain in values.equal_floats():
            if not self._bloom.check_hash(self._hasher.hash_value(plain)):
                self.excluded_forms.add(plain)

    def _are_absent(self, hashes: memoryview) -> NDArray[np.bool_]:
        flags = self._bloom.check_hashes(hashes)
        absent: NDArray[np.bool_] = np.frombuffer(flags, np.bool_) == 0
        return absent

    def _add_absent(self, values: PlainValues, absent: NDArray[np.bool_]) -> None:
        """Count the values that the filter excludes, and keep some of them."""
        nans = values.are_nan()
        self.excluded_nans += int(np.count_nonzero(absent & nans))
        positions = np.flatnonzero(absent & ~nans)
        self.false_negatives += len(positions)
        num_wanted = misses.SAMPLE - len(self.sample)
        for position in positions[:num_wanted].tolist():
            self.sample[values[position]] = None

    def _mark_keys(self, found: memoryview) -> None:
        """Mark the keys that are among these hashes. A filter of the keys excludes most hashes in a
        fraction of the time of a search."""
        if self._column.width is None or self._column.width >= _COLLISION_FREE_BYTES:
            return
        flags = self._filter_of_keys.check_hashes(found)
        hashes = np.frombuffer(found, np.uint64)
        hashes = hashes[np.frombuffer(flags, np.bool_)]
        places = np.searchsorted(self._keys, hashes)
        places = np.minimum(places, len(self._keys) - 1)
        are_keys = self._keys[places] == hashes
        self._stored_keys[places[are_keys]] = True

    def absent_keys(self) -> NDArray[np.uint64]:
        """Return hashes of random keys that are not stored values; none for BOOLEAN, which has only
        two values."""
        if self._column.physical == "BOOLEAN":
            return self._keys[:0]
        return self._keys[~self._stored_keys]


@lru_cache(maxsize=32)
def _random_keys(width: int, hasher: ValueHasher) -> tuple[NDArray[np.uint64], BloomFilter]:
    """Return hashes of random keys of `width` bytes, sorted and distinct, and a filter of them.

    They are always the same, so that reports are reproducible.
    """
    count = max(1, min(ABSENT_KEYS, _MAX_KEY_BYTES // width))
    plain = hashlib.shake_128(b"keys that measure an error rate").digest(count * width)
    hashes = hasher.hash_fixed(plain, width)
    keys = np.unique(np.frombuffer(hashes, np.uint64))
    bloom = BloomFilter.sized_for(len(keys), _FPP_OF_KEYS)
    bloom.insert_hashes(keys.data)
    return keys, bloom
