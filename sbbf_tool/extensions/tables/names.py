"""Names of tables in catalogs: `ducklake:...`, and `CATALOG:namespace.table` with a catalog of PyIceberg's configuration.

The form of a name decides, for all packages, whether it means such a table or files. Nothing is opened here.
"""

from __future__ import annotations

import os
import re

DUCKLAKE = "ducklake:"
"""Prefix of the names of DuckLake tables."""
_IN_CATALOG = re.compile(r"(?P<catalog>[\w.-]+):(?P<table>.+)", re.DOTALL)
_FILES = re.compile(r"[/\\*?\[:]|\.(?:parquet|parq|index)\Z")
"""What a name of files has, and one of a table in a catalog has not, outside of quotes."""
_QUOTED = re.compile(r'"(?:[^"]|"")*"')


def find_catalog(name: str) -> str | None:
    """Return the catalog in a name that has the form of `CATALOG:NAMESPACE.TABLE`; None for names of files."""
    match = _IN_CATALOG.fullmatch(name)
    if match is None or _FILES.search(_QUOTED.sub("", match["table"])) or "\0" in name or os.path.lexists(name):
        return None
    return match["catalog"]


def is_in_catalog(name: str) -> bool:
    """Return whether a name is that of a table in a catalog of any kind, rather than a path, glob or URL."""
    return name.startswith(DUCKLAKE) or find_catalog(name) is not None
