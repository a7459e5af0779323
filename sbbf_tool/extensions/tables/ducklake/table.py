"""A DuckLake table. A commit is one transaction of the catalog that gives the rows of data files
the paths and lengths of their copies.

A snapshot of DuckLake names its data files by their rows, and delete files name the row too
(`data_file_id`). So every snapshot, the old ones included, reads the copies from then on, no
snapshot is added, and rows that were deleted by position stay deleted. The old files are scheduled
for deletion, as DuckLake's own compaction does; `ducklake_cleanup_old_files` removes them.

A copy stays in the folder of its file: for an added file, DuckLake reads partition values from the
names of its folders.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from sbbf_tool.errors import ChangedError, SbbfError, UnreadableError, UsageError, WriteError
from sbbf_tool.extensions.tables.ducklake import catalog
from sbbf_tool.extensions.tables.ducklake.catalog import parse_name
from sbbf_tool.extensions.tables.ducklake.entries import FileRow, TableEntry
from sbbf_tool.extensions.tables.ducklake.metadata import Catalog
from sbbf_tool.extensions.tables.lake_table import FolderOfTable, LakeTable, Replacement
from sbbf_tool.file.partition_order import EQUAL, orders_of, text_in_table
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.running.table import Change, Commit, LiveFile
from sbbf_tool.storage.places import TableFinder, is_url, open_source

_MOST_VALUES = 10_000
"""Number of values to look up, above which every inlined row may hold one of them."""


def may_hold(stored: object, kind: str, values: Sequence[object] | None) -> bool:
    """Return whether an inlined value of a column of this type may be one of the values; None among
    them is null. False is certain. Without values, every value is meant."""
    if values is None or not kind or len(values) > _MOST_VALUES:
        return True
    is_text = kind.lower() == "varchar"
    if stored is None:
        return any(
            value is None or (not is_text and str(value).lower() == "null") for value in values
        )
    if kind.lower() == "boolean" and stored in (0, 1):
        # SQLite has no booleans.
        stored = bool(stored)
    text = text_in_table(stored)
    return any(value is not None and _may_be(text, value, kind) for value in values)


def _may_be(stored: str, value: object, kind: str) -> bool:
    try:
        return bool(orders_of(stored, value, kind) & EQUAL)
    except UsageError:
        # The value is written in a form that only columns of files take, such as hexadecimal.
        return True


_CONCURRENT_READS = 16


class DuckLakeTable(LakeTable):
    """A table of a DuckLake catalog in its newest snapshot."""

    format = "DuckLake"
    old_files_stay = "until ducklake_cleanup_old_files deletes them"

    def __init__(self, name: str) -> None:
        """Read the catalog. Raises UsageError, UnreadableError, and RefusedError for a version of
        the catalog that is not supported."""
        self._name = parse_name(name)
        self.name = name
        self._live_files: tuple[LiveFile, ...] | None = None
        with self._read() as rows:
            self._entry = rows.find_table()
            self._snapshot = rows.snapshot
            columns = rows.columns(self._entry)
            self._mappings = rows.mappings(self._entry, columns)
            self.columns = ColumnNames(
                by_id=columns.paths, defaults=columns.with_default, types=columns.types_by_path
            )
            self.properties = rows.table_settings(self._entry)
            self._keys, self.partition_types = rows.partition_keys(self._entry, columns)
        self.location = self._entry.folder.rstrip("/")
        self.marker_text = self._name.marker_text(self._entry.id)
        self.version = f"snapshot {self._snapshot}"

    def live_files(self) -> Iterable[LiveFile]:
        # Read once: another process may have the catalog open when the files are listed again.
        if self._live_files is None:
            self._live_files = tuple(self._read_files(self._snapshot))
        return self._live_files

    def all_files(self) -> tuple[Iterable[LiveFile], AbstractSet[str]]:
        with self._read() as rows:
            delete_files = set(rows.other_paths(rows.tables(is_live=False), scheduled=False))
        return self._read_files(None), delete_files

    def _read_files(self, snapshot: int | None) -> Iterator[LiveFile]:
        """Yield the files of a snapshot; those of all snapshots if None."""
        with self._read() as rows:
            values = rows.partition_values(self._entry)
            deletes = rows.deletes(self._entry, self._snapshot)
            files = list(rows.files(self._entry, snapshot))
        paths = Counter(file.path(self._entry.folder) for file in files)
        tables = TableFinder()
        folder = FolderOfTable(self._entry.folder)
        all_names = set[str]()
        for names in self._keys.values():
            all_names.update(names.values())
        for file in files:
            path = file.path(self._entry.folder)
            partition = self._name_partition(file, values.get(file.id, ()))
            reason = _unchangeable(file, folder, path)
            if reason is None and paths[path] > 1:
                reason = "the catalog names it more than once"
            columns = None
            if file.mapping_id is not None:
                columns = self._mappings.get(file.mapping_id, ColumnNames())
            yield LiveFile(
                path,
                file.bytes,
                partition,
                reason or _owner_of(file, tables),
                columns=columns,
                unknown=all_names - partition.keys(),
                deletes=tuple(deletes.get(file.id, ())),
                is_live=file.is_live,
            )

    def _name_partition(
        self, file: FileRow, values: Iterable[tuple[int, str | None]]
    ) -> dict[str, str | None]:
        """Return the partition values of a file by the names of the keys."""
        if file.partition_id is None:
            return {}
        names = self._keys.get(file.partition_id, {})
        return {names[index]: value for index, value in values if index in names}

    def query_other_rows(
        self, column: str | None, values: Sequence[object] | None, *, all_versions: bool = False
    ) -> bool:
        """Query the rows that the catalog keeps inlined, as it does by default with those of small
        inserts."""
        path = None if column is None else self.columns.path_of(column)
        with self._read() as rows:
            inlined = rows.inlined_values(self._entry, path, all_versions=all_versions)
            return any(may_hold(stored, kind, values) for stored, kind in inlined)

    def ensure_changeable(self, *, conditional_put: bool = False) -> None:
        with catalog.write(self._name) as connection:
            Catalog(connection, self._name)
            connection.change("update ducklake_data_file set path = path where 1 = 0")

    def commit(self, replacements: Sequence[Replacement], change: Change) -> Commit:
        try:
            return self._commit(replacements, _read_footer_lengths(replacements))
        except UnreadableError as error:
            raise WriteError(
                error.message, file=error.file, place=error.place, hint=error.hint
            ) from error

    def _commit(self, replacements: Sequence[Replacement], footers: Sequence[int]) -> Commit:
        vanished = []
        old_paths = {replacement.old_path for replacement in replacements}
        with catalog.write(self._name) as connection:
            rows = Catalog(connection, self._name)
            current, uses = _find_rows(rows, self._entry, old_paths)
            for replacement, footer in zip(replacements, footers, strict=True):
                row = current.get(replacement.old_path)
                if row is None or not _replace(
                    connection, row, self._entry.folder, replacement, footer
                ):
                    vanished.append(replacement.old_path)
                elif uses[_comparable(replacement.old_path)] == 1:
                    _schedule_deletion(connection, row, replacement.old_path, rows.data_path)
            snapshot = rows.snapshot
        replaced = len(replacements) - len(vanished)
        return Commit(f"snapshot {snapshot}", replaced, tuple(vanished), is_new_version=False)

    def paths_of_versions(self) -> Iterator[str]:
        with self._read() as rows:
            tables = rows.tables(is_live=False)
            for row in rows.files():
                yield _path_in(tables, row)
            yield from rows.other_paths(tables)

    @contextmanager
    def _read(self) -> Iterator[Catalog]:
        """Open the catalog for reading."""
        with catalog.read(self._name) as connection:
            yield Catalog(connection, self._name)


def _owner_of(file: FileRow, tables: TableFinder) -> str | None:
    """Return why a file is not this table's alone. Only a file that was added from elsewhere has an
    absolute path."""
    if file.is_relative:
        return None
    try:
        owner = tables.managing_table(file.stored_path)
    except SbbfError as error:
        return f"it is unknown whose it is: {error.message}"
    if owner is None:
        return None
    table_format, name = owner
    if table_format == DuckLakeTable.format:
        return None
    return f"it also belongs to the {table_format} table {name}"


def _unchangeable(file: FileRow, folder: FolderOfTable, path: str) -> str | None:
    if file.is_encrypted:
        return "it is encrypted with a key of the catalog"
    if file.format.lower() != "parquet":
        return f"its format is {file.format}, not Parquet"
    if file.is_relative and ".." in file.stored_path.split("/"):
        return "its path leads out of the table's folder"
    if not file.is_relative:
        return None
    target = folder.find_link_out(path)
    return target and f"a link in its path leads out of the table's folder, to {target}"


def _read_footer_lengths(replacements: Sequence[Replacement]) -> list[int]:
    """Return the length of the footer of each copy, as DuckLake records it: without the last eight
    bytes.

    Raises UnreadableError if a copy is missing, and ChangedError if it is not the one that was
    made.
    """
    with ThreadPoolExecutor(_CONCURRENT_READS) as pool:
        return list(pool.map(_read_footer_length, replacements))


def _read_footer_length(replacement: Replacement) -> int:
    with open_source(replacement.new_path) as source:
        if source.size != replacement.new_bytes or source.size < 8:
            raise ChangedError.after_open(replacement.new_path)
        end = source.read(source.size - 8, 8)
    if end[4:] != b"PAR1":
        raise UnreadableError("the copy is not a Parquet file", file=replacement.new_path)
    return int.from_bytes(end[:4], "little")


def _find_rows(
    rows: Catalog, table: TableEntry, paths: AbstractSet[str]
) -> tuple[dict[str, FileRow], Counter[str]]:
    """Return the rows of these files in the newest snapshot of a table, and how often all tables
    and snapshots name each file."""
    tables = rows.tables(is_live=False)
    comparable = {_comparable(path) for path in paths}
    folder = FolderOfTable(table.folder)
    current = {}
    uses = Counter[str]()
    for row in rows.files():
        path = _path_in(tables, row)
        key = _comparable(path)
        if key not in comparable:
            continue
        uses[key] += 1
        is_own = row.table_id == table.id and row.is_live and path in paths
        if is_own and _unchangeable(row, folder, path) is None:
            current[path] = row
    return current, uses


def _path_in(tables: dict[int, TableEntry], row: FileRow) -> str:
    folder = tables[row.table_id].folder if row.table_id in tables else ""
    return row.path(folder)


def _comparable(path: str) -> str:
    return path if is_url(path) else os.path.normpath(path)


def _replace(
    connection: catalog.Connection, row: FileRow, folder: str, replacement: Replacement, footer: int
) -> bool:
    """Give a row the path of the copy; return False if the row is not the one that was read."""
    statement = (
        "update ducklake_data_file set path = ?, file_size_bytes = ?, footer_size = ?"
        " where data_file_id = ? and path = ? and end_snapshot is null"
    )
    path = replacement.new_path.removeprefix(folder) if row.is_relative else replacement.new_path
    parameters = (path, replacement.new_bytes, footer, row.id, row.stored_path)
    return connection.change(statement, *parameters) == 1


def _schedule_deletion(
    connection: catalog.Connection, row: FileRow, path: str, data_path: str
) -> None:
    relative = path.removeprefix(data_path)
    is_relative = "false" if relative == path else "true"
    statement = (
        "insert into ducklake_files_scheduled_for_deletion (data_file_id, path, "
        f"path_is_relative, schedule_start) values (?, ?, {is_relative}, {connection.now})"
    )
    connection.change(statement, row.id, relative)
