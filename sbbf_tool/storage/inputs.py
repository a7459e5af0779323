"""What a caller of the Python functions may name to read: a path or URL, a path in a file system
object, or an open binary file.

Only a path or URL can be changed: a change is locked, published in one step and checked afterwards,
by name.
"""

from __future__ import annotations

import os
import sys
from threading import Lock
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeAlias

from sbbf_tool.display import redact
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.storage.source import Source, ensure_within
from sbbf_tool.storage.system_calls import reason_of

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

FileSystemLike: TypeAlias = object
"""A `pyarrow.fs.FileSystem` or an `fsspec.AbstractFileSystem`; neither package has types for type
checkers."""


class FileIn(NamedTuple):
    """A file in a pyarrow file system."""

    filesystem: FileSystem
    path: str


Readable: TypeAlias = str | os.PathLike[str] | BinaryIO
"""Argument of the functions that read: a path or URL, or an open binary file. The caller closes the
file; its position is restored."""


def find_input(name: Readable, filesystem: FileSystemLike | None) -> Readable | FileIn:
    """Return what to open: `name` itself or, with `filesystem`, the file with this path in it.
    Raises UsageError."""
    if filesystem is None:
        return name
    if not isinstance(name, str | os.PathLike):
        raise UsageError(
            "an open file has no path in a file system",
            file=name_of(name),
            hint="give either a path and filesystem, or a file",
        )
    return FileIn(*locate(filesystem, os.fspath(name)))


def locate(filesystem: FileSystemLike, path: str) -> tuple[FileSystem, str]:
    """Return a file system as a pyarrow file system, and the form of `path` in it. Raises
    UsageError for other objects."""
    from pyarrow import fs

    if isinstance(filesystem, fs.FileSystem):
        return filesystem, path
    # The object can only come from fsspec if the caller has imported it.
    fsspec: Any = sys.modules.get("fsspec")
    if fsspec is None or not isinstance(filesystem, fsspec.AbstractFileSystem):
        kind = type(filesystem).__name__
        raise UsageError(
            f"filesystem must be a pyarrow.fs.FileSystem or an fsspec file system, not {kind}",
            file=redact(path),
        )
    files: Any = filesystem
    return fs.PyFileSystem(fs.FSSpecHandler(files)), files._strip_protocol(path)


def ensure_path(name: object) -> None:
    """Raise UsageError unless a file that is to be changed is named by its path or URL."""
    if isinstance(name, str | bytes | os.PathLike):
        return
    raise UsageError(
        "an open file cannot be changed: a change must be locked and published in one step, "
        "which such an object does not offer",
        file=name_of(name),
        hint="give the path or URL of the file; to change a file that has none, copy it to a "
        "local file first",
    )


def name_of(file: object) -> str:
    """Return the name of an open file for messages and reports."""
    name = getattr(file, "name", None)
    if isinstance(name, str) and name:
        return redact(name)
    return "<open file>"


class OpenFileSource(Source):
    """A `Source` over a binary file that the caller opened. Threads may share one."""

    can_reopen = False

    def __init__(self, file: BinaryIO) -> None:
        self.name = name_of(file)
        for method in ("read", "seek", "tell"):
            if not callable(getattr(file, method, None)):
                kind = type(file).__name__
                raise UsageError(
                    f"a file to read must be a path, a URL or an open binary file, not {kind}",
                    file=self.name,
                )
        self._file = file
        self._lock = Lock()
        try:
            self._ensure_readable()
            self._position = file.tell()
            self.size = file.seek(0, os.SEEK_END)
        except (OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _ensure_readable(self) -> None:
        """Raise UsageError if the file cannot seek, or does not read bytes."""
        if not self._file.seekable():
            raise UsageError(
                "the open file cannot seek: a Parquet file is read from its end",
                file=self.name,
                hint="read it into io.BytesIO, or give a path",
            )
        message = None
        if not self._file.readable():
            message = "the file is not open for reading"
        elif not isinstance(self._file.read(0), bytes):
            message = "the file is open in text mode"
        if message is not None:
            raise UsageError(message, file=self.name, hint='open it with mode "rb"')

    def read(self, offset: int, length: int) -> bytes:
        ensure_within(self, offset, length)
        parts = []
        with self._lock:
            try:
                self._file.seek(offset)
                remaining = length
                while remaining:
                    part = self._file.read(remaining)
                    if not part:
                        break
                    parts.append(part)
                    remaining -= len(part)
            except (OSError, ValueError) as error:
                raise self._unreadable(error) from error
            self.bytes_read += length
        if remaining:
            raise UnreadableError(
                "the file became shorter while it was read",
                file=self.name,
                place=f"byte {offset + length - remaining:,}",
            )
        return b"".join(parts)

    def is_unchanged(self) -> bool:
        with self._lock:
            return self._file.seek(0, os.SEEK_END) == self.size

    def close(self) -> None:
        """Restore the position; the file stays open, because the caller opened it."""
        if not self._file.closed:
            with self._lock:
                self._file.seek(self._position)

    def _unreadable(self, error: OSError | ValueError) -> UnreadableError:
        # A closed file raises ValueError.
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        return UnreadableError(reason, file=self.name)
