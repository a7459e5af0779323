"""Calls of the operating system that differ between Linux, macOS and Windows.

Windows has no `flock`, and cannot rename or remove a file that is open. So sbbf only reads there, and refuses to change files.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from threading import Lock

from sbbf_tool.errors import RefusedError

try:
    import fcntl as fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

CAN_CHANGE = fcntl is not None
"""Whether sbbf changes files on this system."""
HAS_USERS = hasattr(os, "geteuid")
"""Whether files belong to users with a number, and their mode says what others may do."""
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""Flags for `os.open`: never wait for the writer of a FIFO, and translate no line ends."""
READ = os.O_RDONLY | NO_WAIT

NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Errors of file systems that cannot exchange two names, such as NFS and FAT."""
AT_FDCWD = -2 if sys.platform == "darwin" else -100
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS."""
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_seeking = Lock()


def ensure_can_change(target: str) -> None:
    """Raise RefusedError on a system where sbbf only reads."""
    if not CAN_CHANGE:
        message = f"sbbf does not change files on {'Windows' if os.name == 'nt' or sys.platform == 'win32' else 'this system'}"
        reason = "which has no file locks of the kind that it needs"
        raise RefusedError(f"{message}, {reason}", file=target, hint="run the command on Linux or macOS, or in WSL")


def lock_exclusively(fd: int) -> None:
    """Take the exclusive lock of an open file. Raises BlockingIOError if another process has a lock, and OSError."""
    assert fcntl is not None
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_shared(fd: int) -> None:
    """Take a shared lock of an open file. Raises BlockingIOError if another process has the exclusive lock, and OSError."""
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)


def unlock(fd: int) -> None:
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def sync(fd: int) -> None:
    """Write the bytes of an open file to the disk, as `fsync` does. Raises OSError.

    On macOS, `fsync` only moves them to the cache of the disk, which loses them without power; F_FULLFSYNC writes them to the disk.
    File systems of other machines may not support it.
    """
    if fcntl is not None and _FULL_SYNC is not None:
        try:
            fcntl.fcntl(fd, _FULL_SYNC)
        except OSError:
            pass
        else:
            return
    os.fsync(fd)


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Read up to `length` bytes from `offset`, as `pread` does. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(fd, length, offset)
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


def user_id() -> int:
    """Return the number of the effective user; 0, to which all files belong, on a system without such numbers."""
    return os.geteuid() if HAS_USERS else 0


def exchange(first: str, second: str) -> None:
    """Let two files get each other's name in one step. Raises OSError: one of `NO_EXCHANGE` if the system or the file system cannot."""
    import ctypes  # takes milliseconds, which commands that read need not spend

    call = _exchange_call()
    if call is None or call(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), _EXCHANGE) != 0:
        number = errno.ENOSYS if call is None else ctypes.get_errno()
        raise OSError(number, os.strerror(number), second)


@cache
def _exchange_call() -> Callable[[int, bytes, int, bytes, int], int] | None:
    import ctypes

    # The C library of Alpine Linux has neither.
    return getattr(ctypes.CDLL(None, use_errno=True), "renameatx_np" if sys.platform == "darwin" else "renameat2", None)
