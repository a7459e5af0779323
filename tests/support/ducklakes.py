"""DuckLake tables: real ones by DuckDB's extension in an environment of its own, and small ones by
SQL for tests that need no extension."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from sbbf_tool import add_filters
from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable
from sbbf_tool.extensions.tables.lake_table import Replacement
from sbbf_tool.running.table import Change, Commit, LiveFile
from support.environments import install_python

PROGRAM = Path(__file__).parent / "ducklake_program.py"
EXTENSIONS = ("ducklake", "sqlite_scanner", "postgres_scanner")
CHANGE = Change("ADD BLOOM FILTERS")
_COPY = re.compile(r"sbbf-test-\d+-")


class DuckLakeError(Exception):
    """The message of DuckDB."""


class DuckDB:
    """A process with a DuckDB that has the extensions. Use as a context manager."""

    def __init__(
        self, version: str, environment: str = "ducklake", extensions: Sequence[str] = EXTENSIONS
    ) -> None:
        """Raise NotInstallableError if this DuckDB cannot be installed."""
        packages = [f"duckdb-extension-{name.replace('_', '-')}=={version}" for name in extensions]
        python = install_python(f"{environment}-{version}", f"duckdb=={version}", "pytz", *packages)
        self._process = subprocess.Popen(
            [str(python), str(PROGRAM), *(f"duckdb_extension_{name}" for name in extensions)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)

    def start(self, query: str) -> None:
        """Run a query; `finish` returns its rows."""
        assert self._process.stdin is not None
        print(json.dumps(query), file=self._process.stdin, flush=True)

    def finish(self) -> list[list[Any]]:
        assert self._process.stdout is not None
        answer = json.loads(self._process.stdout.readline())
        if "error" in answer:
            raise DuckLakeError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def run(self, query: str) -> list[list[Any]]:
        self.start(query)
        return self.finish()


def copy_with_filters(
    table: DuckLakeTable, column: str, name: str = "sbbf-test-0"
) -> list[Replacement]:
    """Make a copy with filters of every live file that can be changed."""
    return [
        copy_file(table, file, column, name)
        for file in table.live_files()
        if file.unchangeable is None
    ]


def copy_file(
    table: DuckLakeTable, file: LiveFile, column: str, name: str = "sbbf-test-0"
) -> Replacement:
    path = Path(table.copy_path(file, f"{name}-{_COPY.sub('', Path(file.path).name)}"))
    add_filters(file.path, columns=column, output=path)
    return Replacement(
        file.path, str(path), path.stat().st_size, path.stat().st_mtime_ns // 1_000_000
    )


def fill(name: str, column: str, run: str = "sbbf-test-0") -> Commit:
    """Give a table filters in one commit."""
    table = DuckLakeTable(name)
    return table.commit(copy_with_filters(table, column, run), CHANGE)


SCHEMA = """
create table ducklake_metadata(key varchar not null, value varchar not null, scope varchar,
  scope_id bigint);
create table ducklake_snapshot(snapshot_id bigint primary key, snapshot_time timestamptz,
  schema_version bigint, next_catalog_id bigint,
  next_file_id bigint);
create table ducklake_schema(schema_id bigint primary key, schema_uuid varchar,
  begin_snapshot bigint, end_snapshot bigint,
  schema_name varchar, path varchar, path_is_relative boolean);
create table ducklake_table(table_id bigint, table_uuid varchar, begin_snapshot bigint,
  end_snapshot bigint, schema_id bigint,
  table_name varchar, path varchar, path_is_relative boolean);
create table ducklake_data_file(data_file_id bigint primary key, table_id bigint,
  begin_snapshot bigint, end_snapshot bigint,
  file_order bigint, path varchar, path_is_relative boolean, file_format varchar,
  record_count bigint, file_size_bytes bigint,
  footer_size bigint, row_id_start bigint, partition_id bigint, encryption_key varchar,
  mapping_id bigint, partial_max bigint);
create table ducklake_delete_file(delete_file_id bigint primary key, table_id bigint,
  begin_snapshot bigint, end_snapshot bigint,
  data_file_id bigint, path varchar, path_is_relative boolean, format varchar, delete_count bigint,
  file_size_bytes bigint,
  footer_size bigint, encryption_key varchar, partial_max bigint);
create table ducklake_column(column_id bigint, begin_snapshot bigint, end_snapshot bigint,
  table_id bigint, column_order bigint,
  column_name varchar, column_type varchar, initial_default varchar, default_value varchar,
  nulls_allowed boolean, parent_column bigint,
  default_value_type varchar, default_value_dialect varchar);
create table ducklake_partition_column(partition_id bigint, table_id bigint,
  partition_key_index bigint, column_id bigint,
  transform varchar);
create table ducklake_file_partition_value(data_file_id bigint, table_id bigint,
  partition_key_index bigint, partition_value varchar);
create table ducklake_files_scheduled_for_deletion(data_file_id bigint, path varchar,
  path_is_relative boolean,
  schedule_start timestamptz);
create table ducklake_column_mapping(mapping_id bigint, table_id bigint, type varchar);
create table ducklake_name_mapping(mapping_id bigint, column_id bigint, source_name varchar,
  target_field_id bigint, parent_column bigint,
  is_partition boolean);
