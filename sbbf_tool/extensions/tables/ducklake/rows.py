"""The rows of a DuckLake catalog, with values of the expected types: a catalog may come from a
stranger."""

from __future__ import annotations

from collections.abc import Iterator
from types import UnionType
from typing import TypeAlias

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.ducklake.catalog import Connection, Parameter, Row, TableName

MAX_FILES = 20_000_000
_MAX_ROWS = 1_000_000
"""Limit for rows of other kinds than data files."""
_MOST_CHARACTERS = 1 << 16
LIVE = "begin_snapshot <= ? and (end_snapshot is null or end_snapshot > ?)"
"""Condition of rows that a snapshot has, with the snapshot twice as parameter."""

Kind: TypeAlias = type | UnionType


class CheckedRows:
    """The rows of queries in one connection."""

    def __init__(self, connection: Connection, name: TableName) -> None:
        self._connection = connection
        self._name = name

    def rows(
        self, query: str, parameters: tuple[Parameter, ...], *kinds: Kind, limit: int = _MAX_ROWS
    ) -> Iterator[Row]:
        """Run a query and yield its rows. Raises UnreadableError for a value that has not the type
        of its column in `kinds`."""
        for number, row in enumerate(self._connection.rows(query, *parameters)):
            if number >= limit:
                raise self.unreadable(
                    f"the DuckLake catalog has more than {limit:,} rows of a kind"
                )
            yield tuple(
                self._value(value, kind, query) for value, kind in zip(row, kinds, strict=True)
            )

    def row(self, query: str, parameters: tuple[Parameter, ...], *kinds: Kind) -> Row:
        """Return the only row of a query."""
        (row,) = list(self.rows(query, parameters, *kinds))
        return row

    def _value(self, value: object, kind: Kind, query: str) -> object:
        if kind is bool and value in (0, 1):
            return bool(value)
        if kind is object:
            return value
        if isinstance(value, kind) and not _is_no_text(value):
            return value
        table = query.partition(" from ")[2].partition(" ")[0]
        raise self.unreadable(
            f"a row of {table} has the value {ascii(value)[:100]}, which is of a wrong type or "
            "too long"
        )

    def unreadable(self, message: str) -> UnreadableError:
        """Return an error of the catalog."""
        return UnreadableError(message, file=self._name.text)


def _is_no_text(value: object) -> bool:
    """Return whether a value is a text that no catalog has."""
    return isinstance(value, str) and ("\0" in value or len(value) > _MOST_CHARACTERS)
