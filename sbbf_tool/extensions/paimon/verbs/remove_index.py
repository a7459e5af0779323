"""Remove Bloom filter indexes from the data files of a table, and commit that as Paimon does.

Indexes of other types, such as bitmaps, are kept in a new container, bit for bit. An `.index` file
stays on disk for the snapshots that refer to it; Paimon's `remove_orphan_files` deletes it when no
snapshot does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import ErrorPlace, RefusedError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_container import Container
from sbbf_tool.extensions.paimon.index_options import parse_bloom_columns
from sbbf_tool.extensions.paimon.publish import Placement, carry_out, open_changeable
from sbbf_tool.extensions.paimon.reports import RemovedIndex, RemoveIndexReport, SkippedFile
from sbbf_tool.extensions.paimon.table import NONE, IndexedFile, PaimonTable, find_index
from sbbf_tool.extensions.paimon.table_schema import (
    TableSchema,
    current_name,
    parse_indexed_column,
    resolve_column,
)
from sbbf_tool.extensions.paimon.verbs.build import build_verified


def remove_paimon_index(
    table: str | os.PathLike[str],
    columns: str | Iterable[str] = (),
    *,
    unreadable: bool = False,
    dry_run: bool = False,
    allow_outside: bool = False,
    files: FileIO | None = None,
) -> RemoveIndexReport:
    """Remove the Bloom filters of these columns, by their current names, from every data file;
    without columns, all Bloom filters.

    A column that the table no longer has is named as in its data files. With `unreadable`, remove
    indexes that contradict the format or are missing instead, on which Paimon fails. A dry run
    writes nothing. No row changes. Raises UsageError for a column that does not exist, RefusedError
    for a table whose commits are not supported and if writing is not permitted, WriteError if
    writing fails, and UnreadableError if the table cannot be read; in all these cases the table is
    unchanged.
    """
    names = as_names(columns)
    if unreadable and names:
        raise UsageError("unreadable indexes are removed as a whole: name no column")
    paimon_table = open_changeable(files, table, allow_outside)
    with ErrorPlace(paimon_table.path):
        for name in names:
            _ensure_exists(paimon_table, name)
    skipped: list[SkippedFile] = []
    fields, removed = carry_out(
        paimon_table,
        _plan_changes(paimon_table, names, unreadable, skipped),
        skipped,
        dry_run=dry_run,
    )
    notes = _build_notes(paimon_table.schema, names) if not unreadable else ()
    return RemoveIndexReport(**fields, removed_indexes=removed, notes=notes)


def _ensure_exists(table: PaimonTable, name: str) -> None:
    """Raise UsageError if neither the table nor the schema of one of its data files has the
    column."""
    try:
        resolve_column(table.schema, name)
    except UsageError:
        column = parse_indexed_column(name).column
        schema_ids = {live.file.schema_id: live.file for live in table.live_files}
        if not any(table.schema_of(file).field(column) for file in schema_ids.values()):
            raise


def _plan_changes(
    table: PaimonTable, names: Collection[str], unreadable: bool, skipped: list[SkippedFile]
) -> Iterator[tuple[IndexChange, RemovedIndex]]:
    """Yield the change of each data file that loses an index, and what it loses. The other files
    are appended to `skipped`."""
    placement = Placement(table)
    for live in table.live_files:
        index, name = find_index(table.files, live), live.file.name
        columns: tuple[str, ...] = ()
        change = IndexChange(live.entry, None, None)
        if index.container is not None:
            columns = () if unreadable else _find_columns(table, live, index.container, names)
            bodies = {
                column: {
                    kind: body
                    for kind, body in kinds.items()
                    if kind != KIND or column not in columns
                }
                for column, kinds in index.container.bodies.items()
            }
            remaining = {column: kinds for column, kinds in bodies.items() if kinds}
            try:
                change = (
                    placement.put(live, build_verified(remaining))
                    if columns and remaining
                    else change
                )
            except RefusedError as error:
                skipped.append(SkippedFile(name, error.message))
                continue
        elif index.place != NONE and not (unreadable and index.is_damaged):
            reason = f"its index cannot be used: {index.problem}"
            reason += "; removing unreadable indexes removes it" if index.is_damaged else ""
            skipped.append(SkippedFile(name, reason, is_unreadable=True))
            continue
        if columns or index.is_damaged:
            yield change, RemovedIndex(name, columns, *change.place)


def _find_columns(
    table: PaimonTable, live: IndexedFile, container: Container, names: Collection[str]
) -> tuple[str, ...]:
    """Return the columns of a container, by their names in it, whose Bloom filters are to be
    removed."""
    schema = table.schema_of(live.file)
    return tuple(
        column
        for column, kinds in container.indexes.items()
        if KIND in kinds
        and (
            not names
            or (current_name(schema, table.schema, parse_indexed_column(column)) or column) in names
        )
    )


def _build_notes(schema: TableSchema, names: Collection[str]) -> tuple[str, ...]:
    requests = [
        column for column in parse_bloom_columns(schema.options) if not names or column in names
    ]
    if not requests:
        return ()
    return (
        f"file-index.bloom-filter.columns names {', '.join(requests)}: data files that Paimon "
        "writes later will have an index for it",
    )
