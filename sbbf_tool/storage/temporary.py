"""Temporary files beside the file that they are for: locked while their process lives, removed by a later command if it was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.storage.system_errors import FORBIDDEN, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPORARY_SUFFIX = ".sbbf-tmp"
PRIVATE = 0o600
USUAL = 0o666
"""Modes of new files, of which the umask takes its part."""


def sweep(target: str) -> None:
    """Remove temporary files that a killed process left beside `target`; those of a living one are locked, and stay."""
    folder, base = os.path.split(os.path.realpath(target))
    sweep_folder(folder, re.escape(_stem(base)))


def sweep_folder(folder: str, stem: str = r"\..*\.") -> None:
    """As `sweep`, of temporary files beside whatever target: those whose name begins with what the regular expression `stem` means."""
    ours = re.compile(stem + r"[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX), re.DOTALL)
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return
    for name in names:
        if name.endswith(TEMPORARY_SUFFIX) and ours.fullmatch(name):
            with suppress(OSError):
                _remove_if_dead(os.path.join(folder, name))


def _remove_if_dead(path: str) -> None:
    """Remove a temporary file that no process has locked. Raises OSError.

    Other users of a shared folder may give such a name to anything: a link is not followed, a FIFO is not waited for, no device is opened.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.lstat(path), os.fstat(fd)):
            os.unlink(path)
    finally:
        os.close(fd)


def _stem(base: str) -> str:
    # A file name may have 255 bytes, and the target's own may need them all. The dot hides the file from Hadoop and Spark.
    return f".{os.fsencode(base)[:200].decode(errors='ignore')}."


@contextmanager
def temporary_file(folder: str, base: str, mode: int = PRIVATE) -> Iterator[tuple[str, int]]:
    """Create a locked file beside the file `base` of `folder`; yield its path and descriptor. It is removed unless it was renamed.

    Of `mode` the umask, or the folder's default access list, takes away what it does from new files of any program. What killed processes
    left of such files is removed first. Raises RefusedError where no file may be created there, WriteError where none can be.
    """
    sweep(os.path.join(folder, base))
    path = temporary_path(folder, base)
    # From the moment there may be a file, whatever ends us takes it away.
    try:
        try:
            fd = open_locked(path, mode)
        except OSError as error:
            hint = "write elsewhere with -o"
            if error.errno in FORBIDDEN:
                message = f"cannot create a file beside it: {reason_of(error)}"
                raise RefusedError(message, file=os.path.join(folder, base), hint=hint) from error
            raise WriteError(reason_of(error), file=os.path.join(folder, base), hint=hint) from error
        try:
            yield path, fd
        finally:
            os.close(fd)
    finally:
        # Mostly it is not there any more; where it cannot be removed, the next command tries again.
        with suppress(OSError):
            os.unlink(path)


def temporary_path(folder: str, base: str) -> str:
    """A name that nothing has, beside the file `base` of `folder`, and that `sweep` knows as ours."""
    return os.path.join(folder, f"{_stem(base)}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")


def open_locked(path: str, mode: int = PRIVATE) -> int:
    """The descriptor of a new file, locked so that no other process sweeps it away. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if os.fstat(fd).st_nlink:
        return fd
    # Another process swept it away before it was locked.
    os.close(fd)
    return open_locked(path, mode)


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: str) -> None:
    fd = os.open(folder or ".", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(fd)
