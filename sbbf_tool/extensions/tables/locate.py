"""What a name means: the root of a table in a folder or below a URL, `ducklake:...`,
`CATALOG:namespace.table`, or files.

A catalog in a name is one of PyIceberg's configuration. This module imports the formats only for
names of tables, since commands on files must start fast.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sbbf_tool.extensions.tables import DUCKLAKE
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.extensions.tables.lake_table import LakeTable

_IN_CATALOG = re.compile(r"(?P<catalog>[\w.-]+):(?P<table>.+)", re.DOTALL)
_FILES = re.compile(r"[/\\*?\[:]|\.(?:parquet|parq|index)\Z")
"""What a name of files has, and one of a table in a catalog has not, outside of quotes."""
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


def find_table(name: str) -> LakeTable | None:
    """Open the table that a name means; None if the name means files.

    A file of a table is not the table, and tables of Hudi and Paimon are files. Raises
    UnreadableError for a damaged table, RefusedError for one that cannot be read, and UsageError if
    a package for the format is missing or the name of a catalog's table is incomplete.
    """
    if name.startswith(DUCKLAKE):
        from sbbf_tool.extensions.tables.ducklake.table import DuckLakeTable

        return DuckLakeTable(name)
    if find_catalog(name) is not None:
        from sbbf_tool.extensions.tables.iceberg.table import open_in_catalog

        return open_in_catalog(name)
    kind = places.find_table_format(name)
    if kind == "Delta":
        from sbbf_tool.extensions.tables.delta.table import DeltaTable

        return DeltaTable(name)
    if kind == "Iceberg":
        from sbbf_tool.extensions.tables.iceberg.table import open_folder

        return open_folder(name)
    return None


def _in_catalog(name: str) -> bool:
    """Return whether a name is that of a table in a catalog of PyIceberg's configuration."""
    catalog = find_catalog(name)
    if catalog is None:
        return False
    from sbbf_tool.extensions.tables.iceberg.catalog import has_catalog

    return has_catalog(catalog)
