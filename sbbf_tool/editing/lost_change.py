"""The change that an earlier attempt made whose task was lost before it could report, as the file
itself shows it.

The run knows the length of the file when it was listed, and its own tail (see `file.own_tail`)
shows which filters were written after that length. So every attempt reports them as the one that
wrote them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import columns_of
from sbbf_tool.file.own_tail import Addition, find_own_tail, hash_end, last_addition
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.patch import Patch, plan_append
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.change import BuiltFilter
from sbbf_tool.storage.source import PlannedSource


class LostChange(NamedTuple):
    """A change of a file after it was listed."""

    old_end_hash: str
    """Hash of the end of the file before the change; empty if that is unknown."""
    filters: Mapping[ChunkKey, FilterPlace]
    removed: tuple[ChunkKey, ...] = ()
    before: Footer | None = None
    """A footer without these filters; None if that of the file before the change is unknown or has
    filters of the same columns."""
    leftover_bytes: int = 0


def find_lost_change(file: ParquetFile, listed_bytes: int) -> LostChange | None:
    """Find what was written after the listed length: after the footer that ends there, or after
    that of an earlier change, which a later one leaves out: the filters before it show it.

    If the change replaced filters of an earlier one, its old end is unknown, and all filters in the
    tail count as written.
    """
    addition = last_addition(file)
    if addition is None:
        return None
    if addition.before.end == listed_bytes:
        return _change_after(file, addition)
    return _later_change(file, addition, listed_bytes) or _whole_tail(file)


def _change_after(file: ParquetFile, addition: Addition) -> LostChange:
    """Return the change that began at the footer before this addition."""
    before = addition.before
    removed = before.filter_places().keys() - file.footer.filter_places().keys()
    tail = find_own_tail(file)
    leftover_bytes = before.end - tail.start
    for key, place in tail.filters.items():
        if key not in addition.filters:
            leftover_bytes -= place.length or 0
    return LostChange(
        hash_end(file.source, before.end),
        addition.filters,
        removed=tuple(sorted(removed)),
        before=before,
        leftover_bytes=max(0, leftover_bytes),
    )


def _later_change(file: ParquetFile, addition: Addition, listed_bytes: int) -> LostChange | None:
    """Return the change that wrote the last filters of this addition, whose first ones were written
    by an earlier change; None if no footer between them ends at the listed length."""
    places = sorted(addition.filters.items(), key=lambda item: item[1].offset)
    for number in range(1, len(places)):
        kept = dict(places[:number])
        later = dict(places[number:])
        _, first_later = places[number]
        length_of_footer = listed_bytes - first_later.offset
        if not len(addition.before.raw) <= length_of_footer <= file.footer.end - file.footer.start:
            continue
        patch = _plan_old_file(file.footer, addition.before, first_later.offset, later)
        if patch.size != listed_bytes:
            continue
        shares_columns = not set(columns_of(kept)).isdisjoint(columns_of(later))
        before = None if shares_columns else addition.before
        return LostChange(_hash_old_end(file, patch), later, before=before)
    return None


def _plan_old_file(
    footer: Footer, before: Footer, start: int, later: Mapping[ChunkKey, FilterPlace]
) -> Patch:
    """Plan the file as it was before the filters from `start` on were written."""
    old_places = before.filter_places()
    replaced = {key: old_places[key] for key in later if key in old_places}
    return plan_append(footer, start, {}, later, replaced)


def _hash_old_end(file: ParquetFile, patch: Patch) -> str:
    """Return the hash of the end of a file as it was; empty if that is unknown."""
    if file.footer.cipher is not None:
        return ""  # a footer that is encrypted has other bytes each time
    old_file = PlannedSource(file.name, file.source, patch.keep, patch.pieces)
    return hash_end(old_file, patch.size)


def _whole_tail(file: ParquetFile) -> LostChange | None:
    own_filters = find_own_tail(file).filters
    return LostChange("", own_filters) if own_filters else None


def describe_filters(file: ParquetFile, keys: Iterable[ChunkKey]) -> tuple[BuiltFilter, ...]:
    """Describe the stored filters of these chunks as the attempt that wrote them did, but with the
    numbers of values in the footer."""
    return tuple(_describe(file, key) for key in sorted(keys))


def _describe(file: ParquetFile, key: ChunkKey) -> BuiltFilter:
    row_group, index = key
    column = file.footer.columns[index]
    stored = file.stored_filter(row_group, column)
    assert stored is not None
    bloom = BloomFilter(file.read_bitset(stored))
    ndv = bloom.estimated_ndv
    return BuiltFilter(
        row_group=row_group,
        column=column.name,
        values=file.footer.chunk_meta(*key).most_values,
        estimated_ndv=None if math.isinf(ndv) else ndv,
        offset=stored.place.offset,
        header_bytes=stored.length - bloom.num_bytes,
        bitset_bytes=bloom.num_bytes,
        fpp=bloom.fpp,
    )
