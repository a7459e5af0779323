"""What a name means: the root of a table in a folder or below a URL, `ducklake:...`,
`CATALOG:namespace.table`, or files.

A catalog in a name is one of PyIceberg's configuration. This module imports the formats only for
names of tables, since commands on files must start fast.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, SbbfError
from sbbf_tool.extensions.tables import DUCKLAKE
from sbbf_tool.numbers import format_count
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.extensions.tables.lake_table import LakeTable

_IN_CATALOG = re.compile(r"(?P<catalog>[\w.-]+):(?P<table>.+)", re.DOTALL)
_FILES = re.compile(r"[/\\*?\[:]|\.(?:parquet|parq|index)\Z")
"""What a name of files has, and one of a table in a catalog has not, outside of quotes."""
_UNIVERSAL = "delta.universalFormat.enabledFormats"
"""Property of a Delta table for which its writer also writes metadata of other formats."""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def find_catalog(name: str) -> str | None:
    """Return the catalog in a name that has the form of `CATALOG:NAMESPACE.TABLE`; None for names
    of files."""
    match = _IN_CATALOG.fullmatch(name)
    if (
        match is None
        or _FILES.search(_QUOTED.sub("", match["table"]))
        or "\0" in name
        or os.path.lexists(name)
    ):
        return None
    return match["catalog"]


def is_name(name: str) -> bool:
    """Return whether a name is that of a table in a catalog of any kind, rather than a path, glob
    or URL. Nothing is opened."""
    return name.startswith(DUCKLAKE) or find_catalog(name) is not None


def absolute_name(name: str) -> str:
    """Return a name by which a table in a catalog is found from every working folder."""
    if not name.startswith(DUCKLAKE):
        return name
    from sbbf_tool.extensions.tables.ducklake.catalog import absolute_name as absolute_ducklake

    return absolute_ducklake(name)


def is_table(name: str) -> bool:
    """Return whether a name means a table, without reading it."""
    return (
        name.startswith(DUCKLAKE)
        or _in_catalog(name)
        or places.find_table_format(name) in places.LISTING_FORMATS
    )


def find_table(name: str, table_format: str | None = None) -> LakeTable | None:
    """Open the table that a name means, of this format if one is given in lower case; None if the
    name means files.

    A file of a table is not the table, and tables of Hudi and Paimon are files. Of a folder with
    two tables and without a format, the first one is returned; it cannot be changed. Raises
    UnreadableError for a damaged table, RefusedError for one that cannot be read, and UsageError if
    a package for the format is missing or the name of a catalog's table is incomplete.
    """
    if name.startswith(DUCKLAKE):
        from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable

        return _if_of_format(DuckLakeTable(name), table_format)
    if find_catalog(name) is not None:
        from sbbf_tool.extensions.tables.iceberg.table import open_in_catalog

        return _if_of_format(open_in_catalog(name), table_format)
    if table_format is not None:
        chosen = [kind for kind in _listing_formats(name) if kind.lower() == table_format]
        return _open(name, chosen[0]) if chosen else None
    formats = places.find_table_formats(name)
    if not formats or formats[0] not in places.LISTING_FORMATS:
        return None
    table = _open(name, formats[0])
    for other in formats[1:]:
        _mark_ambiguous(table, name, other)
    return table


def other_tables(table: LakeTable) -> list[LakeTable]:
    """Open the tables of other formats in the folder of a table."""
    formats = _listing_formats(table.location)
    return [_open(table.location, kind) for kind in formats if kind != table.format]


def _if_of_format(table: LakeTable, table_format: str | None) -> LakeTable | None:
    return table if table_format in (None, table.format.lower()) else None


def _listing_formats(name: str) -> list[str]:
    return [kind for kind in places.find_table_formats(name) if kind in places.LISTING_FORMATS]


def _open(name: str, kind: str) -> LakeTable:
    if kind == "Delta":
        from sbbf_tool.extensions.tables.delta.table import DeltaTable

        return DeltaTable(name)
    from sbbf_tool.extensions.tables.iceberg.table import open_folder

    return open_folder(name)


def _mark_ambiguous(table: LakeTable, name: str, other: str) -> None:
    """Say of a table that its folder has another one too, and which of the other's files it does
    not have."""
    both = f"the folder has a table of {table.format} and one of {other}"
    hint = "say which of the two it is"
    enabled = table.properties.get(_UNIVERSAL)
    if enabled:
        both += f" ({_UNIVERSAL} is {enabled})"
    reason = f"{both}; the other one would keep the old files until its writer writes it again"
    table.why_unchangeable = RefusedError(reason, file=name, hint=hint)
    difference = _find_difference(table, name, other)
    table.may_be_other = difference is not None
    taken = f"{both}; the first is taken: {hint}"
    table.notice = ". ".join(filter(None, (taken, difference)))


def _find_difference(table: LakeTable, name: str, other: str) -> str | None:
    """Return why another table in the folder of a table may have rows that this one has not."""
    if other not in places.LISTING_FORMATS:
        return f"That of {other} is not read"
    try:
        missing = _paths(_open(name, other)) - _paths(table)
    except SbbfError as error:
        return f"That of {other} cannot be read: {error.message}"
    if not missing:
        return None
    files = format_count(len(missing), "file", "files")
    return f"{files} of that of {other} are not in the one of {table.format}"


def _paths(table: LakeTable) -> set[str]:
    """Return the paths of the live files of a table, however it spells them."""
    from sbbf_tool.extensions.tables.iceberg.source import identity

    return {identity(file.path) for file in table.live_files()}


def _in_catalog(name: str) -> bool:
    """Return whether a name is that of a table in a catalog of PyIceberg's configuration."""
    catalog = find_catalog(name)
    if catalog is None:
        return False
    from sbbf_tool.extensions.tables.iceberg.catalog import has_catalog

    return has_catalog(catalog)
