"""Local files by name, folder or glob."""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING

from sbbf_tool.errors import UnreadableError
from sbbf_tool.storage.system_errors import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator


def parquet_files(name: str) -> Iterator[str]:
    """The Parquet files that `name` means: itself, those below it where it is a folder, those that match where it is a glob; in order.

    Below a folder, names that start with a dot or `_` are passed over, as Spark and Hive do, unless they are of a partition (`_day=1`),
    and so are folders that are links. Raises UnreadableError where there is none.
    """
    if os.path.isdir(name):
        matches = [name]
    elif os.path.lexists(name) or not glob.has_magic(name):
        yield name
        return
    else:
        matches = sorted(glob.glob(name, recursive=True))
    found = False
    for match in matches:
        for path in _walk(match) if os.path.isdir(match) else (match,):
            found = True
            yield path
    if not found:
        raise UnreadableError("no *.parquet file below this folder" if os.path.isdir(name) else "no file matches", file=name)


def is_passed_over(name: str) -> bool:
    """Whether a file or folder of this name is none of a lake's data; the folder of a partition is, whatever its column is called."""
    return name.startswith((".", "_")) and "=" not in name


def _walk(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as listing:
            entries = sorted((entry.name, entry.is_dir()) for entry in listing if not is_passed_over(entry.name))
    except OSError as error:
        raise UnreadableError(reason_of(error), file=folder) from error
    for name, is_folder in entries:
        path = os.path.join(folder, name)
        if is_folder and not os.path.islink(path):
            yield from _walk(path)
        elif not is_folder and name.endswith(".parquet"):
            yield path
