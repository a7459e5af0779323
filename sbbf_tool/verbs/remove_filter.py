"""`remove_filters`: remove filters with the same write protocol as `add_filters`.

If the filters are at the end of the file, where `add_filters` writes them, the file is truncated to
the previous footer and is again identical to the original. There is no record of this; instead, the
previous footer with these filters set must equal the current footer. In all other cases, a new
footer without the fields is written, in place of the file's own tail if it has one (see
`file.own_tail`); other unreferenced bytes are reported, or dropped with `compact`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import starmap
from typing import Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.editing.build import mistake, report_removals
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.lost_change import (
    UNKNOWN_DETAILS,
    describe_ends,
    is_result,
    repeat_on_old_file,
)
from sbbf_tool.editing.open_edit import OpenEdit
from sbbf_tool.editing.publish import ensure_same_footer
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import (
    LockedError,
    NothingToDoError,
    RefusedError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.file.layout import (
    OLD_FILTER,
    OLD_FOOTER,
    Range,
    end_of_data,
    ranges_between,
    unreferenced_ranges,
)
from sbbf_tool.file.own_tail import addition_of, find_own_tail, footer_ending_at
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import opt
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.patch import Patch, plan_append
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace, decrypt_metadata
from sbbf_tool.reports.change import ChangeReport, RemovedFilter
from sbbf_tool.reports.findings import ERROR
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.rules.verification import report_of
from sbbf_tool.storage.spool import Spool
from sbbf_tool.verbs.verb import ChangingVerb, EditOptions, Needs, PropertiesOfTable
from sbbf_tool.writers.properties import take_back

TRUNCATED = "truncated"
COMPACTED = "compacted"
NEW_FOOTER = "new footer"


class RemoveReport(ChangeReport):
    _row = RemovedFilter

    filters: tuple[RemovedFilter, ...]
    method: str
    """`truncated` to the previous footer, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes in the file that nothing refers to any more."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}"


class RemoveFilter(ChangingVerb[RemoveReport]):
    """Remove the filters of `columns` (if empty, of all columns).

    With `ours`, the file gets the bytes from before the first change by `sbbf`, whatever the
    filters: those of other writers stay, and those that `sbbf` replaced or removed come back. This
    is refused if a filter of then is an error for `check`. A table gets copies of these bytes, in a
    new version. Raises NothingToDoError (none of the
    columns has a filter) and RefusedError (the footer is signed, the file belongs to a table, ...).
    """

    name = "remove-filter"
    operation = "REMOVE"
    report = RemoveReport
    columns: Iterable[str] = opt("Only these columns", default=(), convert=as_names)
    compact: bool = opt("Drop the bytes of filters by other writers too", default=False)
    ours: bool = opt("Restore what the file was before the first change by sbbf", default=False)

    def ensure_valid(self) -> None:
        if self.ours and (self.columns or self.compact):
            raise UsageError(
                "to restore a file, its columns are not chosen, and nothing is compacted"
            )

    def table_properties(self, table: PropertiesOfTable) -> Mapping[str, str | None]:
        if not table.takes_properties:
            return {}
        return take_back(table.properties, [*map(table.name_for_property, self.columns)])

    def needs(self) -> Needs:
        return Needs(data=True)

    def on(self, change: OpenEdit) -> RemoveReport:
        file = change.file
        names = tuple(self.columns)
        if self.ours:
            return _restore(change)
        chunks = _choose_chunks(file, names)
        patch, method = _plan(change, chunks, self.compact)
        change.ensure_publishable()
        report = partial(
            RemoveReport,
            filters=tuple(report_removals(file, chunks)),
            method=method,
            named_columns=file.name_columns(names),
            unreferenced_bytes=_count_unreferenced(file, chunks, patch, method),
        )
        return change.publish(patch, report, partial(_compare, file, chunks))

    def recognise(
        self, file: ParquetFile, report: RemoveReport | None, listed_bytes: int, edit: Edit
    ) -> RemoveReport | None:
        restored = repeat_on_old_file(self.on, file, listed_bytes, edit)
        if restored is not None and is_result(restored, file):
            return restored
        if file.source.size >= listed_bytes:
            return None
        method = TRUNCATED
        if self.compact:
            method = COMPACTED
        return RemoveReport(
            **describe_ends(file, listed_bytes),
            filters=(),
            method=method,
            unreferenced_bytes=0,
            named_columns=file.name_columns(tuple(self.columns)),
            warnings=(UNKNOWN_DETAILS.format("which filters it removed"),),
        )


def remove_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    compact: bool = False,
    ours: bool = False,
    strict: bool = True,
    **options: Unpack[EditOptions],
) -> RemoveReport:
    """Remove filters of one file, writing to `output` or `in_place`; see `RemoveFilter`, and `Edit`
    for the options."""
    return RemoveFilter(columns, compact, ours)(path, Edit(**options), strict=strict)


