"""Detection of the table that a file belongs to, whose metadata records the file's size.

Delta, Iceberg, Hudi, Paimon and DuckLake keep a list of their files with lengths, and engines trust it: if a file has grown, they read it
at its old length, or fail. So the tool checks for a table before it changes a file. It looks only at names of folders, and of the file for
DuckLake, whose catalog is a database elsewhere; it never parses a table.
"""

from __future__ import annotations

import os
import re

_MAX_ANCESTORS = 32
_DUCKLAKE_NAME = re.compile(r"(?:sbbf-[0-9a-f]{16}-[0-9a-f]{8}-)?ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet")
"""Name of a data file that DuckLake writes, or of a copy of it."""


def managing_table(folder: str) -> tuple[str, str] | None:
    """Return format and folder of the table that the files of a folder belong to, such as `("Delta", "/lake/orders")`, or None."""
    folder = os.path.realpath(folder)
    for _ in range(_MAX_ANCESTORS):
        kind = format_of(folder)
        if kind is not None:
            return kind, folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return None


def ducklake_folder(path: str) -> str | None:
    """Return the folder of a file that has a name as DuckLake gives, whose catalog is elsewhere; None for other names."""
    folder, _, name = path.rpartition("/")
    return (folder or ".") if _DUCKLAKE_NAME.fullmatch(name) else None


def format_of(folder: str) -> str | None:
    """Return the format of the table whose root is this folder, or None."""

    def has(name: str) -> bool:
        return os.path.isdir(os.path.join(folder, name))

    # A link to a log that is not there, as on a disk that is not mounted, makes it no folder of plain files.
    if os.path.lexists(os.path.join(folder, "_delta_log")):
        return "Delta"
    if os.path.lexists(os.path.join(folder, ".hoodie")):
        return "Hudi"
    if has("metadata") and _any_name(os.path.join(folder, "metadata"), (".metadata.json", ".metadata.json.gz", "version-hint.text")):
        return "Iceberg"
    if has("snapshot") and has("manifest") and has("schema") and _any_name(os.path.join(folder, "schema"), None, "schema-"):
        return "Paimon"
    return None


def _any_name(folder: str, suffixes: tuple[str, ...] | None, prefix: str = "") -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.startswith(prefix) and (suffixes is None or entry.name.endswith(suffixes)) for entry in entries)
    except OSError:
        return False
