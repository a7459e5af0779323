"""How an index knows a file of a listing, and the column of a table, when it meets them again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from sbbf_tool.extensions.index.segment_pages import FINGERPRINT_BYTES
from sbbf_tool.running.discover import list_file
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.reports.rows import ListedFile
    from sbbf_tool.running.table import Table


def version_of(file: ListedFile) -> str:
    """Return what changes with the content of a listed file; empty if its listing states no such
    thing."""
    if file.etag:
        return file.etag
    if file.modified is None:
        return ""
    return f"{file.modified!r} {file.change_time!r} {file.inode}"


def fingerprint_of(file: ListedFile, *, is_in_table: bool = False) -> bytes | None:
    """Return the hash by which a file of a listing is found in the index; None if its listing does
    not state its length and its version.

    The files of a table never change, so that path and length are enough.
    """
    if file.bytes is None:
        return None
    return hash_of(file) if is_in_table or version_of(file) else None


def hash_of(file: ListedFile, *marks: str) -> bytes:
    """Return a hash of what a listing states of a file; with `marks`, another one."""
    parts = [os.fsencode(_full_path(file.path)), str(file.bytes).encode()]
    parts += map(str.encode, (version_of(file), *marks))
    return blake2b(b"\0".join(parts), digest_size=FINGERPRINT_BYTES).digest()


def _full_path(path: str) -> str:
    """Return the path of a file of a listing as the index has it, wherever the listing was made."""
    return path if places.is_url(path) else os.path.abspath(path)


def meaning_of(table: Table | None, column: str) -> str | None:
    """Return what a table means by the name of a column: another column of the files has it when
    the table has renamed columns."""
    if table is None:
        return None
    names = table.columns
    path = names.path_of(column)
    ids = _keys_of(names.by_id, path)
    paths = _keys_of(names.by_path, path)
    is_unmapped = path in names.unmapped
    reading = path is not None and names.readings.get(path)
    return repr((path, ids, paths, is_unmapped, reading))


def _keys_of(mapping: Mapping[Any, object], value: object) -> list[Any]:
    """Return the keys with this value, sorted."""
    return sorted(key for key, stored in mapping.items() if stored == value)


def identify(file: ListedFile) -> ListedFile:
    """Return a file of a listing with its times and its inode, which tables do not list."""
    has_version = file.etag is not None or file.modified is not None
    if file.bytes is None or has_version or places.is_url(file.path):
        return file
    return list_file(file.path)
