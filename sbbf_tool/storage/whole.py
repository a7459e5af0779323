"""Files that this package creates itself, such as reports and plans: each is written in one step
and synced to disk.

At every moment the name refers to the complete old file or the complete new one. If the disk is
full or the process is killed, the old file stays.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
import time
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError
from sbbf_tool.storage.attributes import carry_over
from sbbf_tool.storage.leftovers import remove_left, temporary_path
from sbbf_tool.storage.local import USUAL, give_new_name, temporary_file
from sbbf_tool.storage.permissions import ensure_renames
from sbbf_tool.storage.system_calls import (
    CAN_CHANGE,
    HAS_USERS,
    NO_WAIT,
    READ,
    kind_of,
    reason_of,
    sync,
    sync_folder,
    user_id,
    write_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sbbf_tool.storage.source import Bytes

_HINT = "name another path"
_READER_SECONDS = 5.0


@contextmanager
def write_whole(
    path: str | os.PathLike[str], *, overwrite: bool, mode: int = USUAL
) -> Iterator[io.FileIO]:
    """Yield an open binary file that becomes `path` when the block ends without an error.

    With `overwrite`, an existing file is replaced; the new file gets the owner and mode of the old
    one, unless `mode` is given. A link of this user or root is followed, and a device, or a FIFO
    that has a reader, is written to. Raises RefusedError (the file exists, is a link of another
    user, or must not be written) and WriteError.
    """
    name = os.fsdecode(path)
    try:
        with _open_new(name, overwrite, mode) as stream:
            yield stream
    except OSError as error:
        raise kind_of(error)(reason_of(error), file=name, hint=_HINT) from error


def _open_new(name: str, overwrite: bool, mode: int) -> AbstractContextManager[io.FileIO]:
    """Return the context in which `name` is written. Raises RefusedError if it must not be, and
    OSError."""
    if not CAN_CHANGE:
        return _write_on_windows(name, overwrite)
    real = os.path.realpath(name)
    if not os.path.isdir(os.path.dirname(real)):
        raise RefusedError("its folder does not exist", file=name, hint="create it first")
    if os.path.isdir(real):
        raise RefusedError("it is a folder", file=name, hint=_HINT)
    if not overwrite:
        remove_left(real)
    old = None
    with suppress(FileNotFoundError):
        old = os.stat(name)
    if old is not None and not overwrite:
        raise _exists_error(name)
    ensure_own_link(name)
    if old is not None:
        descriptor = _own_descriptor(name)
        if descriptor is not None:
            return _Unbuffered(os.dup(descriptor), "wb")
        # The descriptors of another process too may lead to a file, which nothing must replace.
        if not stat.S_ISREG(old.st_mode) or name.startswith(("/dev/", "/proc/")):
            return _Unbuffered(_open_fifo(name) if stat.S_ISFIFO(old.st_mode) else name, "wb")
        if not os.access(real, os.W_OK):
            raise RefusedError("no permission to write the file", file=name, hint=_HINT)
    ensure_renames(name)
    has_attributes = old is not None and mode == USUAL
    return _write_beside(name, real, mode, overwrite=overwrite, has_attributes=has_attributes)


@contextmanager
def _write_beside(
    name: str, real: str, mode: int, *, overwrite: bool, has_attributes: bool
) -> Iterator[io.FileIO]:
    """Write a temporary file beside `real`, which gets its name at the end, and the attributes of
    the old file if it has such."""
    with temporary_file(real, name, mode) as (temporary, fd):
        if has_attributes:
            _carry_over(real, fd)
        stream = _Unbuffered(fd, "wb", closefd=False)
        try:
            yield stream
        except BaseException:
            stream.drop()
            raise
        sync(fd)
        if overwrite:
            os.rename(temporary, real)
        else:
            give_new_name(temporary, real)
        with suppress(OSError):
            sync_folder(os.path.dirname(real))


def _exists_error(name: str) -> RefusedError:
    return RefusedError("the file exists", file=name, hint=f"{_HINT}, or remove it first")


@contextmanager
def _write_on_windows(name: str, overwrite: bool) -> Iterator[io.FileIO]:
    """Write a file as `write_whole` does, without locks, and close it before it gets its name:
    Windows renames no open file."""
    if os.path.exists(name) and not overwrite:
        raise _exists_error(name)
    temporary = temporary_path(os.path.abspath(name))
    try:
        with _Unbuffered(temporary, "xb") as stream:
            yield stream
            sync(stream.fileno())
        os.replace(temporary, name)
    finally:
        with suppress(OSError):
            os.unlink(temporary)


class _Unbuffered(io.FileIO):
    """A file that writes without a buffer: a forked process would inherit the buffer and write it
    again."""

    _is_dropped = False

    def drop(self) -> None:
        """Ignore what is written from now on.

        pyarrow ends a file when its writer is deleted, and by then the descriptor may be that of
        another file.
        """
        self._is_dropped = True

    def write(self, data: Bytes) -> int:  # type: ignore[override]
        if not self._is_dropped:
            write_all(self.fileno(), data)
        return memoryview(data).nbytes


def _own_descriptor(name: str) -> int | None:
    """Return the descriptor of this process that `name` means. It may lead to a file with earlier
    content, which would be lost if the file were opened again or replaced."""
    name = {"/dev/stdout": "/dev/fd/1", "/dev/stderr": "/dev/fd/2"}.get(name, name)
    match = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", name)
    return None if match is None else int(match[1])


def _open_fifo(name: str) -> int:
    """Open a FIFO as soon as a process reads it. Raises OSError, also if no process does within the
    time limit."""
    deadline = time.monotonic() + _READER_SECONDS
    while True:
        try:
            fd = os.open(name, os.O_WRONLY | NO_WAIT)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > deadline:
                raise OSError(errno.ENXIO, "no process reads it") from None
            time.sleep(0.01)
        else:
            os.set_blocking(fd, True)
            return fd


def ensure_own_link(name: str) -> None:
    """Raise RefusedError if a path is a link of another user: it may lead to any file that this
    user may write."""
    try:
        status = os.lstat(name)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(status.st_mode) and status.st_uid not in (user_id(), 0):
        raise RefusedError(
            f"the path is a symbolic link of another user (uid {status.st_uid})",
            file=name,
            hint=_HINT,
        )


def _carry_over(old: str, fd: int) -> None:
    try:
        source = os.open(old, READ)
    except OSError:
        # This user may not read the old file, so its attributes cannot be copied: only the owner
        # gets access to the new one.
        os.fchmod(fd, stat.S_IRUSR | stat.S_IWUSR)
        return
    try:
        carry_over(old, source, os.fstat(source), fd)
    finally:
        os.close(source)


def find_writer(path: str | os.PathLike[str]) -> str | None:
    """Return the users other than this one and root who may change a file or a folder, such as
    `every user`; None if there are none."""
    if not HAS_USERS:
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    if stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        return None
    if status.st_uid not in (user_id(), 0):
        return f"its owner (uid {status.st_uid})"
    if status.st_mode & stat.S_IWOTH:
        return "every user"
    if status.st_mode & stat.S_IWGRP:
        return "its group"
    return None