def _restore(change: OpenEdit) -> RemoveReport:
    """Truncate a file to the footer from before the first change by this package."""
    file = change.file
    check_changeable(file)
    if file.footer.has_locked_chunks():
        raise LockedError(
            "columns are encrypted, and may refer to any byte",
            file=file.name,
            hint="give the keys of all columns",
        )
    start = find_own_tail(file).start
    before = None if start == file.footer.end else footer_ending_at(file, start)
    if before is None:
        raise NothingToDoError("the file does not end with a change by sbbf", file=file.name)
    if before.recorded_chunks():
        _ensure_no_errors(file, before)
    change.ensure_publishable()
    old_places = before.filter_places()
    chunks = []
    for key, place in file.footer.filter_places().items():
        is_as_before = old_places.get(key) == place
        if not is_as_before:
            chunks.append(key)
    removed = tuple(report_removals(file, chunks))
    report = partial(RemoveReport, filters=removed, method=TRUNCATED, unreferenced_bytes=0)
    patch = Patch(before.end, (), before.raw, {})
    return change.publish(patch, report, partial(_compare_restored, file, before))


def _ensure_no_errors(file: ParquetFile, before: Footer) -> None:
    """Raise RefusedError if `check` would call a filter of an earlier footer an error: a repair may
    have removed it."""
    report = report_of(file.before(before.end))
    wrong = [finding for finding in report.findings if finding.severity == ERROR]
    errors = [f"{finding.rule} (column {finding.column})" for finding in wrong]
    errors += report.unreadable
    if errors:
        reason = (
            "a filter from before the first change by sbbf is wrong, and would come "
            f"back: {errors[0]}"
        )
        raise RefusedError(reason, file=file.name, hint="remove filters by their columns instead")


def _compare_restored(file: ParquetFile, before: Footer, fresh: ParquetFile) -> None:
    if fresh.source.size != before.end or fresh.footer.raw != before.raw:
        raise mistake(file, "the restored file would not end with its old footer")


def _choose_chunks(file: ParquetFile, names: tuple[str, ...]) -> set[ChunkKey]:
    """Return the chunks of the columns with these names, or of all columns if `names` is empty, for
    which the footer states a filter.

    A stated filter with the offset 0, which readers take for "none", counts: the fields that state
    it are removed. `strict` is as in `ParquetFile.find_columns`. Raises UsageError, RefusedError,
    and NothingToDoError if the named columns have no filter.
    """
    check_changeable(file)
    columns = choose_columns(file, names)
    for column in columns:
        _ensure_unlocked(file, column)
    column_indexes = {column.index for column in columns}
    chunks = set()
    for row_group, column_index in file.footer.recorded_chunks():
        if column_index in column_indexes:
            chunks.add((row_group, column_index))
    # Without names, the caller decides: there may be something to compact.
    if names and not chunks:
        raise NothingToDoError(
            "the column has no filter to remove", file=file.name, place=f"column {columns[0].name}"
        )
    return chunks


def _ensure_unlocked(file: ParquetFile, column: Column) -> None:
    """Raise LockedError if the metadata of a chunk of the column, which state its filter, are
    encrypted and the key is missing."""
    row_groups = range(file.footer.num_row_groups)
    if any(file.footer.is_locked(row_group, column.index) for row_group in row_groups):
        raise LockedError(
            "the metadata of the column is encrypted",
            file=file.name,
            place=f"column {column.name}",
            hint=f"give the key of column {column.name}, or choose other columns",
        )


def _plan(change: OpenEdit, keys: set[ChunkKey], compact: bool) -> tuple[Patch, str]:
    file = change.file
    before = _footer_without(file, keys)
    if before is not file.footer and before is not None:
        return Patch(before.end, (), before.raw, {}), TRUNCATED
    if compact:
        patch = _plan_compaction(file, keys, change.spool)
        if not keys and patch.size >= file.source.size:
            raise NothingToDoError(
                "there is no filter to remove, and nothing to compact", file=file.name
            )
        return patch, COMPACTED
    if not keys:
        raise NothingToDoError("no column has a filter to remove", file=file.name)
    return change.patch(drop=keys), NEW_FOOTER


def _footer_without(file: ParquetFile, keys: set[ChunkKey]) -> Footer | None:
    """Return the footer at which truncating the file removes exactly these filters; None if there
    is no such footer."""
    footer = file.footer
    remaining = set(keys)
    while remaining:
        addition = addition_of(file, footer)
        if addition is None or not addition.filters or not addition.filters.keys() <= remaining:
            return None
        if not _is_footer_with(footer, addition.before, addition.filters):
            return None
        footer = addition.before
        remaining = {key for key in remaining if footer.filter_place(*key) is not None}
    while not footer.num_row_groups:
        # An add without a filter to write may have written the footer again.
        equal = footer_ending_at(file, footer.start)
        if equal is None or equal.raw != footer.raw:
            break
        footer = equal
    return footer


