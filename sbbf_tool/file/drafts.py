"""Filters of the format's drafts: how to determine the dialect of a filter from the values of its
column, and how to query the filter.

The header of a draft fits several dialects (`parquet.draft_headers`). A dialect that excludes a
stored value is refuted for certain, so a filter follows the only dialect that holds every value of
a sample. This module does not decide whether rows may be skipped by a filter: the caller that names
the dialect decides that.
"""

from __future__ import annotations

from contextlib import closing
from typing import NamedTuple

from sbbf_tool.bloom.dialects import CURRENT, TODAYS, Dialect, Hasher
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.spec import WORDS_PER_BLOCK
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import FilterHeader, StoredFilter

SAMPLE = 256
"""Number of distinct values used to determine a dialect, or fewer if the chunk has fewer."""
_MAX_POSITIONS = 1 << 14

_NUMBERS = ("INT32", "INT64", "FLOAT", "DOUBLE")
"""Types for which parquet-mr has a hash method each; it hashes all other types as `Binary`."""


class DraftFilter(NamedTuple):
    """A filter whose dialect is known, with its true place and size, and its bits."""

    dialect: Dialect
    stored: StoredFilter
    bloom: BloomFilter


def hasher_for(dialect: Dialect, column: Column, num_blocks: int) -> Hasher:
    """Return the hasher for the values of the column in a filter of this dialect and size."""
    return dialect.hasher(num_blocks, is_number=column.physical in _NUMBERS)


def read_as(stored: StoredFilter, dialect: Dialect) -> StoredFilter | None:
    """Return the filter as a filter of this dialect; None if its header does not fit the
    dialect."""
    if not stored.header.readings:
        is_todays = dialect.header == TODAYS and stored.header.unsupported_reason is None
        return stored if is_todays else None
    for reading in stored.header.readings:
        if reading.dialect == dialect:
            return stored._replace(header=FilterHeader(reading.length, reading.num_bytes))
    return None


def recognise_draft(file: ParquetFile, stored: StoredFilter) -> DraftFilter | None:
    """Return the filter in the only dialect that fits its header and holds values of its own column
    chunk.

    None if no dialect does, or several do, or if those values cannot be read.
    """
    column = file.footer.columns[stored.column]
    try:
        sample = sample_of(file, stored.row_group, column)
    except UnreadableError:
        return None
    if not sample:
        return None
    blooms: dict[int, BloomFilter] = {}
    fitting = []
    for reading in stored.header.readings:
        candidate = read_as(stored, reading.dialect)
        assert candidate is not None
        bloom = blooms.get(candidate.bitset_offset)
        if bloom is None:
            bitset = file.source.read(candidate.bitset_offset, candidate.header.num_bytes)
            bloom = BloomFilter(bitset)
            blooms[candidate.bitset_offset] = bloom
        hasher = hasher_for(reading.dialect, column, bloom.num_blocks)
        if all(holds(bloom, hasher, plain) for plain in sample):
            fitting.append(DraftFilter(reading.dialect, candidate, bloom))
    if len(fitting) != 1:
        return None
    return fitting[0]


def holds(bloom: BloomFilter, hasher: Hasher, plain: bytes) -> bool:
    """Return whether the filter holds a value. If the dialect gives all values one hash, the filter
    must hold no other hash.

    One hash alone may match by chance.
    """
    if not bloom.check_hash(hasher.hash_value(plain)):
        return False
    return not hasher.hashes_nothing or bloom.bits_set == WORDS_PER_BLOCK


def in_dialect(
    file: ParquetFile, stored: StoredFilter, dialect: Dialect
) -> tuple[StoredFilter, Hasher | None, str | None]:
    """Return the filter as a filter of this dialect, its hasher (None for a filter of the released
    format), and why it must not be queried.

    It must not be queried if its header is of another dialect, or if values of its column, which
    are read to check this, contradict it.
    """
    # The drafts did not define encryption.
    draft_filter = None if stored.is_encrypted else read_as(stored, dialect)
    reason = None
    if draft_filter is None:
        if stored.header.unsupported_reason:
            reason = f"{stored.header.unsupported_reason}, not {dialect.name}"
        return stored, None, reason
    if dialect == CURRENT:
        return stored, None, None
    column = file.footer.columns[stored.column]
    bitset = file.source.read(draft_filter.bitset_offset, draft_filter.header.num_bytes)
    bloom = BloomFilter(bitset)
    hasher = hasher_for(dialect, column, bloom.num_blocks)
    try:
        sample = sample_of(file, stored.row_group, column)
    except UnreadableError as error:
        reason = (
            f"no value of the column can be read to verify that the filter is of {dialect.name}: "
            f"{error.message}"
        )
        return draft_filter, hasher, reason
    if not all(holds(bloom, hasher, plain) for plain in sample):
        reason = f"it is not of {dialect.name}: it excludes stored values"
    return draft_filter, hasher, reason


def sample_of(file: ParquetFile, row_group: int, column: Column) -> list[bytes]:
    """Return some values of a chunk, each once, from its first pages. Raises UnreadableError."""
    sample: dict[bytes, None] = {}
    reason = file.encryption_of(row_group, column)
    if reason is not None:
        raise UnreadableError(reason)
    with closing(file.values(row_group, column)) as runs:
        for values in runs:
            # NaN is stored in one form and may have been hashed in another.
            for position, is_nan in enumerate(values.are_nan()[:_MAX_POSITIONS]):
                if is_nan:
                    continue
                sample[values[position]] = None
                if len(sample) == SAMPLE:
                    return list(sample)
            if sample:
                break
    return list(sample)
