"""`remove_filters`: remove filters with the same write protocol as `add_filters`.

Where the filters are at the end of the file as `add_filters` wrote them, the file is cut back to the previous footer, byte for byte as it
was. This is recorded nowhere but verified: the old footer with those filters set must equal the present footer. In all other cases a new
footer without the fields is appended, and the unreferenced bytes are reported, or dropped with `compact`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.editing.build import mistake
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.publish import ensure_same_footer
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import NothingToDoError, RefusedError, UnreadableError
from sbbf_tool.file.layout import OLD_FILTER, OLD_FOOTER, end_of_data, unused_ranges
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Hint
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import TAIL_BYTES, FilterPlace, Footer, open_metadata, set_filters
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append
from sbbf_tool.reports.remove import RemovedFilter, RemoveReport
from sbbf_tool.storage.spool import Spool

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

TRUNCATED, COMPACTED, NEW_FOOTER = "truncated", "compacted", "new footer"


def remove_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    compact: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysGiven = None,
) -> RemoveReport:
    """Remove the filters of `columns` (of all columns where empty), writing to `output` or `in_place`.

    Raises NothingToDoError (none of the columns has a filter), RefusedError (a column has no filter, the footer is signed, a table's file,
    ...), UnreadableError, UsageError, WriteError; the old file stays intact in every case.
    """
    edit = Edit(output, in_place, dry_run=dry_run, allow_table_files=allow_table_files, keys=keys)
    with edit.open(path) as opened:
        file = opened.file
        chunks = _chosen(file, as_names(columns), compact)
        opened.ensure_replaceable()
        patch, method = _plan(file, chunks, compact, opened.spool)
        report = partial(
            RemoveReport,
            filters=tuple(RemovedFilter(row_group, file.footer.columns[column].name) for row_group, column in sorted(chunks)),
            method=method,
            unreferenced_bytes=_unreferenced(file, chunks, patch, method),
        )
        return opened.publish(patch, report, partial(_compare, file, chunks))


def _chosen(file: ParquetFile, names: tuple[str, ...], compact: bool) -> set[ChunkKey]:
    """Return the chunks whose filters are removed, also those whose offset of 0 means "none". Raises RefusedError where there is none."""
    check_changeable(file)
    columns = choose_columns(file, names) or list(file.footer.columns)
    for column in columns:
        if any(file.footer.is_closed(number, column.index) for number in range(file.footer.num_row_groups)):
            hint = Hint("give its key with {keys}, or name other columns with {columns}", keys=..., columns=...)
            raise RefusedError("its metadata are encrypted", file=file.name, place=f"column {column.name}", hint=hint)
    mentioned = _mentioned(file.footer)
    with_filter = {column for _, column in mentioned}
    for column in columns:
        if names and column.index not in with_filter:
            kind = RefusedError if with_filter & {one.index for one in columns} else NothingToDoError
            raise kind("it has no filter to remove", file=file.name, place=f"column {column.name}")
    chosen = {column.index for column in columns}
    keys = {key for key in mentioned if key[1] in chosen}
    if not keys and not compact:
        raise NothingToDoError("no column has a filter to remove", file=file.name)
    return keys


def _mentioned(footer: Footer) -> set[ChunkKey]:
    """Return the chunks for which the footer has a filter's offset or length, whatever they say, in columns that are not locked."""
    return {
        (row_group, column.index)
        for row_group in range(footer.num_row_groups)
        for column in footer.columns
        if footer.chunk_meta(row_group, column.index).stated_filter != (None, None) and not footer.is_closed(row_group, column.index)
    }


def _plan(file: ParquetFile, keys: set[ChunkKey], compact: bool, spool: Spool) -> tuple[Patch, str]:
    before = _footer_without(file, keys) if keys else None
    if before is not None:
        return Patch(before.end, (), before.raw, {}), TRUNCATED
    if compact:
        patch = _compacted(file, keys, spool)
        if not keys and patch.size >= file.source.size:
            raise NothingToDoError("there is no filter to remove, and nothing to compact", file=file.name)
        return patch, COMPACTED
    return plan_append(file.footer, file.source.size, {}, drop=keys), NEW_FOOTER


def _footer_without(file: ParquetFile, keys: set[ChunkKey]) -> Footer | None:
    """Return the superseded footer to which cutting the file back removes these filters and nothing else; None where there is none."""
    footer = file.footer
    remaining = set(keys)
    while remaining:
        placed = {
            (row_group, column.index): place
            for row_group in range(footer.num_row_groups)
            for column in footer.columns
            if (place := footer.filter_place(row_group, column.index)) is not None
        }
        # Filters that are contiguous up to the footer were written together.
        start, tail = footer.start, {}
        for key, place in sorted(placed.items(), key=lambda item: -item[1].offset):
            if place.length is None or place.offset + place.length != start:
                break
            start, tail[key] = place.offset, place
        before = _footer_ending_at(file, start)
        if not tail or before is None or not tail.keys() <= remaining or not _is_footer_with(footer, before, tail):
            return None
        still_there = {key for key in remaining if before.filter_place(*key) is not None}
        remaining, footer = still_there, before
    return footer


