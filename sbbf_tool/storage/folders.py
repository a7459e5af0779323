"""Many files in local folders, as a table has them: whole files read, and new ones published under names that were free.

A new file is written beside its place under a hidden name, brought to the disk, and only then linked to its own name: it appears whole
and at once, and only if no one else has the name by then. A process killed in between leaves a hidden file that the next one which
writes in that folder removes.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sbbf_tool.storage.temporary import USUAL, open_locked, sweep_folder, sync_folder, temporary_path, write_all

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


class LocalFolders:
    """Reading and publishing below local folders. A path is one of the file system, or a `file:` address of one.

    `bytes_read` and `files_read` count what was read. All methods raise OSError, and ValueError for names no file can have.
    """

    def __init__(self) -> None:
        self.bytes_read = 0
        self.files_read = 0
        self._swept: set[str] = set()

    def read(self, path: str, most: int | None = None) -> bytes:
        """The whole file. Raises FileNotFoundError when there is none, OSError also when it has more than `most` bytes."""
        # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
        fd = os.open(_local(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb", buffering=0) as stream:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            if most is not None and status.st_size > most:
                raise OSError(errno.EFBIG, f"has {status.st_size:,} bytes, where {most:,} are the most", path)
            data = stream.readall()
        self.bytes_read += len(data)
        self.files_read += 1
        return data

    def list(self, directory: str) -> Sequence[str]:
        """The names in a folder; none when there is no such folder."""
        try:
            return os.listdir(_local(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def resolve(self, path: str) -> str:
        """Return the absolute path that a path leads to, with links followed."""
        return os.path.realpath(_local(path))

    def create(self, path: str, data: bytes) -> None:
        """A new file that is whole or not there, and survives a power failure on return. Raises FileExistsError where there is one.

        Where a file system has no hard links, names cannot be taken atomically, and PermissionError is raised: nothing was created.
        """
        target = _local(path)
        with self._written(target, data) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise FileExistsError(errno.EEXIST, "the file exists", path) from None
            except OSError as error:
                if error.errno in _NO_LINKS:
                    reason = "this file system has no hard links, without which a file cannot be created only where there is none"
                    raise PermissionError(errno.EPERM, reason, path) from error
                raise
        sync_folder(os.path.dirname(target))

    def replace(self, path: str, data: bytes) -> None:
        """A file with these bytes, at once in place of the one that may be there."""
        target = _local(path)
        with self._written(target, data) as temporary:
            os.rename(temporary, target)
        sync_folder(os.path.dirname(target))

    def remove(self, path: str) -> None:
        """Take a file away; nothing happens when there is none."""
        with suppress(FileNotFoundError):
            os.unlink(_local(path))

    @contextmanager
    def _written(self, target: str, data: bytes) -> Iterator[str]:
        """A hidden file beside `target` with these bytes, on the disk; gone afterwards unless it was renamed."""
        folder, base = os.path.split(target)
        if folder not in self._swept:
            self._swept.add(folder)
            sweep_folder(folder)
        temporary = temporary_path(folder, base)
        try:
            fd = open_locked(temporary, USUAL)
            try:
                write_all(fd, data)
                os.fsync(fd)
                yield temporary
            finally:
                os.close(fd)
        finally:
            with suppress(OSError):
                os.unlink(temporary)


def _local(path: str) -> str:
    """A path, or a `file:` address as manifests hold it, as a path."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return path.removeprefix(scheme)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise OSError(errno.ENOTSUP, "only local folders are read here", path)
    return path
