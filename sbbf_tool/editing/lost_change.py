"""The change that an earlier attempt made whose task was lost before it could report, as the file
itself shows it.

The run knows the length of the file when it was listed. If the file still begins with all these
bytes, they are the old file, and the verb is asked again what it would do with it. Otherwise, the
own tail (see `file.own_tail`) shows which filters were written after that length. So every attempt
reports them as the one that wrote them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple, TypeVar

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import columns_of
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.open_edit import OpenEdit, PrebuiltFilters
from sbbf_tool.errors import NothingToDoError, RefusedError
from sbbf_tool.file.own_tail import (
    Addition,
    find_own_tail,
    footer_ending_at,
    hash_end,
    last_addition,
)
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import replace
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.patch import Patch, plan_append
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.change import BuiltFilter, ChangeReport
from sbbf_tool.storage.places import open_spool
from sbbf_tool.storage.source import PlannedSource

Report = TypeVar("Report", bound=ChangeReport)

UNKNOWN_DETAILS = "an attempt of this run that was lost changed the file; the file does not show {}"
"""Warning of a report; the text names what is missing in it."""


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
    is_first: bool = False
    """Whether no earlier change by this package was at the old end."""


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
    change = _later_change(file, addition, listed_bytes)
    if change is None and (own_filters := find_own_tail(file).filters):
        change = LostChange("", own_filters)
    return change


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
        is_first=tail.start == before.end,
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
        # The file as it was before its later filters were written.
        old_places = addition.before.filter_places()
        replaced = {key: old_places[key] for key in later if key in old_places}
        patch = plan_append(file.footer, first_later.offset, {}, later, replaced)
        if patch.size != listed_bytes:
            continue
        shares_columns = not set(columns_of(kept)).isdisjoint(columns_of(later))
        before = None if shares_columns else addition.before
        return LostChange(_hash_old_end(file, patch), later, before=before)
    return None


def _hash_old_end(file: ParquetFile, patch: Patch) -> str:
    """Return the hash of the end of a file as it was; empty if that is unknown."""
    if file.footer.cipher is not None:
        return ""  # a footer that is encrypted has other bytes each time
    old_file = PlannedSource(file.name, file.source, patch.keep, patch.pieces)
    return hash_end(old_file, patch.size)


def repeat_on_old_file(
    on: Callable[[OpenEdit], Report], file: ParquetFile, listed_bytes: int, edit: Edit
) -> Report | None:
    """Return what a verb, by its method `on`, would do with the file when it had the
    listed length; None if the file does not begin with the old one, or there was nothing to do."""
    if listed_bytes >= file.source.size or footer_ending_at(file, listed_bytes) is None:
        return None
    dry_edit = dataclasses.replace(edit, dry_run=True)
    old_file = file.before(listed_bytes)
    name = file.source.name
    with open_spool(name, keeps=False) as spool, ExitStack() as resources:
        prebuilt = PrebuiltFilters(spool)
        change = OpenEdit(dry_edit, old_file, name, [], None, prebuilt, resources, is_copied=False)
        try:
            report = on(change)
        except (NothingToDoError, RefusedError):
            return None
    is_first_change = change.has_no_own_tail()
    changes: dict[str, Any] = {"dry_run": False, "is_first_change": is_first_change}
    return replace(report, **changes)


def is_result(report: ChangeReport, file: ParquetFile) -> bool:
    """Return whether a file ends as the report says of the new one."""
    size = file.source.size
    return report.new_bytes == size and report.new_end_hash == hash_end(file.source, size)


def describe_ends(file: ParquetFile, listed_bytes: int) -> dict[str, Any]:
    """Return the fields that all reports of changes have, of a change in place of which the file
    does not show the old end."""
    size = file.source.size
    return {
        "file": file.name,
        "output": file.name,
        "dry_run": False,
        "old_bytes": listed_bytes,
        "new_bytes": size,
        "old_end_hash": "",
        "new_end_hash": hash_end(file.source, size),
    }


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
