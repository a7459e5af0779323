"""What a DuckLake catalog says of one table: paths, columns, partition keys, data files. Rows in,
values out; nothing is changed.

A value of a wrong type raises UnreadableError, because a catalog may come from a stranger. Column
ids are the field ids of the Parquet files that DuckLake writes; a file that was written by others
and added has a mapping from its own names to column ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from types import UnionType
from typing import NamedTuple, TypeAlias

from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.tables.deleted_rows import PositionFile, Positions, Vector
from sbbf_tool.extensions.tables.ducklake.catalog import Connection, Parameter, Row, TableName
from sbbf_tool.file.table_file import Deletes, UnknownDeletes
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.column_names import ColumnNames
from sbbf_tool.parquet.columns import MAX_DEPTH
from sbbf_tool.storage.places import is_url

VERSIONS = ("0.2", "0.3", "0.4", "1.0")
"""Versions of the catalog that are known. All have the same rows for data files, as far as they are
read or changed here."""
MAX_FILES = 20_000_000
_MAX_ROWS = 1_000_000
"""Limit for rows of other kinds than data files."""
_TABLES = (
    "metadata", "snapshot", "schema", "table", "column", "data_file", "delete_file", "file_partition_value", "partition_column",
    "column_mapping", "name_mapping", "files_scheduled_for_deletion",
)  # fmt: skip
_MOST_CHARACTERS = 1 << 16
_INLINED = re.compile(r"ducklake_inlined_data_\d+_\d+")
_LIVE = "begin_snapshot <= ? and (end_snapshot is null or end_snapshot > ?)"

Path = tuple[str, ...]
Kind: TypeAlias = type | UnionType


class TableEntry(Frozen):
    """A table of the catalog."""

    id: int
    schema_id: int
    schema: str
    name: str
    folder: str
    """Absolute path or URL in which relative paths of its files begin; it ends with a slash."""

    @property
    def full_name(self) -> str:
        return ".".join(
            f'"{part}"' if set(part) & set('."#') else part for part in (self.schema, self.name)
        )


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row of `ducklake_data_file`."""

    id: int
    table_id: int
    stored_path: str
    is_relative: bool
    format: str
    bytes: int | None
    partition_id: int | None
    mapping_id: int | None
    is_encrypted: bool
    is_live: bool
    """Whether it is in the newest snapshot."""

    def path(self, folder: str) -> str:
        """Return the absolute path or URL, for the folder of the file's table."""
        return folder + self.stored_path if self.is_relative else absolute(self.stored_path)


class TableColumns(NamedTuple):
    """The columns of a table."""

    paths: dict[int, Path]
    """By id, without the scaffolding of lists."""
    types: dict[int, str]
    """By id."""
    with_default: frozenset[Path]
    """Paths of the columns that have a value in files which do not have them."""

    @property
    def types_by_path(self) -> dict[Path, str]:
        """Types of the leaves; the elements of a list have its path."""
        types = {path: self.types[id] for id, path in self.paths.items()}
        elements = {
            path: self.types[id] for id, path in self.paths.items() if self.types[id] != "list"
        }
        return types | elements


