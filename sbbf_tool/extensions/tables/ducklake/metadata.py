"""What a DuckLake catalog says of one table: paths, columns, partition keys, data files. Rows in,
values out; nothing is changed.

A value of a wrong type raises UnreadableError. Column ids are the field ids of the Parquet files
that DuckLake writes; a file that was written by others and added has a mapping from its own names
to column ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Positions, Vector
from sbbf_tool.extensions.tables.ducklake.catalog import Connection, Parameter, Row, TableName
from sbbf_tool.extensions.tables.ducklake.entries import (
    FileRow,
    Path,
    TableColumns,
    TableEntry,
    absolute,
    join,
)
from sbbf_tool.extensions.tables.ducklake.inlined_rows import InlinedTable, InlinedValue
from sbbf_tool.extensions.tables.ducklake.partition_keys import name_keys
from sbbf_tool.extensions.tables.ducklake.rows import LIVE, MAX_FILES, CheckedRows
from sbbf_tool.file.table_file import Deletes, UnknownDeletes
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import MAX_DEPTH

VERSIONS = ("0.2", "0.3", "0.4", "1.0")
"""Versions of the catalog that are known. All have the same rows for data files, as far as they are
read or changed here."""
_TABLES = (
    "metadata",
    "snapshot",
    "schema",
    "table",
    "column",
    "data_file",
    "delete_file",
    "file_partition_value",
    "partition_column",
    "column_mapping",
    "name_mapping",
    "files_scheduled_for_deletion",
)
_MOST_LISTED = 20


class Catalog(CheckedRows):
    """The rows of one catalog, as values."""

    def __init__(self, connection: Connection, name: TableName) -> None:
        """Read version and snapshot. Raises UnreadableError if this is no catalog, and RefusedError
        for a version that is not known."""
        super().__init__(connection, name)
        self._tables = {table for (table,) in self.rows(connection.tables, (), str)}
        missing = [table for table in _TABLES if f"ducklake_{table}" not in self._tables]
        if missing:
            raise self.unreadable(
                f"the database is not a DuckLake catalog: it has no table ducklake_{missing[0]}"
            )
        query = "select key, value from ducklake_metadata where key in ('version', 'data_path')"
        settings: dict[str, str] = dict(self.rows(query, (), str, str))
        version = settings.get("version", "none")
        if version not in VERSIONS:
            raise RefusedError(
                f"the DuckLake catalog has version {version[:40]}, which is not supported",
                file=name.text,
                hint=f"versions {', '.join(VERSIONS)} are supported; DuckDB migrates an older "
                "one that is attached with AUTOMATIC_MIGRATION",
            )
        if not settings.get("data_path"):
            raise self.unreadable("the DuckLake catalog does not state data_path")
        self.data_path = absolute(settings["data_path"]).rstrip("/") + "/"
        query = "select max(snapshot_id) from ducklake_snapshot"
        (self.snapshot,) = self.row(query, (), int)

    def find_table(self) -> TableEntry:
        """Return the table that the name means, in the newest snapshot. Raises UsageError with the
        tables that there are."""
        name = self._name
        tables = list(self.tables(is_live=True).values())
        matches = [table for table in tables if _is_meant(table, name)]
        if len(matches) > 1 and name.table is not None and name.schema is None:
            matches = [table for table in matches if table.schema == "main"] or matches
        if len(matches) == 1:
            return matches[0]
        if not tables:
            raise UsageError("the DuckLake catalog has no table", file=name.text)
        listing = _list_names(tables)
        if name.table is None:
            raise UsageError(
                f"the DuckLake catalog has {len(tables)} tables",
                file=name.text,
                hint=f"add #TABLE; {listing}",
            )
        problem = "has more than one table" if matches else "has no table"
        raise UsageError(
            f"the DuckLake catalog {problem} {name.table!r}", file=name.text, hint=listing
        )

    def tables(self, *, is_live: bool) -> dict[int, TableEntry]:
        """Return the tables by their id: those of the newest snapshot, or all of which the catalog
        still has files."""
        live = "t.end_snapshot is null and s.end_snapshot is null" if is_live else "1 = 1"
        query = (
            "select t.table_id, s.schema_id, s.schema_name, t.table_name, s.path, "
            "s.path_is_relative, t.path, t.path_is_relative"
            " from ducklake_table t join ducklake_schema s on s.schema_id = t.schema_id where "
            f"{live} order by t.begin_snapshot"
        )
        entries = {}
        for row in self.rows(query, (), int, int, str, str, str, bool, str, bool):
            table_id, schema_id, schema, table, schema_path, in_data_path, path, in_schema = row
            folder = join(self.data_path, schema_path, is_relative=in_data_path)
            folder = join(folder, path, is_relative=in_schema)
            entries[table_id] = TableEntry(table_id, schema_id, schema, table, folder)
        return entries

    def table_settings(self, table: TableEntry) -> dict[str, str]:
        """Return the options of the table; those of the table override those of its schema, and
        these those of the catalog."""
        query = (
            "select key, value from ducklake_metadata where (scope is null or (scope = 'schema' "
            "and scope_id = ?)"
            " or (scope = 'table' and scope_id = ?)) order by case scope when 'table' then 2 "
            "when 'schema' then 1 else 0 end"
        )
        return dict(self.rows(query, (table.schema_id, table.id), str, str))

    def columns(self, table: TableEntry) -> TableColumns:
        """Return the columns of the newest snapshot."""
        query = (
            "select column_id, column_name, column_type, parent_column, initial_default from "
            "ducklake_column"
            f" where table_id = ? and {LIVE}"
        )
        parameters = (table.id, self.snapshot, self.snapshot)
        columns = self.rows(query, parameters, int, str, str, int | None, str | None)
        rows = {row[0]: row[1:] for row in columns}
        paths = {id: self._path(id, rows, "column") for id in rows}
        types: dict[int, str] = {}
        defaults = []
        for id, (_, kind, _, default) in rows.items():
            types[id] = kind
            if default is not None:
                defaults.append(paths[id])
        with_default = set[Path]()
        for default_path in defaults:
            depth = len(default_path)
            with_default.update(path for path in paths.values() if path[:depth] == default_path)
        return TableColumns(paths, types, frozenset(with_default))

    def mappings(self, table: TableEntry, columns: TableColumns) -> dict[int, ColumnNames]:
        """Return the names of the columns of files that were added, by the id of their mapping."""
        query = (
            "select m.mapping_id, m.column_id, m.source_name, m.target_field_id, m.parent_column "
            "from ducklake_name_mapping m"
            " join ducklake_column_mapping c on c.mapping_id = m.mapping_id where c.table_id = ?"
        )
        of_lists = (
            "select column_id from ducklake_column where table_id = ? and column_type = 'list'"
        )
        lists = {column for (column,) in self.rows(of_lists, (table.id,), int)}
        rows: dict[int, dict[int, Row]] = {}
        targets: dict[int, dict[int, int]] = {}
        mapped = self.rows(query, (table.id,), int, int, str, int, int | None)
        for mapping, id, source, target, parent in mapped:
            rows.setdefault(mapping, {})[id] = (source, "list" if target in lists else "", parent)
            targets.setdefault(mapping, {})[id] = target
        names = {}
        for mapping, entries in rows.items():
            by_path = {}
            for id, target in targets[mapping].items():
                if target in columns.paths:
                    path = self._path(id, entries, f"column of mapping {mapping},")
                    by_path[path] = columns.paths[target]
            names[mapping] = ColumnNames(
                by_path=by_path,
                # The names of folders may give a file values of any column.
                defaults=frozenset(columns.paths.values()),
                types=columns.types_by_path,
            )
        return names

    def partition_keys(
        self, table: TableEntry, columns: TableColumns
    ) -> tuple[dict[int, dict[int, str]], dict[str, str]]:
        """Return the names of the partition keys, by ids of partitioning and key, as in the names
        of folders, and their types.

        A name that partitionings use for different keys is that of the newest one.
        """
        query = (
            "select partition_id, partition_key_index, column_id, transform from "
            "ducklake_partition_column where table_id = ?"
            " order by partition_id, partition_key_index"
        )
        rows = self.rows(query, (table.id,), int, int, int, str)
        names_of_columns = {id: ".".join(path) for id, path in columns.paths.items()}
        keys = name_keys(rows, names_of_columns)
        types = {}
        for name, key in keys.by_name.items():
            # Other transforms make numbers.
            types[name] = columns.types[key.column] if key.transform == "identity" else "int64"
        return keys.names, types

    def partition_values(self, table: TableEntry) -> dict[int, list[tuple[int, str | None]]]:
        """Return index and value of the partition keys of each data file."""
        query = (
            "select data_file_id, partition_key_index, partition_value from "
            "ducklake_file_partition_value where table_id = ?"
        )
        values: dict[int, list[tuple[int, str | None]]] = {}
        rows = self.rows(query, (table.id,), int, int, str | None, limit=MAX_FILES)
        for file, index, value in rows:
            values.setdefault(file, []).append((index, value))
        return values

    def files(
        self, table: TableEntry | None = None, snapshot: int | None = None
    ) -> Iterator[FileRow]:
        """Yield the data files of a table in a snapshot, or in all snapshots, live ones first, or
        of all tables in all snapshots."""
        where = ""
        parameters: tuple[Parameter, ...] = ()
        if table is not None:
            where = "where table_id = ?"
            parameters = (table.id,)
            if snapshot is not None:
                where = f"{where} and {LIVE}"
                parameters = (table.id, snapshot, snapshot)
        query = (
            "select data_file_id, table_id, path, path_is_relative, file_format, "
            "file_size_bytes, partition_id, mapping_id,"
            f" encryption_key is not null, end_snapshot is null from ducklake_data_file {where}"
            " order by end_snapshot is not null, data_file_id"
        )
        kinds = (int, int, str, bool, str, int | None, int | None, int | None, bool, bool)
        for row in self.rows(query, parameters, *kinds, limit=MAX_FILES):
            yield FileRow(*row)

    def deletes(self, table: TableEntry, snapshot: int) -> dict[int, list[Deletes]]:
        """Return the deletes of a snapshot by the id of their data file."""
        deletes: dict[int, list[Deletes]] = {}
        query = (
            "select data_file_id, path, path_is_relative, format, encryption_key is not null, "
            "delete_count from ducklake_delete_file"
            f" where table_id = ? and {LIVE}"
        )
        parameters = (table.id, snapshot, snapshot)
        kinds = (int, str, bool, str | None, bool, int)
        rows = self.rows(query, parameters, *kinds, limit=MAX_FILES)
        for file, stored_path, is_relative, format, is_encrypted, count in rows:
            path = join(table.folder, stored_path, is_relative=is_relative)
            delete: Deletes
            if is_encrypted:
                delete = UnknownDeletes(
                    "rows may be deleted by a file that is encrypted with a key of the catalog"
                )
            elif (format or "").lower() == "puffin":
                delete = Vector(count, path)
            else:
                delete = PositionFile(path, None)
            deletes.setdefault(file, []).append(delete)
        name = f"ducklake_inlined_delete_{table.id}"
        if name in self._tables:
            query = f"select file_id, row_id from {name} where begin_snapshot <= ? order by file_id"
            pairs = self.rows(query, (snapshot,), int, int)
            for file, group in groupby(pairs, itemgetter(0)):
                positions = Positions(tuple(position for _, position in group))
                deletes.setdefault(file, []).append(positions)
        return deletes

    def inlined_values(
        self, table: TableEntry, path: Path | None, *, all_versions: bool
    ) -> Iterator[InlinedValue]:
        """Yield the distinct values of a column in the rows that the catalog has in place of files,
        live ones or all."""
        if "ducklake_inlined_data_tables" not in self._tables:
            return
        query = "select table_name from ducklake_inlined_data_tables where table_id = ?"
        for (name,) in list(self.rows(query, (table.id,), str)):
            inlined = InlinedTable(name, table.id, self.snapshot, all_versions)
            if not inlined.is_named_as_usual() or name not in self._tables:
                raise self.unreadable(f"the catalog has no table {name[:60]!r} of inlined rows")
            yield from inlined.values(self, path)

    def other_paths(
        self, tables: Mapping[int, TableEntry], *, scheduled: bool = True
    ) -> Iterator[str]:
        """Yield the paths of delete files and, if `scheduled`, of files that DuckLake will
        delete."""
        query = "select path, path_is_relative, table_id from ducklake_delete_file"
        for path, is_relative, table_id in self.rows(query, (), str, bool, int, limit=MAX_FILES):
            if not is_relative:
                yield absolute(path)
            elif table_id in tables:
                yield tables[table_id].folder + path
        if not scheduled:
            return
        query = (
            "select path, path_is_relative, data_file_id from ducklake_files_scheduled_for_deletion"
        )
        for path, is_relative, _ in self.rows(query, (), str, bool, int, limit=MAX_FILES):
            yield join(self.data_path, path, is_relative=is_relative)

    def _path(self, id: int, rows: Mapping[int, Row], noun: str) -> Path:
        """Return the path of a column from the rows (name, type, parent, ...) of all; the elements
        of lists have no name."""
        parts: list[str] = []
        at = id
        for _ in range(MAX_DEPTH):
            name, _, parent, *_ = rows[at]
            if parent is None:
                return (name, *reversed(parts))
            if parent not in rows:
                raise self.unreadable(
                    f"{noun} {id} is in column {parent}, which the table does not have"
                )
            if rows[parent][1] != "list":
                parts.append(name)
            at = parent
        raise self.unreadable(f"{noun} {id} is nested more than {MAX_DEPTH} deep")


def _is_meant(table: TableEntry, name: TableName) -> bool:
    """Return whether a table may be the one of a name, in which parts may be missing."""
    if name.table is not None and name.table.lower() != table.name.lower():
        return False
    return name.schema is None or name.schema.lower() == table.schema.lower()


def _list_names(tables: Sequence[TableEntry]) -> str:
    names = sorted(table.full_name for table in tables)
    listing = f"the tables are {', '.join(names[:_MOST_LISTED])}"
    if len(names) > _MOST_LISTED:
        listing += f" and {len(names) - _MOST_LISTED} more"
    return listing
