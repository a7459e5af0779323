"""The files of a table in local folders: read whole files, and publish new ones under unused names.

A new file is written in the same folder under a hidden name, synced to disk, and only then linked
to its own name: it appears in one step, and only if the name is still unused. A killed process
leaves a hidden file; the next writer in that folder removes it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from sbbf_tool.storage.leftovers import open_locked, sweep, temporary_path
from sbbf_tool.storage.local import USUAL
from sbbf_tool.storage.system_calls import READ, ensure_can_change, sync, sync_folder, write_all

if TYPE_CHECKING:
    from sbbf_tool.storage.objects.stores import ObjectFolders

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


Folders: TypeAlias = "LocalFolders | ObjectFolders"
"""The files of a table by path or URL. Methods of object stores also raise errors of this
package."""


class LocalFolders:
    """Read and publish files below local folders. A path is a file system path, or a `file:` URL.

    `bytes_read` and `files_read` count what was read. All methods raise OSError, and ValueError for
    names that no file can have.
    """

    def __init__(self) -> None:
        self.bytes_read = 0
        self.files_read = 0
        self._swept: set[str] = set()

    def read(self, path: str, most: int | None = None) -> bytes:
        """Read the whole file. Raises FileNotFoundError if it does not exist, and OSError if it has
        more than `most` bytes."""
        # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
        fd = os.open(_local(path), READ)
        with open(fd, "rb", buffering=0) as stream:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", path)
            if most is not None and status.st_size > most:
                raise OSError(
                    errno.EFBIG,
                    f"has {status.st_size:,} bytes, more than the limit of {most:,}",
                    path,
                )
            data = stream.readall()
        self.bytes_read += len(data)
        self.files_read += 1
        return data

    def list(self, directory: str, prefix: str = "", after: str = "") -> Sequence[str]:
        """Return the names in a folder that start with `prefix` and sort after `after`; none if the
        folder does not exist."""
        try:
            names = os.listdir(_local(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []
        if not prefix and not after:
            return names
        return [name for name in names if name.startswith(prefix) and name > after]

    def resolve(self, path: str) -> str:
        """Return the absolute path that a path leads to after following links."""
        return os.path.realpath(_local(path))

    def create(self, path: str, data: bytes) -> None:
        """Create a file in one step and sync it to disk. Raises FileExistsError if the name exists.

        On a file system without hard links, names cannot be taken atomically: PermissionError is
        raised and nothing is created.
        """
        target = _local(path)
        with self._write_temporary(target, data) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                raise FileExistsError(errno.EEXIST, "the file exists", path) from None
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                reason = (
                    "this file system has no hard links, which sbbf needs to create a file "
                    "without replacing an existing one"
                )
                raise PermissionError(errno.EPERM, reason, path) from error
        sync_folder(os.path.dirname(target))

    def ensure_exclusive(self, folder: str) -> None:
        """Do nothing: `create` itself refuses where a name cannot be taken atomically.
        `ObjectFolders` checks the store here."""

    def replace(self, path: str, data: bytes) -> None:
        """Write a file with these bytes, replacing an existing file in one step."""
        target = _local(path)
        with self._write_temporary(target, data) as temporary:
            os.rename(temporary, target)
        sync_folder(os.path.dirname(target))

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(_local(path))

    @contextmanager
    def _write_temporary(self, target: str, data: bytes) -> Iterator[str]:
        """Yield a hidden file beside `target` with these bytes, synced to disk; remove it
        afterwards unless it was renamed."""
        ensure_can_change(target)
        folder = os.path.dirname(target)
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder)
        temporary = temporary_path(target)
        try:
            fd = open_locked(temporary, USUAL)
            try:
                write_all(fd, data)
                sync(fd)
                yield temporary
            finally:
                os.close(fd)
        finally:
            with suppress(OSError):
                os.unlink(temporary)


def _local(path: str) -> str:
    """Return the path of a `file:` URL, as manifests contain it; a path is returned unchanged."""
    for scheme in ("file://", "file:"):
        if path.startswith(scheme):
            return path.removeprefix(scheme)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", path):
        raise OSError(errno.ENOTSUP, "only local folders are supported", path)
    return path