"""
"""The tables of a catalog of version 1.0 that this package reads, as DuckDB 1.5.5 writes them."""


class SmallLake:
    """A catalog with the table `main.events (user_id, s (a, b), tags)`, of which field ids count
    the columns from 1.

    Files have 100 rows. Another table, `sales."a.b"`, has no files.
    """

    def __init__(self, folder: Path, database: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.data = folder / "data"
        self.path = folder / f"metadata.{database}"
        self.name = (
            f"ducklake:sqlite:{self.path}" if database == "sqlite" else f"ducklake:{self.path}"
        )
        self.events = f"{self.name}#events"
        self._is_sqlite = database == "sqlite"
        self._files = 0
        self._connection: Any = None
        with self.connection():
            self._create()

    def _create(self) -> None:
        for statement in SCHEMA.split(";")[:-1]:
            self.run(statement)
        self.insert("metadata", key="version", value="1.0")
        self.insert("metadata", key="data_path", value=f"{self.data}/")
        self.insert("snapshot", snapshot_id=7)
        self.insert(
            "schema",
            schema_id=0,
            begin_snapshot=0,
            schema_name="main",
            path="main/",
            path_is_relative=True,
        )
        self.insert(
            "schema",
            schema_id=1,
            begin_snapshot=0,
            schema_name="sales",
            path="sales/",
            path_is_relative=True,
        )
        self.insert(
            "table",
            table_id=1,
            begin_snapshot=1,
            end_snapshot=2,
            schema_id=0,
            table_name="old",
            path="events/",
            path_is_relative=True,
        )
        self.insert(
            "table",
            table_id=1,
            begin_snapshot=2,
            schema_id=0,
            table_name="events",
            path="events/",
            path_is_relative=True,
        )
        self.insert(
            "table",
            table_id=2,
            begin_snapshot=2,
            schema_id=1,
            table_name="a.b",
            path="ab/",
            path_is_relative=True,
        )
        for id, name, kind, parent in (
            (1, "user_id", "int64", None),
            (2, "s", "struct", None),
            (3, "a", "int64", 2),
            (4, "b", "varchar", 2),
            (5, "tags", "list", None),
            (6, "element", "varchar", 5),
        ):
            self.insert(
                "column",
                column_id=id,
                begin_snapshot=1,
                table_id=1,
                column_name=name,
                column_type=kind,
                parent_column=parent,
            )

    @contextmanager
    def connection(self) -> Iterator[None]:
        """Connect to the catalog as another process does; `run` in the block uses this
        connection."""
        if self._is_sqlite:
            self._connection = sqlite3.connect(self.path, isolation_level=None)
            self._connection.execute("pragma synchronous = off")
        else:
            import duckdb

            self._connection = duckdb.connect(str(self.path))
        try:
            self._connection.execute("begin")
            yield
            self._connection.execute("commit")
        finally:
            self._connection.close()
            self._connection = None

    def run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run SQL in the catalog."""
        if self._connection is None:
            with self.connection():
                return self.run(statement, *values)
        rows: list[tuple[Any, ...]] = self._connection.execute(statement, values).fetchall()
        return rows

    def insert(self, table: str, **values: object) -> None:
        names = ", ".join(values)
        self.run(
            f"insert into ducklake_{table} ({names}) values ({', '.join('?' * len(values))})",
            *values.values(),
        )

    def write_file(self, path: Path, first: int = 0) -> Path:
        """Write a data file with field ids."""
        ids = {"user_id": 1, "s": 2, "a": 3, "b": 4, "tags": 5, "element": 6}

        def field(name: str, kind: pa.DataType) -> pa.Field:
            return pa.field(name, kind, metadata={"PARQUET:field_id": str(ids[name])})

        schema = pa.schema(
            [
                field("user_id", pa.int64()),
                field("s", pa.struct([field("a", pa.int64()), field("b", pa.string())])),
                field("tags", pa.list_(field("element", pa.string()))),
            ]
        )
        rows = [
            {"user_id": i, "s": {"a": i, "b": f"b{i}"}, "tags": [f"t{i}"]}
            for i in range(first, first + 100)
        ]
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema), path)
        return path

    def add_file(
        self, stored_path: str = "", partition: Mapping[int, str] | None = None, **values: object
    ) -> str:
        """Add a data file; return its path. It is relative to the table unless `stored_path` is
        absolute."""
        self._files += 1
        stored_path = stored_path or f"ducklake-{self._files}.parquet"
        is_relative = not stored_path.startswith("/")
        path = self.data / "main" / "events" / stored_path if is_relative else Path(stored_path)
        if not path.exists():
            self.write_file(path, 100 * self._files)
        columns: dict[str, object] = {
            "data_file_id": self._files,
            "table_id": 1,
            "begin_snapshot": 3,
            "path": stored_path,
            "path_is_relative": is_relative,
            "file_format": "parquet",
            "record_count": 100,
            "file_size_bytes": path.stat().st_size,
            "footer_size": 1,
        }
        self.insert("data_file", **(columns | values))
        for index, value in (partition or {}).items():
            self.insert(
                "file_partition_value",
                data_file_id=self._files,
                table_id=1,
                partition_key_index=index,
                partition_value=value,
            )
        return str(path)