class Catalog:
    """The rows of one catalog, as values."""

    def __init__(self, connection: Connection, name: TableName) -> None:
        """Read version and snapshot. Raises UnreadableError if this is no catalog, and RefusedError
        for a version that is not known."""
        self._connection = connection
        self._name = name
        self._tables = {row[0] for row in self._rows(connection.tables, (), str)}
        missing = [table for table in _TABLES if f"ducklake_{table}" not in self._tables]
        if missing:
            raise self._unreadable(
                f"the database is not a DuckLake catalog: it has no table ducklake_{missing[0]}"
            )
        settings: dict[str, str] = dict(
            self._rows(
                "select key, value from ducklake_metadata where key in ('version', 'data_path')",
                (),
                str,
                str,
            )
        )
        version = settings.get("version", "none")
        if version not in VERSIONS:
            hint = (
                f"versions {', '.join(VERSIONS)} are supported; DuckDB migrates an older "
                "one that is attached with AUTOMATIC_MIGRATION"
            )
            raise RefusedError(
                f"the DuckLake catalog has version {version[:40]}, which is not supported",
                file=name.text,
                hint=hint,
            )
        if not settings.get("data_path"):
            raise self._unreadable("the DuckLake catalog does not state data_path")
        self.data_path = absolute(settings["data_path"]).rstrip("/") + "/"
        ((self.snapshot,),) = list(
            self._rows("select max(snapshot_id) from ducklake_snapshot", (), int)
        )

    def find_table(self) -> TableEntry:
        """Return the table that the name means, in the newest snapshot. Raises UsageError with the
        tables that there are."""
        name = self._name
        tables = list(self.tables(is_live=True).values())
        matches = [
            table
            for table in tables
            if (name.table is None or name.table.lower() == table.name.lower())
            and (name.schema is None or name.schema.lower() == table.schema.lower())
        ]
        if len(matches) > 1 and name.table is not None and name.schema is None:
            matches = [table for table in matches if table.schema == "main"] or matches
        if len(matches) == 1:
            return matches[0]
        names = sorted(table.full_name for table in tables)
        listing = f"the tables are {', '.join(names[:20])}" + (
            f" and {len(names) - 20} more" if len(names) > 20 else ""
        )
        if not tables:
            raise UsageError("the DuckLake catalog has no table", file=name.text)
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
        for (
            table_id,
            schema_id,
            schema,
            table,
            schema_path,
            in_data_path,
            path,
            in_schema,
        ) in self._rows(query, (), int, int, str, str, str, bool, str, bool):
            folder = self.data_path + schema_path if in_data_path else absolute(schema_path)
            folder = folder + path if in_schema else absolute(path)
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
        return dict(self._rows(query, (table.schema_id, table.id), str, str))

    def columns(self, table: TableEntry) -> TableColumns:
        """Return the columns of the newest snapshot."""
        query = (
            "select column_id, column_name, column_type, parent_column, initial_default from "
            "ducklake_column"
            f" where table_id = ? and {_LIVE}"
        )
        kinds: list[Kind] = [int, str, str, int | None, str | None]
        rows = {
            row[0]: row[1:]
            for row in self._rows(query, (table.id, self.snapshot, self.snapshot), *kinds)
        }
        paths = {id: self._path(id, rows, "column") for id in rows}
        defaults = [paths[id] for id, (*_, default) in rows.items() if default is not None]
        with_default = (
            path
            for path in paths.values()
            if any(path[: len(default)] == default for default in defaults)
        )
        return TableColumns(
            paths, {id: kind for id, (_, kind, *_) in rows.items()}, frozenset(with_default)
        )

    def mappings(self, table: TableEntry, columns: TableColumns) -> dict[int, ColumnNames]:
        """Return the names of the columns of files that were added, by the id of their mapping."""
        query = (
            "select m.mapping_id, m.column_id, m.source_name, m.target_field_id, m.parent_column "
            "from ducklake_name_mapping m"
            " join ducklake_column_mapping c on c.mapping_id = m.mapping_id where c.table_id = ?"
        )
        lists = {
            row[0]
            for row in self._rows(
                "select column_id from ducklake_column where table_id = ? and column_type = 'list'",
                (table.id,),
                int,
            )
        }
        rows: dict[int, dict[int, Row]] = {}
        targets: dict[int, dict[int, int]] = {}
        for mapping, id, source, target, parent in self._rows(
            query, (table.id,), int, int, str, int, int | None
        ):
            rows.setdefault(mapping, {})[id] = (source, "list" if target in lists else "", parent)
            targets.setdefault(mapping, {})[id] = target
        return {
            mapping: ColumnNames(
                by_path={
                    self._path(id, entries, f"column of mapping {mapping},"): columns.paths[
                        targets[mapping][id]
                    ]
                    for id in entries
                    if targets[mapping][id] in columns.paths
                },
                # The names of folders may give a file values of any column.
                defaults=frozenset(columns.paths.values()),
                types=columns.types_by_path,
            )
            for mapping, entries in rows.items()
        }

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
        keys: dict[int, dict[int, tuple[str, int, str]]] = {}
        for partition, index, column, transform in self._rows(
            query, (table.id,), int, int, int, str
        ):
            if column in columns.paths:
                key = keys.setdefault(partition, {})
                key[index] = (
                    _key_name(
                        transform,
                        ".".join(columns.paths[column]),
                        [name for name, *_ in key.values()],
                    ),
                    column,
                    transform,
                )
        newest = {
            name: (column, transform)
            for _, key in sorted(keys.items())
            for name, column, transform in key.values()
        }
        # Other transforms make numbers.
        key_types = {
            name: columns.types[column] if transform == "identity" else "int64"
            for name, (column, transform) in newest.items()
        }
        names = {
            partition: {
                index: name
                for index, (name, *meaning) in key.items()
                if newest[name] == tuple(meaning)
            }
            for partition, key in keys.items()
        }
        return names, key_types

    def partition_values(self, table: TableEntry) -> dict[int, list[tuple[int, str | None]]]:
        """Return index and value of the partition keys of each data file."""
        query = (
            "select data_file_id, partition_key_index, partition_value from "
            "ducklake_file_partition_value where table_id = ?"
        )
        values: dict[int, list[tuple[int, str | None]]] = {}
        for file, index, value in self._rows(
            query, (table.id,), int, int, str | None, limit=MAX_FILES
        ):
            values.setdefault(file, []).append((index, value))
        return values

    def files(
        self, table: TableEntry | None = None, snapshot: int | None = None
    ) -> Iterator[FileRow]:
        """Yield the data files of a table in a snapshot, or in all snapshots, live ones first, or
        of all tables in all snapshots."""
        where = (
            ""
            if table is None
            else "where table_id = ?"
            if snapshot is None
            else f"where table_id = ? and {_LIVE}"
        )
        parameters = (
            ()
            if table is None
            else (table.id,)
            if snapshot is None
            else (table.id, snapshot, snapshot)
        )
        query = (
            "select data_file_id, table_id, path, path_is_relative, file_format, "
            "file_size_bytes, partition_id, mapping_id,"
            f" encryption_key is not null, end_snapshot is null from ducklake_data_file {where}"
            " order by end_snapshot is not null, data_file_id"
        )
        kinds: list[Kind] = [
            int,
            int,
            str,
            bool,
            str,
            int | None,
            int | None,
            int | None,
            bool,
            bool,
        ]
        for row in self._rows(query, parameters, *kinds, limit=MAX_FILES):
            yield FileRow(*row)

    def deletes(self, table: TableEntry, snapshot: int) -> dict[int, list[Deletes]]:
        """Return the deletes of a snapshot by the id of their data file."""
        deletes: dict[int, list[Deletes]] = {}
        query = (
            "select data_file_id, path, path_is_relative, format, encryption_key is not null, "
            "delete_count from ducklake_delete_file"
            f" where table_id = ? and {_LIVE}"
        )
        kinds: list[Kind] = [int, str, bool, str | None, bool, int]
        rows = self._rows(query, (table.id, snapshot, snapshot), *kinds, limit=MAX_FILES)
        for file, stored_path, is_relative, format, is_encrypted, count in rows:
            path = table.folder + stored_path if is_relative else absolute(stored_path)
            delete: Deletes = (
                Vector(count, path)
                if (format or "").lower() == "puffin"
                else PositionFile(path, None)
            )
            if is_encrypted:
                delete = UnknownDeletes(
                    "rows may be deleted by a file that is encrypted with a key of the catalog"
                )
            deletes.setdefault(file, []).append(delete)
        if (name := f"ducklake_inlined_delete_{table.id}") in self._tables:
            query = f"select file_id, row_id from {name} where begin_snapshot <= ? order by file_id"
            for file, group in groupby(
                self._rows(query, (snapshot,), int, int), lambda row: row[0]
            ):
                deletes.setdefault(file, []).append(Positions(tuple(row for _, row in group)))
        return deletes

    def inlined_values(
        self, table: TableEntry, path: Path | None, *, all_versions: bool
    ) -> Iterator[tuple[object, str]]:
        """Yield the distinct values, with their type, of a column in the rows that the catalog has
        in place of files, live ones or all.

        The type is empty if they are unknown. A row has the names that columns had when it was
        inserted.
        """
        if "ducklake_inlined_data_tables" not in self._tables:
            return
        for (name,) in list(
            self._rows(
                "select table_name from ducklake_inlined_data_tables where table_id = ?",
                (table.id,),
                str,
            )
        ):
            if not _INLINED.fullmatch(name) or name not in self._tables:
                raise self._unreadable(f"the catalog has no table {name[:60]!r} of inlined rows")
            live = (self.snapshot, self.snapshot)
            chosen = f"({_LIVE}) or 1 = 1" if all_versions else _LIVE
            ((count, begin),) = list(
                self._rows(
                    f"select count(*), min(begin_snapshot) from {name} where {chosen}",
                    live,
                    int,
                    int | None,
                )
            )
            if not count:
                continue
            stored = list(
                self._rows(
                    "select c.column_name, n.column_type, n.initial_default from ducklake_column "
                    "n left join ducklake_column c"
                    " on c.table_id = n.table_id and c.column_id = n.column_id and "
                    "c.begin_snapshot <= ?"
                    " and (c.end_snapshot is null or c.end_snapshot > ?) where n.table_id = ? "
                    "and n.column_name = ?"
                    " and n.parent_column is null and n.begin_snapshot <= ? and (n.end_snapshot "
                    "is null or n.end_snapshot > ?)",
                    (begin, begin, table.id, path[0] if path else "", *live),
                    str | None,
                    str,
                    str | None,
                )
            )
            if (
                path is None
                or len(path) > 1
                or len(stored) != 1
                or stored[0][1] in ("list", "map", "struct")
            ):
                yield None, ""
                continue
            ((column, kind, default),) = stored
            if column is None:
                yield default, kind
                continue
            quoted = column.replace('"', '""')
            for (value,) in self._rows(
                f'select distinct "{quoted}" from {name} where {chosen}', live, object
            ):
                yield value, kind

    def other_paths(
        self, tables: Mapping[int, TableEntry], *, scheduled: bool = True
    ) -> Iterator[str]:
        """Yield the paths of delete files and, if `scheduled`, of files that DuckLake will
        delete."""
        for query, is_scheduled in (
            ("select path, path_is_relative, table_id from ducklake_delete_file", False),
            (
                "select path, path_is_relative, data_file_id from "
                "ducklake_files_scheduled_for_deletion",
                True,
            ),
        )[: 1 + scheduled]:
            for path, is_relative, table_id in self._rows(
                query, (), str, bool, int, limit=MAX_FILES
            ):
                if not is_relative:
                    yield absolute(path)
                elif is_scheduled:
                    yield self.data_path + path
                elif table_id in tables:
                    yield tables[table_id].folder + path

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
                raise self._unreadable(
                    f"{noun} {id} is in column {parent}, which the table does not have"
                )
            if rows[parent][1] != "list":
                parts.append(name)
            at = parent
        raise self._unreadable(f"{noun} {id} is nested more than {MAX_DEPTH} deep")

    def _rows(
        self, query: str, parameters: tuple[Parameter, ...], *kinds: Kind, limit: int = _MAX_ROWS
    ) -> Iterator[Row]:
        """Run a query and yield its rows. Raises UnreadableError for a value that has not the type
        of its column in `kinds`."""
        for number, row in enumerate(self._connection.rows(query, *parameters)):
            if number >= limit:
                raise self._unreadable(
                    f"the DuckLake catalog has more than {limit:,} rows of a kind"
                )
            yield tuple(
                self._value(value, kind, query) for value, kind in zip(row, kinds, strict=True)
            )

    def _value(self, value: object, kind: Kind, query: str) -> object:
        if kind is bool and value in (0, 1):
            return bool(value)
        if kind is object or (
            isinstance(value, kind)
            and not (isinstance(value, str) and ("\0" in value or len(value) > _MOST_CHARACTERS))
        ):
            return value
        table = query.partition(" from ")[2].partition(" ")[0]
        raise self._unreadable(
            f"a row of {table} has the value {ascii(value)[:100]}, which is of a wrong type or "
            "too long"
        )

    def _unreadable(self, message: str) -> UnreadableError:
        return UnreadableError(message, file=self._name.text)


def _key_name(transform: str, column: str, earlier: list[str]) -> str:
    prefix = column if transform == "identity" else transform.partition("(")[0]
    name, number = (prefix if prefix not in earlier else f"{prefix}_{column}"), 2
    while name in earlier:
        name, number = f"{prefix}_{column}_{number}", number + 1
    return name


def absolute(path: str) -> str:
    """Return a path of a catalog as an absolute path or URL. DuckDB resolves relative paths in the
    folder in which it runs."""
    if is_url(path):
        return path
    path = path.removeprefix("file://")
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)
