"""Protocols through which this package reads and writes files; callers pass an implementation.

A path is a string with slashes, in the form that the implementation uses: a local path, or the
address of an object in a bucket.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sbbf_tool.errors import ErrorPlace, RefusedError, UnreadableError
from sbbf_tool.running.table import CreatingFiles, read_metadata
from sbbf_tool.storage.system_calls import reason_of

T = TypeVar("T")

LARGEST_METADATA = (1 << 31) - 1
"""In bytes: offsets in a container are Java ints, and so are the lengths of the arrays into which
Paimon reads its other files."""


class FileIO(CreatingFiles, Protocol):
    """Storage of tables, which can create a file if it does not exist: atomically, durably."""

    def list(self, directory: str) -> Sequence[str]:
        """List the names in a directory, in any order; empty if there is no such directory."""

    def resolve(self, path: str) -> str:
        """Return the canonical path of a file, which need not exist.

        It is absolute, and links are followed.
        """

    def replace(self, path: str, data: bytes) -> None:
        """Write a file atomically, replacing an existing one."""


def parse_file(files: FileIO, path: str, parse: Callable[[bytes], T]) -> T:
    """Read a metadata file and parse it with `parse`. Errors of both steps name the file."""
    with ErrorPlace(path):
        return parse(read_metadata(files, path, LARGEST_METADATA))


def list_names(files: FileIO, directory: str) -> Sequence[str]:
    """List the names in a directory; empty if it does not exist.

    Raises UnreadableError, with the path, if listing fails.
    """
    try:
        return files.list(directory)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"cannot be listed: {reason_of(error)}", file=directory) from error


def is_listed(files: FileIO, path: str) -> bool:
    """Return whether the directory of a local path lists its name."""
    directory, name = os.path.split(path)
    return name in list_names(files, directory or ".")


def join(*parts: str) -> str:
    """Join parts of a path with one slash between them, skipping empty parts."""
    *folders, last = parts
    segments = [folder.rstrip("/") for folder in folders if folder]
    if last:
        segments.append(last)
    return "/".join(segments)


def parent(path: str) -> str:
    """Return the directory of a path."""
    return path.rstrip("/").rpartition("/")[0]


class OutsideError(UnreadableError):
    """A path in the metadata of a table leads out of the table."""

    def __init__(self, path: str, place: str) -> None:
        hint = "to read it, allow files outside the table"
        super().__init__(f"the path leads outside the table, to {place}", file=path, hint=hint)


class ConfinedFiles:
    """Files of one table, below `root` after links are followed.

    A manifest can name any file that this process may read or write. Files outside `root` can be
    read only with `allow_outside`, and never written.
    """

    def __init__(self, files: FileIO, root: str, allow_outside: bool) -> None:
        self._files = files
        try:
            self._root = files.resolve(root)
        except (OSError, ValueError):
            self._root = root  # no file system accepts this path, and every read reports that
        self.allow_outside = allow_outside

    @property
    def is_writable(self) -> bool:
        return hasattr(self._files, "create")

    def find_outside_place(self, path: str) -> str | None:
        """Return the target of a path if it is outside the table; None if it is inside."""
        place = self._files.resolve(path)
        root = self._root.rstrip("/")
        if place == self._root or place.startswith(f"{root}/"):
            return None
        return place

    def resolve(self, path: str) -> str:
        return self._files.resolve(path)

    def read(self, path: str, most: int | None = None) -> bytes:
        self._ensure_readable(path)
        return self._files.read(path, most)

    def list(self, directory: str) -> Sequence[str]:
        self._ensure_readable(directory)
        return self._files.list(directory)

    def create(self, path: str, data: bytes) -> None:
        self._ensure_writable(path)
        self._files.create(path, data)

    def replace(self, path: str, data: bytes) -> None:
        self._ensure_writable(path)
        self._files.replace(path, data)

    def remove(self, path: str) -> None:
        self._ensure_writable(path)
        self._files.remove(path)

    def _ensure_readable(self, path: str) -> None:
        if self.allow_outside:
            return
        place = self.find_outside_place(path)
        if place is not None:
            raise OutsideError(path, place)

    def _ensure_writable(self, path: str) -> None:
        # The last component is not resolved: `create` fails on a link of that name, and `replace`
        # replaces the link.
        place = self.find_outside_place(parent(path))
        if place is not None:
            raise RefusedError(
                f"the path leads outside the table, to {place}; nothing is written there", file=path
            )
