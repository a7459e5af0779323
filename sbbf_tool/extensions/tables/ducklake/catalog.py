"""DuckLake catalogs: names of their tables, and connections, to SQLite by the standard library, to
DuckDB and PostgreSQL by their packages.

    ducklake:metadata.ducklake                      the only table of a catalog in a DuckDB file
    ducklake:metadata.ducklake#events               a table of the schema `main`
    ducklake:sqlite:metadata.sqlite#sales.events    a catalog in SQLite
    ducklake:postgres:dbname=lake host=db#events    a catalog in PostgreSQL: a connection string
                                                    of libpq, or a postgresql:// URL

The table is the text after the last `#`. A name with a dot or `#` is written in double quotes, as
in SQL. A connection is one transaction, and is closed at the end of its `with` block: only one
process can have a DuckDB file open, and it must not be kept from others while files are copied. SQL
is written with `?` for parameters, in words that all three databases have. A database may come from
a stranger: its views are not run, and its values are checked by `metadata`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, TypeAlias
from urllib.parse import quote

from sbbf_tool.display import redact
from sbbf_tool.errors import (
    ChangedError,
    RefusedError,
    SbbfError,
    UncertainWriteError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.extensions.tables import DUCKLAKE
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import install_extra

DUCKDB = "duckdb"
SQLITE = "sqlite"
POSTGRES = "postgres"
_HINT = "write ducklake:metadata.ducklake#schema.table"

_PART = r'(?:"(?:[^"]|"")+"|[^".#]+)'
_LAST_TABLE = re.compile(rf"(?P<catalog>.*)#(?P<table>{_PART}(?:\.{_PART})?)", re.DOTALL)


class TableName(Frozen):
    """The parts of a name."""

    text: str
    """The whole name, as the user gave it."""
    database: str
    """`duckdb`, `sqlite` or `postgres`."""
    place: str
    """Path of the database, or its connection string."""
    schema: str | None = None
    """None if the name has no schema: then `main`, or the only schema with this table."""
    table: str | None = None
    """None for the only table of the catalog."""

    def marker_text(self, table_id: int) -> str:
        """Return a text that differs between the tables of all catalogs, and has no password."""
        if self.database == POSTGRES:
            place = redact(f"{DUCKLAKE}{POSTGRES}:{self.place}")
        else:
            place = os.path.realpath(self.place)
        text = f"{self.database}:{place}#{table_id}"
        return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def parse_name(text: str) -> TableName:
    """Split a name into its parts. Raises UsageError, and RefusedError for a catalog in another
    database."""
    catalog = text.removeprefix(DUCKLAKE)
    parts = []
    match = _LAST_TABLE.fullmatch(catalog)
    if match:
        catalog = match["catalog"]
        parts = [_unquote(part) for part in re.findall(_PART, match["table"])]
    database, place = _split_catalog(catalog)
    if database == "mysql":
        raise RefusedError(
            "a catalog in MySQL is not supported",
            file=text,
            hint="supported: DuckDB, SQLite, PostgreSQL",
        )
    if not place or "\0" in place:
        raise UsageError("the name has no catalog", file=text, hint=_HINT)
    if catalog.endswith("#"):
        raise UsageError("the name has no table after the #", file=text, hint=_HINT)
    if database != POSTGRES:
        place = os.path.abspath(os.path.expanduser(place))
    if match is None and "#" in catalog and (database == POSTGRES or not os.path.exists(place)):
        raise UsageError(
            "the text after the # is no name of a table",
            file=text,
            hint="write #TABLE or #SCHEMA.TABLE; a part with a dot, # or quote is written in "
            'double quotes, such as #sales."a.b"',
        )
    schema = parts[0] if len(parts) > 1 else None
    table = parts[-1] if parts else None
    return TableName(text, database, place, schema, table)


def _split_catalog(catalog: str) -> tuple[str, str]:
    """Return the database of a catalog, and its place there."""
    for word in (DUCKDB, SQLITE, POSTGRES, "mysql"):
        if catalog.startswith(f"{word}:"):
            return word, catalog.removeprefix(f"{word}:")
    return DUCKDB, catalog


def _unquote(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part


def absolute_name(text: str) -> str:
    """Return a name of the same table with the absolute path of its catalog, unless that is in
    PostgreSQL. Raises the errors of `parse_name`."""
    name = parse_name(text)
    if name.database == POSTGRES:
        return text
    rest = text.removeprefix(DUCKLAKE)
    match = _LAST_TABLE.fullmatch(rest)
    catalog = rest if match is None else match["catalog"]
    is_named = catalog.startswith(f"{name.database}:")
    prefix = f"{DUCKLAKE}{name.database}:" if is_named else DUCKLAKE
    return f"{prefix}{name.place}{rest.removeprefix(catalog)}"


WAIT_SECONDS = 30.0
"""How long to wait for another process that has the catalog locked."""
_MAX_VALUE_BYTES = 16 << 20
_ROWS_PER_FETCH = 1000

Row: TypeAlias = tuple[Any, ...]
Parameter: TypeAlias = str | int | None


class Connection:
    """One transaction in a catalog, with a database whose driver this is."""

    now: str = "now()"
    """SQL for the current time, as DuckLake writes it into this database."""
    tables: str
    """Query for the names of all tables, without views."""

    def __init__(self, database: Any) -> None:
        self._database = database

    def rows(self, query: str, *parameters: Parameter) -> Iterator[Row]:
        """Run a query and yield its rows. Queries on one connection do not run concurrently."""
        # One by one: each may be large.
        return iter(self._database.execute(query, parameters).fetchone, None)

    def change(self, statement: str, *parameters: Parameter) -> int:
        """Run a statement; return the number of rows that it changed."""
        return int(self._database.execute(statement, parameters).rowcount)

    def commit(self) -> None:
        """Make the changes of the transaction permanent."""
        self._database.commit()

    def close(self) -> None:
        """End the transaction; what was not committed is undone."""
        self._database.close()


def _allow(
    action: int, first: str | None, second: str | None, schema: str | None, source: str | None
) -> int:
    """Deny what triggers and views do, which may take for ever, and cannot be interrupted."""
    return int(source is not None)  # SQLITE_OK is 0, and SQLITE_DENY 1


class _SQLite(Connection):
    now = "strftime('%Y-%m-%d %H:%M:%f+00', 'now')"
    # Also without tables that compute values: a small file could hold any number of bytes.
    tables = (
        "select name from sqlite_master where type = 'table'"
        " and not exists (select 1 from pragma_table_xinfo(sqlite_master.name) where hidden > 0)"
    )

    @classmethod
    def open(cls, path: str, write: bool) -> Connection:
        if write:
            return cls._open(path, "rw")
        try:
            return cls._open(path, "ro")
        except sqlite3.OperationalError as error:
            if not _is_left_in_a_change(error):
                raise
        # A writer died in the middle of a change: the first connection that may write undoes it.
        with suppress(sqlite3.OperationalError):
            cls._open(path, "rw").close()
        return cls._open(path, "ro")

    @classmethod
    def _open(cls, path: str, mode: str) -> Connection:
        database = sqlite3.connect(
            f"file:{quote(path)}?mode={mode}", uri=True, timeout=WAIT_SECONDS, isolation_level=None
        )
        try:
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            database.execute("pragma trusted_schema = off")
            database.set_authorizer(_allow)
            database.execute("begin immediate" if mode == "rw" else "begin")
            database.execute("select 1 from sqlite_master limit 1").fetchall()
        except BaseException:
            database.close()
            raise
        return cls(database)


def _is_left_in_a_change(error: BaseException) -> bool:
    """Return whether SQLite must write before it can read: a journal is there whose writer died."""
    return getattr(error, "sqlite_errorname", "") in (
        "SQLITE_READONLY_ROLLBACK",
        "SQLITE_READONLY_RECOVERY",
    )


class _DuckDB(Connection):
    tables = (
        "select table_name from system.information_schema.tables where table_type = 'BASE TABLE' "
        "and table_schema = 'main' and table_name"
        " not in (select table_name from system.information_schema.columns where table_schema = "
        "'main' and is_generated = 'ALWAYS')"
    )

    @classmethod
    def open(cls, path: str, write: bool) -> Connection:
        import duckdb

        # Views of a database cannot read files or load extensions.
        config: dict[str, str | bool | int | float | list[str]] = {
            "enable_external_access": "false",
            "threads": "1",
        }
        database = duckdb.connect(path, read_only=not write, config=config)
        _, name, *_ = database.execute("pragma database_list").fetchall()[0]
        quoted = name.replace('"', '""').replace("'", "''")
        # Macros of the database replace no functions.
        database.execute(f"set search_path = 'system.main,\"{quoted}\".main'")
        return cls(database.begin())

    def change(self, statement: str, *parameters: Parameter) -> int:
        row = self._database.execute(statement, parameters).fetchone()
        return int(row[0]) if row else 0


class _Postgres(Connection):
    tables = (
        "select relname from pg_catalog.pg_class where relkind in ('r', 'p') and "
        "pg_catalog.pg_table_is_visible(oid)"
    )

    @classmethod
    def open(cls, place: str, write: bool) -> Connection:
        import psycopg

        database = psycopg.connect(place, connect_timeout=int(WAIT_SECONDS))
        database.read_only = not write
        if not write:
            database.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        # Functions and operators of the database replace none of PostgreSQL.
        database.execute(
            "select set_config('search_path', 'pg_catalog, ' || current_setting('search_path'), "
            "true)"
        )
        return cls(database)

    def rows(self, query: str, *parameters: Parameter) -> Iterator[Row]:
        with self._database.cursor(name="sbbf") as cursor:
            cursor.itersize = _ROWS_PER_FETCH
            cursor.execute(_to_psycopg(query), parameters)
            yield from cursor

    def change(self, statement: str, *parameters: Parameter) -> int:
        return super().change(_to_psycopg(statement), *parameters)


def _to_psycopg(query: str) -> str:
    return query.replace("%", "%%").replace("?", "%s")


_CONNECTIONS: dict[str, type[_SQLite | _DuckDB | _Postgres]] = {
    SQLITE: _SQLite,
    DUCKDB: _DuckDB,
    POSTGRES: _Postgres,
}


@contextmanager
def read(name: TableName) -> Iterator[Connection]:
    """Open a catalog for reading, in one transaction. Raises UnreadableError, and UsageError if a
    package is missing."""
    with _errors(name, UnreadableError, "the DuckLake catalog cannot be read"):
        connection = _connect(name, write=False)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def write(name: TableName) -> Iterator[Connection]:
    """Open a catalog for a change, which the block prepares and this function commits at its end.

    Raises ChangedError if another process has locked the catalog, RefusedError if the database does
    not accept the change (in both cases nothing is changed), and UncertainWriteError if it is
    unknown whether the commit succeeded.
    """
    with _errors(name, RefusedError, "the DuckLake catalog cannot be changed"):
        connection = _connect(name, write=True)
        try:
            yield connection
            _commit(connection, name)
        finally:
            connection.close()


def _commit(connection: Connection, name: TableName) -> None:
    try:
        connection.commit()
    except Exception as error:
        if _is_busy(error):
            raise
        raise UncertainWriteError(
            f"it is unknown whether the DuckLake catalog has the change: {_text_of(error)}",
            file=name.text,
            hint="inspect the table: it has the filters, or the old files",
        ) from error


def _connect(name: TableName, write: bool) -> Connection:
    """Connect, and wait while another process has a DuckDB file open."""
    if name.database != POSTGRES and not os.path.isfile(name.place):
        raise UnreadableError("there is no DuckLake catalog: no such file", file=name.text)
    _ensure_database(name)
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return _CONNECTIONS[name.database].open(name.place, write)
        except ImportError as error:
            raise UsageError(
                f"a DuckLake catalog in this database needs the package {error.name}",
                hint=install_extra("ducklake"),
            ) from error
        except Exception as error:
            if not _is_busy(error) or name.database == SQLITE or time.monotonic() > end:
                raise
            time.sleep(0.2)


def _ensure_database(name: TableName) -> None:
    """Raise UsageError if the catalog is in a file of the other database."""
    if name.database == POSTGRES:
        return
    start = b""
    with suppress(OSError), open(name.place, "rb") as file:
        start = file.read(16)
    if name.database == DUCKDB and start == b"SQLite format 3\0":
        kind = "an SQLite"
        prefix = f"{DUCKLAKE}{SQLITE}:"
    elif name.database == SQLITE and start[8:12] == b"DUCK":
        kind = "a DuckDB"
        prefix = DUCKLAKE
    else:
        return
    rest = name.text.removeprefix(DUCKLAKE).removeprefix(f"{name.database}:")
    raise UsageError(f"the catalog is {kind} file", file=name.text, hint=f"write {prefix}{rest}")


def _is_busy(error: Exception) -> bool:
    text = str(error)
    return (
        "Could not set lock on file" in text
        or "Conflicting lock" in text
        or text in ("database is locked", "database table is locked")
    )


@contextmanager
def _errors(name: TableName, kind: Callable[..., SbbfError], problem: str) -> Iterator[None]:
    """Turn the errors of a database into errors of this package. Those of no database pass."""
    try:
        yield
    except SbbfError as error:
        raise error.at(file=name.text) from error.__cause__
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in (
            "sqlite3",
            "duckdb",
            "_duckdb",
            "psycopg",
        ):
            raise
        if _is_busy(error):
            hint = "run the command again when the other process has closed the catalog"
            raise ChangedError(
                "another process has the DuckLake catalog open", file=name.text, hint=hint
            ) from error
        if _is_left_in_a_change(error):
            raise kind(
                f"{problem}: a writer ended in the middle of a change, and undoing it needs the "
                "permission to write",
                file=name.text,
                hint=f"open {name.place} once with SQLite as a user who may write to it and to "
                "its folder, such as its owner, and do not delete its journal",
            ) from error
        raise kind(f"{problem}: {_text_of(error)}", file=name.text) from error


def _text_of(error: Exception) -> str:
    """Return the first line of a database's message."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    # SQLite's words for what `_allow` denies.
    return lines[0][:500].replace("not authorized", "a trigger or a view would run")
