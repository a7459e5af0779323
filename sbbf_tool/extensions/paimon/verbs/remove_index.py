"""Remove Bloom filter indexes from the data files of a table, and commit that as Paimon does.

Indexes of other types, such as bitmaps, are kept in a new container, bit for bit. An `.index` file
stays on disk for the snapshots that refer to it; Paimon's `remove_orphan_files` deletes it when no
snapshot does.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

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
    removing = _Removing(paimon_table, names, unreadable)
    snapshot_after, removed_indexes, missing = carry_out(
        paimon_table, removing.plan_changes(), dry_run=dry_run
    )
    return RemoveIndexReport(
        table=paimon_table.path,
        dry_run=dry_run,
        snapshot_before=paimon_table.snapshot_id,
        snapshot_after=snapshot_after,
        skipped=(*removing.skipped, *missing),
        notes=() if unreadable else _build_notes(paimon_table.schema, names),
        removed_indexes=removed_indexes,
    )


def _ensure_exists(table: PaimonTable, name: str) -> None:
    """Raise UsageError if neither the table nor the schema of a data file has the column."""
    try:
        resolve_column(table.schema, name)
    except UsageError:
        column = parse_indexed_column(name).column
        file_by_schema = {live.file.schema_id: live.file for live in table.live_files}
        if not any(table.schema_of(file).field(column) for file in file_by_schema.values()):
            raise


@dataclass
class _Removing:
    """The removal of indexes from the data files of a table, and the files that are skipped."""

    table: PaimonTable
    names: Collection[str]
    """Current names of the columns; empty for all."""
    unreadable: bool
    """Whether unreadable indexes are removed, and no others."""
    skipped: list[SkippedFile] = field(default_factory=list)

    def plan_changes(self) -> Iterator[tuple[IndexChange, RemovedIndex]]:
        """Yield the change of each data file that loses an index, and what it loses."""
        placement = Placement(self.table)
        for live in self.table.live_files:
            index = find_index(self.table.files, live)
            if index.container is not None:
                planned = self._remove_filters(live, index.container, placement)
                if planned is not None:
                    yield planned
            elif index.is_damaged and self.unreadable:
                change = IndexChange(live.entry, None, None)
                yield change, RemovedIndex(live.file.name, (), *change.place)
            elif index.place != NONE:
                reason = f"its index cannot be used: {index.problem}"
                if index.is_damaged:
                    reason += "; removing unreadable indexes removes it"
                self.skipped.append(SkippedFile(live.file.name, reason, is_unreadable=True))

    def _remove_filters(
        self, live: IndexedFile, container: Container, placement: Placement
    ) -> tuple[IndexChange, RemovedIndex] | None:
        """Plan the removal of filters from a container that can be read; None if all stay."""
        columns = self._find_columns(live, container)
        if not columns:
            return None
        change = IndexChange(live.entry, None, None)
        remaining = _without_filters(container, columns)
        if remaining:
            try:
                change = placement.put(live, build_verified(remaining))
            except RefusedError as error:
                self.skipped.append(SkippedFile(live.file.name, error.message))
                return None
        return change, RemovedIndex(live.file.name, columns, *change.place)

    def _find_columns(self, live: IndexedFile, container: Container) -> tuple[str, ...]:
        """Return the columns, by their names in a container, whose filters are to be removed."""
        if self.unreadable:
            return ()
        schema = self.table.schema_of(live.file)
        columns = []
        for column, kinds in container.indexes.items():
            if KIND in kinds:
                name = current_name(schema, self.table.schema, parse_indexed_column(column))
                if not self.names or (column if name is None else name) in self.names:
                    columns.append(column)
        return tuple(columns)


def _without_filters(
    container: Container, columns: Collection[str]
) -> dict[str, dict[str, bytes | None]]:
    """Return the bytes of the indexes that remain without the Bloom filters of these columns."""
    remaining = {}
    for column, kinds in container.bodies.items():
        if column in columns:
            del kinds[KIND]
        if kinds:
            remaining[column] = kinds
    return remaining


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
