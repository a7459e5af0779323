"""Remove Bloom filter indexes from the data files of a table, and commit that as Paimon does.

Indexes of other types, such as bitmaps, are kept in a new container, bit for bit. An `.index` file stays on disk for the snapshots that
refer to it; Paimon's `remove_orphan_files` deletes it when no snapshot does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from sbbf_tool.arguments import as_names
from sbbf_tool.errors import ErrorPlace, RefusedError, SbbfError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND
from sbbf_tool.extensions.paimon.commit_plan import IndexChange
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_container import Container, build_container, lay_out, parse_container
from sbbf_tool.extensions.paimon.index_options import parse_bloom_columns
from sbbf_tool.extensions.paimon.publish import Placement, carry_out, ensure_changeable
from sbbf_tool.extensions.paimon.reports import RemovedIndex, RemoveIndexReport, SkippedFile
from sbbf_tool.extensions.paimon.table import EMBEDDED, FILE, NONE, FileIndex, IndexedFile, PaimonTable, find_index, open_table
from sbbf_tool.extensions.paimon.table_schema import TableSchema, current_name, parse_indexed_column, resolve_column


def remove_paimon_index(
    table: str | os.PathLike[str],
    columns: str | Iterable[str] = (),
    *,
    unreadable: bool = False,
    dry_run: bool = False,
    allow_outside: bool = False,
    files: FileIO | None = None,
) -> RemoveIndexReport:
    """Remove the Bloom filters of these columns, by their current names, from every data file; without columns, all Bloom filters.

    A column that the table no longer has is named as in its data files. With `unreadable`, remove indexes that contradict the format or are
    missing instead, on which Paimon fails. A dry run writes nothing. No row changes. Raises UsageError for a column that does not exist,
    RefusedError for a table whose commits are not supported and if writing is not permitted, WriteError if writing fails, and
    UnreadableError if the table cannot be read; in all these cases the table is unchanged.
    """
    names = as_names(columns)
    if unreadable and names:
        raise UsageError("unreadable indexes are removed as a whole: name no column")
    paimon_table = open_table(files, table, allow_outside=allow_outside)
    ensure_changeable(paimon_table)
    with ErrorPlace(paimon_table.path):
        for name in names:
            _ensure_exists(paimon_table, name)
    removed: list[RemovedIndex] = []
    skipped: list[SkippedFile] = []
    changes = _plan_changes(paimon_table, names, unreadable, removed, skipped)
    snapshot_id, missing = carry_out(paimon_table, changes, dry_run=dry_run)
    skipped += (SkippedFile(name, "another commit deleted it, or changed its index, in the meantime") for name in sorted(missing))
    return RemoveIndexReport(
        table=paimon_table.path,
        dry_run=dry_run,
        snapshot_before=paimon_table.snapshot_id,
        snapshot_after=snapshot_id,
        removed_indexes=tuple(each for each in removed if each.data_file not in missing),
        skipped=tuple(skipped),
        notes=_build_notes(paimon_table.schema, names) if not unreadable else (),
    )


def _ensure_exists(table: PaimonTable, name: str) -> None:
    """Raise UsageError if neither the table nor the schema of one of its data files has the column."""
    try:
        resolve_column(table.schema, name)
    except UsageError:
        column = parse_indexed_column(name).column
        schema_ids = {live.file.schema_id: live.file for live in table.live_files}
        if not any(table.schema_of(file).field(column) for file in schema_ids.values()):
            raise


def _plan_changes(
    table: PaimonTable, names: Collection[str], unreadable: bool, removed: list[RemovedIndex], skipped: list[SkippedFile]
) -> Iterator[IndexChange]:
    """Yield the change of each data file that loses an index. Append the result of each file to the lists."""
    placement = Placement(table)
    for live in table.live_files:
        index = find_index(table.files, live)
        if index.place == NONE:
            continue
        if index.container is None:
            if unreadable and index.is_damaged:
                removed.append(RemovedIndex(live.file.name, (), NONE, None, 0))
                yield IndexChange(live.entry, None, None)
            else:
                reason = f"its index cannot be used: {index.problem}"
                reason += "; removing unreadable indexes removes it" if index.is_damaged else ""
                skipped.append(SkippedFile(live.file.name, reason, is_unreadable=True))
        elif not unreadable and (columns := _find_columns(table, live, index.container, names)):
            try:
                yield _remove(table, live, index, columns, placement, removed)
            except RefusedError as error:
                skipped.append(SkippedFile(live.file.name, error.message))


def _find_columns(table: PaimonTable, live: IndexedFile, container: Container, names: Collection[str]) -> tuple[str, ...]:
    """Return the columns of a container, by their names in it, whose Bloom filters are to be removed."""
    schema = table.schema_of(live.file)
    return tuple(
        column
        for column, kinds in container.indexes.items()
        if KIND in kinds and (not names or (current_name(schema, table.schema, parse_indexed_column(column)) or column) in names)
    )


def _remove(
    table: PaimonTable, live: IndexedFile, index: FileIndex, columns: Collection[str], placement: Placement, removed: list[RemovedIndex]
) -> IndexChange:
    """Plan the container without the Bloom filters of these columns; none if nothing remains."""
    assert index.container is not None
    bodies = {
        column: {kind: body for kind, body in kinds.items() if kind != KIND or column not in columns}
        for column, kinds in index.container.bodies.items()
    }
    remaining = {column: kinds for column, kinds in bodies.items() if kinds}
    container = build_container(lay_out(remaining)) if remaining else None
    if container is not None and parse_container(container).bodies != remaining:
        raise SbbfError("the remaining index differs from the present one; nothing was written", hint="please report it")
    path = placement.choose_path(live, len(container)) if container is not None else None
    place = NONE if container is None else FILE if path else EMBEDDED
    removed.append(RemovedIndex(live.file.name, tuple(columns), place, path, len(container or b"")))
    return IndexChange(live.entry, container, path)


def _build_notes(schema: TableSchema, names: Collection[str]) -> tuple[str, ...]:
    requests = [column for column in parse_bloom_columns(schema.options) if not names or column in names]
    if not requests:
        return ()
    return (f"file-index.bloom-filter.columns names {', '.join(requests)}: data files that Paimon writes later will have an index for it",)
