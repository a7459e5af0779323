"""Opening a file for a change in place, and the lock that excludes a second writer.

Locks are taken with flock(2). NFS turns them into byte-range locks, and gives an exclusive lock only to a writable descriptor.
"""

from __future__ import annotations

import errno
import os
import stat

from sbbf_tool.errors import ChangedError
from sbbf_tool.storage.system_calls import NO_FOLLOW, NO_WAIT, lock_exclusively, lock_shared, unlock
from sbbf_tool.storage.system_errors import close


def open_to_change(path: str, flags: int = 0) -> int:
    """Open the regular file of this name for reading and writing, without following a link or waiting for a FIFO. Raises OSError."""
    fd = os.open(path, os.O_RDWR | NO_WAIT | NO_FOLLOW | flags)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)


def lock(fd: int, name: str, work: str) -> None:
    """Take the exclusive lock of a file.

    Raises ChangedError with the `work` of the process that has the lock, and OSError if the file system does not support locks on this
    descriptor.
    """
    try:
        lock_exclusively(fd)
    except BlockingIOError:
        raise ChangedError(
            f"another process is {work} this file", file=name, hint="wait until it has finished, and run the command again"
        ) from None


def is_locked(fd: int) -> bool:
    """Return whether another process has the exclusive lock; False if the file system has no locks."""
    try:
        lock_shared(fd)
    except BlockingIOError:
        return True
    except OSError:
        return False
    unlock(fd)
    return False


def leads_to(path: str, fd: int) -> bool:
    """Return whether a path names the open file itself, not another file or a link."""
    try:
        return is_open_file(os.lstat(path), fd)
    except OSError:
        return False


def is_open_file(status: os.stat_result, fd: int) -> bool:
    """Return whether `status` belongs to the open file."""
    try:
        return os.path.samestat(status, os.fstat(fd))
    except OSError:
        return False
