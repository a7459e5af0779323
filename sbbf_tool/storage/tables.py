"""Detection of the table that a file belongs to, whose metadata records the file's size.

Delta, Iceberg, Hudi and Paimon keep a list of their files with lengths, and engines trust it: if a file has grown, they read it at its old
length, or fail. So the tool checks for a table before it changes a file. It looks only at folder names and never parses a table.
"""

from __future__ import annotations

import os

_MAX_ANCESTORS = 32


def managing_table(path: str) -> tuple[str, str] | None:
    """Return format and folder of the table that `path` belongs to, such as `("Delta", "/lake/orders")`, or None if it belongs to none."""
    folder = os.path.dirname(os.path.realpath(path))
    for _ in range(_MAX_ANCESTORS):
        kind = _kind_of(folder)
        if kind is not None:
            return kind, folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return None


def _kind_of(folder: str) -> str | None:
    def has(name: str) -> bool:
        return os.path.isdir(os.path.join(folder, name))

    if has("_delta_log"):
        return "Delta"
    if has(".hoodie"):
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