def _is_footer_with(
    footer: Footer, before: Footer, filters: Mapping[ChunkKey, FilterPlace]
) -> bool:
    """Return whether `footer` equals `before` with these filters set, to the byte."""
    try:
        # Encrypting the same metadata twice gives different bytes, so plaintexts are compared.
        plain = decrypt_metadata(footer.raw, filters, footer.cipher)
        return before.set_filters(filters, leave_decrypted=True) == plain
    except UnreadableError:
        # `before` has no such chunks: it is the footer of another file.
        return False


def _readable_filters(file: ParquetFile, without: set[ChunkKey]) -> dict[ChunkKey, StoredFilter]:
    filters = {}
    for row_group in range(file.footer.num_row_groups):
        for column in file.footer.columns:
            key = (row_group, column.index)
            if key in without or file.encryption_of(row_group, column) is not None:
                continue
            stored = file.stored_filter(row_group, column)
            if stored is not None:
                filters[key] = stored
    return filters


def _plan_compaction(file: ParquetFile, keys: set[ChunkKey], spool: Spool) -> Patch:
    """Plan to keep everything up to the last needed byte in place, move the filters after it
    together, and drop known leftovers.

    Known leftovers are superseded footers, and filters to which one of these or the current footer
    refers. All other unreferenced bytes are kept: another program may use them, even if they look
    like a filter.
    """
    kept_filters = _readable_filters(file, without=keys)
    leftovers = ranges_between(file, list(kept_filters.values()))
    referenced_offsets = _offsets_in_footers(file, leftovers)

    def is_droppable(unused_range: Range) -> bool:
        if unused_range.kind == OLD_FOOTER:
            return True
        return unused_range.kind == OLD_FILTER and unused_range.start in referenced_offsets

    keep = end_of_data(file.footer)
    for unused_range in leftovers:
        if not is_droppable(unused_range):
            keep = max(keep, unused_range.end)
    # A filter that begins before the cut is kept whole, in place.
    cut = keep
    for stored in kept_filters.values():
        if stored.place.offset < cut:
            keep = max(keep, stored.end)
    # The spool keeps a copy to compare with the new object in an object store: by then, the old
    # object no longer exists.
    moved_filters = {}
    for key, stored in kept_filters.items():
        if stored.place.offset >= keep:
            copy = spool.append(file.source.read(stored.place.offset, stored.length))
            moved_filters[key] = (copy,)
    return plan_append(file.footer, keep, moved_filters, drop=keys)


def _offsets_in_footers(file: ParquetFile, leftovers: Iterable[Range]) -> set[int]:
    """Return the offsets of the filters to which the footer or a superseded one refers."""
    footers = [file.footer]
    for unused_range in leftovers:
        if unused_range.kind == OLD_FOOTER:
            old_footer = footer_ending_at(file, unused_range.end)
            if old_footer is not None:
                footers.append(old_footer)
    offsets: set[int] = set()
    for footer in footers:
        offsets.update(place.offset for place in footer.filter_places().values())
    return offsets


def _count_unreferenced(file: ParquetFile, keys: set[ChunkKey], patch: Patch, method: str) -> int:
    """Count the unreferenced bytes of the new file.

    If there are locked columns, the footer has unknown references; then only superseded footers and
    the removed filters count.
    """
    if method == TRUNCATED:
        return 0
    footer = file.footer
    has_unknown_references = footer.has_locked_chunks()
    num_bytes = 0
    kept_filters = list(_readable_filters(file, without=keys).values())
    for unused_range in unreferenced_ranges(file, kept_filters):
        is_known = not has_unknown_references or unused_range.kind == OLD_FOOTER
        if is_known and unused_range.end <= patch.keep:
            num_bytes += unused_range.length
    if has_unknown_references:
        places = set(starmap(footer.filter_place, keys))
        for place in places:
            if place is not None and place.offset < patch.keep:
                num_bytes += place.length or 0
    if patch.keep >= footer.end:
        num_bytes += footer.end - footer.start
    return num_bytes


def _compare(file: ParquetFile, keys: set[ChunkKey], fresh: ParquetFile) -> None:
    """Ensure that the new footer differs from the old one only in filters, and that the remaining
    filters are the same, bit for bit."""
    ensure_same_footer(file, fresh, file.footer.recorded_chunks() | fresh.footer.recorded_chunks())
    old_filters = _readable_filters(file, without=keys)
    new_filters = _readable_filters(fresh, without=set())
    if old_filters.keys() != new_filters.keys():
        raise mistake(file, "the filters that would remain differ from those planned")
    for key, old in old_filters.items():
        new = new_filters[key]
        old_bytes = file.source.read(old.place.offset, old.length)
        if old_bytes != fresh.source.read(new.place.offset, new.length):
            raise mistake(file, "a filter that should remain would change")
