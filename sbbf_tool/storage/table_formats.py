"""The table that a local file belongs to, recognised by names of folders.

Delta, Iceberg, Hudi, Paimon and DuckLake keep a list of their files with lengths, and engines trust
it: if a file has grown, they read it at its old length, or fail. So the tool checks for a table
before it changes a file. It looks only at names of folders, and of the file for DuckLake, whose
catalog is a database elsewhere; it never parses a table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

_MAX_ANCESTORS = 32
_DUCKLAKE_NAME = (
    r"(?:sbbf-[0-9a-f]{16}-[0-9a-f]{8}-)?"
    r"ducklake-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.parquet"
)
"""Name of a data file that DuckLake writes, or of a copy of it."""


def managing_table(folder: str) -> tuple[str, str] | None:
    """Return format and folder of the table that the files of a folder belong to, such as
    `("Delta", "/lake/orders")`, or None."""
    folder = os.path.realpath(folder)
    for _ in range(_MAX_ANCESTORS):
        kind = next(formats_of(folder), None)
        if kind is not None:
            return kind, folder
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return None


def ducklake_folder(path: str) -> str | None:
    """Return the folder of a file that has a name as DuckLake gives, whose catalog is elsewhere;
    None for other names."""
    folder, _, name = path.rpartition("/")
    if not re.fullmatch(_DUCKLAKE_NAME, name):
        return None
    return folder or "."


def formats_of(folder: str) -> Iterator[str]:
    """Yield the formats of the tables whose root is this folder: a converted table may have two."""

    def names(inner: str) -> Iterator[str]:
        with suppress(OSError), os.scandir(os.path.join(folder, inner)) as entries:
            yield from (entry.name for entry in entries)

    # A link to a log that is not there, as on a disk that is not mounted, makes it no folder of
    # plain files.
    return recognise(lambda inner: os.path.lexists(os.path.join(folder, inner)), names)


def recognise(has: Callable[[str], bool], names: Callable[[str], Iterator[str]]) -> Iterator[str]:
    """Yield the formats of the tables with one root, by whether it has folders, and by the names in
    them."""
    if has("_delta_log"):
        yield "Delta"
    if has(".hoodie"):
        yield "Hudi"
    metadata_ends = (".metadata.json", ".metadata.json.gz", "version-hint.text")
    if any(name.endswith(metadata_ends) for name in names("metadata")):
        yield "Iceberg"
    has_schema = any(name.startswith("schema-") for name in names("schema"))
    if has_schema and has("snapshot") and has("manifest"):
        yield "Paimon"
