"""The name of a DuckLake table: the catalog as DuckDB's ATTACH spells it, and the table after a `#`.

    ducklake:metadata.ducklake                        the only table of a catalog in a DuckDB file
    ducklake:metadata.ducklake#events                 a table of the schema `main`
    ducklake:sqlite:metadata.sqlite#sales.events      a catalog in SQLite
    ducklake:postgres:dbname=lake host=db#events      a catalog in PostgreSQL: a connection string of libpq, or a postgresql:// URL

The table is the text after the last `#`. A name with a dot or `#` is written in double quotes, as in SQL.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from hashlib import sha256

from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.extensions.tables.names import DUCKLAKE

DUCKDB, SQLITE, POSTGRES = "duckdb", "sqlite", "postgres"

_PART = r'(?:"(?:[^"]|"")+"|[^".#]+)'
_LAST_TABLE = re.compile(rf"(?P<catalog>.*)#(?P<table>{_PART}(?:\.{_PART})?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TableName:
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
        place = redact(f"{DUCKLAKE}{POSTGRES}:{self.place}") if self.database == POSTGRES else os.path.realpath(self.place)
        return sha256(f"{self.database}:{place}#{table_id}".encode("utf-8", "surrogateescape")).hexdigest()


def parse_name(text: str) -> TableName:
    """Split a name into its parts. Raises UsageError, and RefusedError for a catalog in another database."""
    match = _LAST_TABLE.fullmatch(text.removeprefix(DUCKLAKE))
    catalog, table = (match["catalog"], match["table"]) if match else (text.removeprefix(DUCKLAKE), None)
    database, place = DUCKDB, catalog
    for word in (DUCKDB, SQLITE, POSTGRES, "mysql"):
        if catalog.startswith(f"{word}:"):
            database, place = word, catalog.removeprefix(f"{word}:")
    if database == "mysql":
        raise RefusedError("a catalog in MySQL is not supported", file=text, hint="supported: DuckDB, SQLite, PostgreSQL")
    if not place or "\0" in place:
        raise UsageError("the name has no catalog", file=text, hint="write ducklake:metadata.ducklake#schema.table")
    if catalog.endswith("#"):
        raise UsageError("the name has no table after the #", file=text, hint="write ducklake:metadata.ducklake#schema.table")
    if database != POSTGRES:
        place = os.path.abspath(os.path.expanduser(place))
    if match is None and "#" in catalog and (database == POSTGRES or not os.path.exists(place)):
        hint = 'write #TABLE or #SCHEMA.TABLE; a part with a dot, # or quote is written in double quotes, such as #sales."a.b"'
        raise UsageError("the text after the # is no name of a table", file=text, hint=hint)
    parts = [part[1:-1].replace('""', '"') if part.startswith('"') else part for part in re.findall(_PART, table or "")]
    return TableName(text, database, place, *([None] * (2 - len(parts)) + parts))