def _is_footer_with(footer: Footer, before: Footer, filters: Mapping[ChunkKey, FilterPlace]) -> bool:
    """Return whether `footer` equals `before` with these filters set, to the byte."""
    try:
        # Encrypting the same metadata twice gives different bytes, so plaintexts are compared.
        return set_filters(before.raw, filters, before.cipher, leave_open=True) == open_metadata(footer.raw, filters, footer.cipher)
    except UnreadableError:
        # `before` has no such chunks: it is the footer of another file.
        return False


def _filter_offsets(footer: Footer) -> set[int]:
    places = (footer.filter_place(row_group, column.index) for row_group in range(footer.num_row_groups) for column in footer.columns)
    return {place.offset for place in places if place is not None}


def _footer_ending_at(file: ParquetFile, end: int) -> Footer | None:
    if end < TAIL_BYTES:
        return None
    try:
        return file.parse_footer_ending_at(end)
    except (UnreadableError, RefusedError):
        return None


def _readable_filters(file: ParquetFile, without: set[ChunkKey]) -> dict[ChunkKey, StoredFilter]:
    found = {}
    for row_group in range(file.footer.num_row_groups):
        for column in file.footer.columns:
            if (row_group, column.index) not in without and file.encryption_of(row_group, column) is None:
                stored = file.stored_filter(row_group, column)
                if stored is not None:
                    found[row_group, column.index] = stored
    return found


def _compacted(file: ParquetFile, keys: set[ChunkKey], spool: Spool) -> Patch:
    """Keep everything up to the last needed byte in place; move the filters after it together; drop known leftovers.

    Known leftovers are superseded footers, and filters that one of them or the present footer names. All other unreferenced bytes are
    kept: another program may use them, even where they look like a filter.
    """
    kept = _readable_filters(file, without=keys)
    leftovers = unused_ranges(file, list(kept.values()))
    named = _filter_offsets(file.footer).union(
        *(_filter_offsets(before) for found in leftovers if found.what == OLD_FOOTER and (before := _footer_ending_at(file, found.end)))
    )
    known = [found for found in leftovers if found.what == OLD_FOOTER or (found.what == OLD_FILTER and found.start in named)]
    keep = max([end_of_data(file.footer), *(found.end for found in leftovers if found not in known)])
    # A filter that begins before the cut stays whole where it is.
    keep = max([keep, *(stored.end for stored in kept.values() if stored.place.offset < keep)])
    # The spool keeps a copy to compare with the new object of a store: by then the old object, with its filters, no longer exists.
    moved = {
        key: (spool.append(file.source.read(stored.place.offset, stored.length)),)
        for key, stored in kept.items()
        if stored.place.offset >= keep
    }
    return plan_append(file.footer, keep, moved, drop=keys)


def _unreferenced(file: ParquetFile, keys: set[ChunkKey], patch: Patch, method: str) -> int:
    """Count the unreferenced bytes of the new file. With locked columns other references of the footer are not known: then only
    superseded footers and the filters removed here count.
    """
    if method == TRUNCATED:
        return 0
    unused = unused_ranges(file, list(_readable_filters(file, without=keys).values()))
    if _is_any_closed(file.footer):
        places = {place for key in keys if (place := file.footer.filter_place(*key)) is not None and place.offset < patch.keep}
        left = sum(place.length or 0 for place in places)
        left += sum(found.length for found in unused if found.what == OLD_FOOTER and found.end <= patch.keep)
    else:
        left = sum(found.length for found in unused if found.end <= patch.keep)
    return left + (file.footer.end - file.footer.start if method == NEW_FOOTER else 0)


def _is_any_closed(footer: Footer) -> bool:
    return any(footer.is_closed(number, column.index) for number in range(footer.num_row_groups) for column in footer.columns)


def _compare(file: ParquetFile, keys: set[ChunkKey], fresh: ParquetFile) -> None:
    """Ensure that the new footer differs from the old one only in filters, and that the remaining filters are the same, bit for bit."""
    ensure_same_footer(file, fresh, _mentioned(file.footer) | _mentioned(fresh.footer))
    old, new = _readable_filters(file, without=keys), _readable_filters(fresh, without=set())
    if old.keys() != new.keys():
        raise mistake(file, "the filters that would remain are not those that should")
    for key, stored in old.items():
        if file.source.read(stored.place.offset, stored.length) != fresh.source.read(new[key].place.offset, new[key].length):
            raise mistake(file, "a filter that stays would not be the same")
