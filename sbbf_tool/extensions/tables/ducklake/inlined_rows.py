"""The rows of a DuckLake table that its catalog has in place of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from sbbf_tool.extensions.tables.ducklake.catalog import Parameter
from sbbf_tool.extensions.tables.ducklake.rows import LIVE, CheckedRows

_INLINED = re.compile(r"ducklake_inlined_data_\d+_\d+")
_NESTED = ("list", "map", "struct")
_STORED_COLUMN = (
    "select c.column_name, n.column_type, n.initial_default from ducklake_column n "
    "left join ducklake_column c on c.table_id = n.table_id and c.column_id = n.column_id "
    "and c.begin_snapshot <= ? and (c.end_snapshot is null or c.end_snapshot > ?) "
    "where n.table_id = ? and n.column_name = ? and n.parent_column is null "
    "and n.begin_snapshot <= ? and (n.end_snapshot is null or n.end_snapshot > ?)"
)
"""The name that a column of the newest snapshot had in an earlier one, its type and default."""


class InlinedTable(NamedTuple):
    """A table of the database with inlined rows of one table of the catalog."""

    name: str
    table_id: int
    snapshot: int
    """The newest one."""
    all_versions: bool
    """Whether rows that were deleted since count too."""

    @property
    def condition(self) -> str:
        return f"({LIVE}) or 1 = 1" if self.all_versions else LIVE

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of `condition`."""
        return self.snapshot, self.snapshot

    def is_named_as_usual(self) -> bool:
        return _INLINED.fullmatch(self.name) is not None

    def values(self, checked: CheckedRows, path: tuple[str, ...] | None) -> Iterator[InlinedValue]:
        """Yield the distinct values of a column. A row has the names that columns had when it was
        inserted."""
        query = f"select count(*), min(begin_snapshot) from {self.name} where {self.condition}"
        count, begin = checked.row(query, self.parameters, int, int | None)
        if not count:
            return
        stored = self._find_column(checked, path, begin)
        if stored is None:
            yield InlinedValue(None, "")
            return
        column, kind, default = stored
        if column is None:
            yield InlinedValue(default, kind)
            return
        quoted = column.replace('"', '""')
        query = f'select distinct "{quoted}" from {self.name} where {self.condition}'
        for (value,) in checked.rows(query, self.parameters, object):
            yield InlinedValue(value, kind)

    def _find_column(
        self, checked: CheckedRows, path: tuple[str, ...] | None, begin: int | None
    ) -> tuple[str | None, str, str | None] | None:
        """Return the name in the inlined rows, the type and the default of a column; None if its
        values are unknown."""
        name = path[0] if path else ""
        parameters = (begin, begin, self.table_id, name, self.snapshot, self.snapshot)
        stored = list(checked.rows(_STORED_COLUMN, parameters, str | None, str, str | None))
        if path is None or len(path) > 1 or len(stored) != 1:
            return None
        ((column, kind, default),) = stored
        return None if kind in _NESTED else (column, kind, default)


class InlinedValue(NamedTuple):
    """A value of inlined rows."""

    stored: object
    kind: str
    """Type of the column; empty if type and value are unknown."""
