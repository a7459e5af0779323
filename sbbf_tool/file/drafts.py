"""Filters of the format's drafts: the dialect of a filter, determined by its column's values, and how to query and build it.

A draft's header fits several dialects (`parquet.draft_headers`). A stored value that a dialect excludes refutes it for certain, so a
filter is of the only dialect that holds every value of a sample. Nothing here decides whether rows may be skipped by it: the caller
that names the dialect decides that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from sbbf_tool.bloom.dialects import TODAY, TODAYS, Dialect, Hasher
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.spec import WORDS_PER_BLOCK
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import FilterHeader, StoredFilter

SAMPLE = 256
"""Distinct values used to determine a dialect, where there are as many."""
_MAX_POSITIONS = 1 << 14

_NUMBERS = ("INT32", "INT64", "FLOAT", "DOUBLE")
"""Types that parquet-mr hashes by a method of their own; all other types are `Binary` to it."""


class DraftFilter(NamedTuple):
    """A filter whose dialect is known: its true place and size, and its bits."""

    dialect: Dialect
    stored: StoredFilter
    bloom: BloomFilter


def hasher_for(dialect: Dialect, column: Column, num_blocks: int) -> Hasher:
    """Return the hasher of the column's values for a filter of this dialect and size."""
    return dialect.hasher(num_blocks, is_number=column.physical in _NUMBERS)


def read_as(stored: StoredFilter, dialect: Dialect) -> StoredFilter | None:
    """Return the filter as one of this dialect; None where its header does not fit it."""
    if not stored.header.readings:
        return stored if dialect.header == TODAYS and stored.header.unsupported_reason is None else None
    reading = next((reading for reading in stored.header.readings if reading.dialect == dialect), None)
    return None if reading is None else replace(stored, header=FilterHeader(reading.length, reading.num_bytes))


def decide(stored: StoredFilter, column: Column, sample: Sequence[bytes], read: Callable[[int, int], bytes]) -> DraftFilter | None:
    """Return the only dialect, of those that the header fits, that holds every value of `sample`; None for none or several.

    `read(offset, length)` returns bytes of the file.
    """
    blooms: dict[int, BloomFilter] = {}
    fitting = []
    for reading in stored.header.readings if sample else ():
        candidate = read_as(stored, reading.dialect)
        assert candidate is not None
        if candidate.bitset_offset not in blooms:
            blooms[candidate.bitset_offset] = BloomFilter(read(candidate.bitset_offset, candidate.header.num_bytes))
        bloom = blooms[candidate.bitset_offset]
        hasher = hasher_for(reading.dialect, column, bloom.num_blocks)
        if all(holds(bloom, hasher, plain) for plain in sample):
            fitting.append(DraftFilter(reading.dialect, candidate, bloom))
    return fitting[0] if len(fitting) == 1 else None


def holds(bloom: BloomFilter, hasher: Hasher, plain: bytes) -> bool:
    """Return whether the filter holds a value. Where all values have one hash, it must hold no other: one hash may match by chance."""
    return bloom.check_hash(hasher.hash_value(plain)) and not (hasher.hashes_nothing and bloom.bits_set != WORDS_PER_BLOCK)


def decide_by_chunk(file: ParquetFile, stored: StoredFilter) -> DraftFilter | None:
    """Apply `decide` to values of the filter's own column chunk; return None also where those cannot be read."""
    column = file.footer.columns[stored.column]
    try:
        return decide(stored, column, sample_of(file, stored.row_group, column), file.source.read)
    except UnreadableError:
        return None


def in_dialect(file: ParquetFile, stored: StoredFilter, dialect: Dialect) -> tuple[StoredFilter, Hasher | None, str | None]:
    """Return the filter as one of this dialect, its hasher, and why it must not be queried; no hasher for a filter of the released format.

    It must not be queried where its header is of other dialects, or where values of its column, which are read for this, contradict it.
    """
    # The drafts had no encryption.
    draft_filter = None if stored.is_encrypted else read_as(stored, dialect)
    if draft_filter is None:
        return stored, None, f"{stored.header.unsupported_reason}, not {dialect.name}" if stored.header.unsupported_reason else None
    if dialect == TODAY:
        return stored, None, None
    column = file.footer.columns[stored.column]
    bloom = BloomFilter(file.source.read(draft_filter.bitset_offset, draft_filter.header.num_bytes))
    hasher = hasher_for(dialect, column, bloom.num_blocks)
    try:
        sample = sample_of(file, stored.row_group, column)
    except UnreadableError as error:
        return draft_filter, hasher, f"no value of the column can be read to verify that the filter is of {dialect.name}: {error.message}"
    is_refuted = not all(holds(bloom, hasher, plain) for plain in sample)
    return draft_filter, hasher, f"it is not of {dialect.name}: it excludes stored values" if is_refuted else None


def sample_of(file: ParquetFile, row_group: int, column: Column) -> list[bytes]:
    """Return some values of a chunk, each once, from its first pages. Raises UnreadableError."""
    from sbbf_tool.parquet.values import read_chunk

    sample: dict[bytes, None] = {}
    reason = file.encryption_of(row_group, column)
    if reason is not None:
        raise UnreadableError(reason)
    pages = file.pages(row_group, column)
    with closing(read_chunk(pages.open_arrow, file.footer, row_group, column, pages.meta)) as runs:
        for values in runs:
            # NaN is stored in one form and may have been hashed in another.
            positions = (position for position, is_nan in enumerate(values.are_nan()[:_MAX_POSITIONS]) if not is_nan)
            for position in positions:
                sample[values[position]] = None
                if len(sample) == SAMPLE:
                    return list(sample)
            if sample:
                break
    return list(sample)
