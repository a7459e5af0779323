"""Local files by name, folder or glob.

A name that cannot be listed does not stop a listing: it is returned, and opening it fails with the reason. Names that vanish during the
listing are left out.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Entry:
    """A Parquet file that a name stands for, or a link to a folder where links are requested."""

    path: str
    is_link: bool = False
    """Whether a folder or glob reached it through a link."""


def entries(name: str, *, linked_folders: bool = False) -> Iterator[Entry]:
    """Yield the Parquet files of `name` in order: itself, those below it where it is a folder, those that match where it is a glob.

    Below a folder, names that start with a dot or `_` are skipped, as Spark and Hive do, except those of a partition (`_day=1`). Links
    to folders are skipped unless `linked_folders` is true; links to files are followed. Raises UnreadableError where there is no file.
    """
    if os.path.isdir(name):
        matches = _walk(name)
    elif is_one_file(name):
        yield Entry(name)
        return
    else:
        matches = _match_glob(name)
    has_files = False
    for entry, is_folder in matches:
        has_files = has_files or not is_folder
        if linked_folders or not is_folder:
            yield entry
    if not has_files:
        raise UnreadableError("no *.parquet file below this folder" if os.path.isdir(name) else "no file matches", file=name)


def is_one_file(name: str) -> bool:
    """Return whether `name` stands for one file, which need not exist, and no folder or glob. An existing file wins over a glob."""
    return not os.path.isdir(name) and (os.path.lexists(name) or not glob.has_magic(name))


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name holds none of a lake's data; the folder of a partition does, whatever its column."""
    return name.startswith((".", "_")) and "=" not in name


def is_behind_link(path: str, folder: str) -> bool:
    """Return whether a link leads to `path` from `folder`, with whose name it begins."""
    place = folder
    for part in path.removeprefix(folder).strip(os.sep).split(os.sep):
        place = os.path.join(place, part)
        if os.path.islink(place):
            return True
    return False


def _match_glob(pattern: str) -> Iterator[tuple[Entry, bool]]:
    parts = pattern.split(os.sep)
    # The literal part of the pattern is taken as it is, with or without links.
    literal = os.sep.join(parts[: next(number for number, part in enumerate(parts) if glob.has_magic(part))])
    base = literal.rstrip(os.sep) or (os.sep if pattern.startswith(os.sep) else "")
    for match in sorted(glob.glob(pattern, recursive=True)):
        is_link = is_behind_link(match, base)
        if is_link and "**" in parts and is_behind_link(os.path.dirname(match), base):
            # As below a folder: links to folders may form a cycle.
            continue
        if not os.path.isdir(match):
            yield Entry(match, is_link), False
        elif is_link and "**" in parts:
            yield Entry(match, True), True
        else:
            for entry, is_folder in _walk(match):
                yield Entry(entry.path, is_link or entry.is_link), is_folder


def _walk(top: str) -> Iterator[tuple[Entry, bool]]:
    """Yield the Parquet files below a folder, and links to folders; each with whether it is such a link."""
    # A list instead of recursion: folders may be nested deeper than Python's stack.
    waiting = [(top, True, False)]
    while waiting:
        path, is_folder, is_link = waiting.pop()
        if is_link or not is_folder:
            yield Entry(path, is_link), is_folder
            continue
        try:
            with os.scandir(path) as listing:
                children = sorted((entry.name, _is_folder(entry), entry.is_symlink()) for entry in listing if not is_hidden(entry.name))
        except FileNotFoundError:
            continue
        except OSError:
            yield Entry(path), False
            continue
        below = (
            (os.path.join(path, name), is_folder, is_link)
            for name, is_folder, is_link in children
            if is_folder or name.endswith(".parquet")
        )
        waiting.extend(reversed(list(below)))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder or a link to one; a broken or circular link is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
