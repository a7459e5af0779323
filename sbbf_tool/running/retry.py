"""The row of a change whose task was lost before it could report.

A cluster runs a lost task again, under the number of a first attempt if the whole stage begins again, and a speculative task beside the
first. What works second finds that the file has every filter, and would count it as a file without work. The file itself shows the change:
the run knows the length of the file when it was listed, and the file's own tail (see `file.own_tail`) shows which filters were written
after that length. So every attempt reports them as the one that wrote them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import chunk_bytes
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.own_tail import find_own_tail, hash_end, last_addition
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Fix
from sbbf_tool.parquet.patch import ChunkKey, plan_append
from sbbf_tool.parquet.splice import FilterPlace
from sbbf_tool.reports.change import BuiltFilter, RemovedFilter
from sbbf_tool.reports.rows import OK, SKIPPED, ListedFile, Row
from sbbf_tool.running.discover import list_file
from sbbf_tool.storage.source import PlannedSource
from sbbf_tool.verbs.add_filter import AddReport, undo_of
from sbbf_tool.verbs.apply import ApplyReport

if TYPE_CHECKING:
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")

_LOST = "the file changed after it was listed; if an attempt of this run that was lost did that, its changes are not counted here"


class _Change(NamedTuple):
    """A change of a file after it was listed."""

    old_end_hash: str
    filters: Mapping[ChunkKey, FilterPlace]
    removed: tuple[ChunkKey, ...] = ()
    undo: Fix | None = None
    leftover_bytes: int = 0


def restore_row(row: Row[Report], listed: ListedFile, work: Work[Report]) -> Row[Report]:
    """Return the row of the attempt that changed a file after it was listed; `row` if there was none.

    Of the report, `values` are those in the footer, and what was read is 0. If the change replaced filters of an earlier change, its old
    end is unknown, and all filters in the tail count as written. A change by another run counts for both, if it began after this run had
    listed the file. If the file does not show what an attempt has changed, the row says so.
    """
    report: Any = row.report
    if report is None and work.changes and row.status == SKIPPED and listed.bytes is not None:
        is_same = list_file(row.path).bytes in (None, listed.bytes)
        return row if is_same else replace(row, reason=f"{row.reason}; {_LOST}")
    if report is None or not work.changes or getattr(report, "dry_run", True) or _is_as_listed(row, report.old_bytes, listed):
        return row
    edit, is_rebuilt = work.given.edit, getattr(work.verb, "rebuild", None) == "all"
    if isinstance(report, AddReport | ApplyReport) and edit is not None and (row.status == SKIPPED or is_rebuilt):
        try:
            with ParquetFile.open(work.file(row.path), edit.keys, edit.limit) as file:
                change = _find_change(file, listed.bytes or 0, edit)
                if change is not None:
                    restored = _restore(report, file, change, listed.bytes or 0, was_skipped=row.status == SKIPPED)
                    return _with_report(replace(row, status=OK, reason=None), restored)
        except SbbfError:
            pass  # the warning says what is not known
    is_idle = (report.old_bytes, report.old_end_hash) == (report.new_bytes, report.new_end_hash)
    return _with_report(row, replace(report, warnings=(*report.warnings, _LOST))) if is_idle else row


def _is_as_listed(row: Row[object], old_bytes: int, listed: ListedFile) -> bool:
    """Return whether the file was the listed one when the work on it began, as far as the listing says."""
    if listed.bytes is None or (old_bytes == listed.bytes and (listed.inode is None or row.status != SKIPPED)):
        return True
    return old_bytes == listed.bytes and list_file(row.path).inode in (None, listed.inode)


def _find_change(file: ParquetFile, listed_bytes: int, edit: Edit) -> _Change | None:
    """Find what was written after the listed length: after the footer that ends there, or after that of an earlier change, which a later
    one leaves out: the filters before it show it.
    """
    addition = last_addition(file)
    if addition is None:
        return None
    before, filters = addition.before, addition.filters
    old_places = before.filter_places()
    if before.end == listed_bytes:
        undo = undo_of(file, edit, {column for _, column in filters}, before)
        removed = tuple(sorted(old_places.keys() - file.footer.filter_places().keys()))
        tail = find_own_tail(file)
        earlier = (place.length or 0 for key, place in tail.filters.items() if key not in filters)
        return _Change(hash_end(file.source, listed_bytes), filters, removed, undo, max(0, listed_bytes - tail.start - sum(earlier)))
    places = sorted(filters.items(), key=lambda item: item[1].offset)
    for number, (_, place) in enumerate(places[1:], 1):
        if not len(before.raw) <= listed_bytes - place.offset <= file.footer.end - file.footer.start:
            continue
        kept, later = dict(places[:number]), dict(places[number:])
        patch = plan_append(file.footer, place.offset, {}, later, {key: old_places[key] for key in later if key in old_places})
        if patch.size == listed_bytes:
            columns = {column for _, column in later}
            undo = None if any(column in columns for _, column in kept) else undo_of(file, edit, columns, before)
            # A footer that is encrypted has other bytes each time.
            old_file = PlannedSource(file.name, file.source, patch.keep, patch.pieces)
            return _Change(hash_end(old_file, listed_bytes) if file.footer.cipher is None else "", later, (), undo)
    own_filters = find_own_tail(file).filters
    return _Change("", own_filters) if own_filters else None


def _restore(
    report: AddReport | ApplyReport, file: ParquetFile, change: _Change, listed_bytes: int, *, was_skipped: bool
) -> AddReport | ApplyReport:
    filters = tuple(_describe(file, key) for key in sorted(change.filters))
    if isinstance(report, AddReport):
        skipped = max(0, report.skipped - len(filters)) if was_skipped else report.skipped
        return replace(
            report,
            old_bytes=listed_bytes,
            old_end_hash=change.old_end_hash,
            filters=filters,
            data_bytes=sum(chunk_bytes(file, key) for key in change.filters),
            skipped=skipped,
            leftover_bytes=change.leftover_bytes,
            undo=change.undo,
        )
    counts, sizes = Counter(each.column for each in filters), Counter[str]()
    for each in filters:
        sizes[each.column] += each.header_bytes + each.bitset_bytes
    columns = (
        replace(
            column,
            satisfied=max(0, column.satisfied - counts[column.column]),
            missing=column.missing + counts[column.column],
            bytes=column.bytes - sizes[column.column],
            estimated_bytes=column.estimated_bytes + sizes[column.column],
        )
        for column in report.columns
    )
    removals = tuple(RemovedFilter(number, file.footer.columns[column].name) for number, column in change.removed)
    return replace(
        report,
        old_bytes=listed_bytes,
        old_end_hash=change.old_end_hash,
        columns=tuple(columns),
        filters=filters,
        removals=removals,
    )


def _with_report(row: Row[Report], report: Any) -> Row[Report]:
    return replace(row, report=report)


def _describe(file: ParquetFile, key: ChunkKey) -> BuiltFilter:
    column = file.footer.columns[key[1]]
    stored = file.stored_filter(key[0], column)
    assert stored is not None
    bloom = BloomFilter(file.read_bitset(stored))
    return BuiltFilter(
        row_group=key[0],
        column=column.name,
        values=file.footer.chunk_meta(*key).most_values,
        estimated_ndv=None if math.isinf(bloom.estimated_ndv) else bloom.estimated_ndv,
        offset=stored.place.offset,
        header_bytes=stored.length - bloom.num_bytes,
        bitset_bytes=bloom.num_bytes,
        fpp=bloom.fpp,
    )
