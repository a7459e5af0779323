"""Calls of the operating system that differ between Linux, macOS and Windows, locks, memory, and
the text of errors.

Locks are taken with flock(2). NFS turns them into byte-range locks, and gives an exclusive lock
only to a writable descriptor. Windows has no `flock`, and cannot rename or remove a file that is
open. So sbbf only reads there, and refuses to change files.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from threading import Lock

from sbbf_tool.errors import ChangedError, RefusedError, WriteError
from sbbf_tool.storage.threads import waiting

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

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors that mean that the process has no permission to write; other errors mean that the write
failed."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)
"""Errors of file systems that cannot exchange two names, such as NFS and FAT."""
_IS_MACOS = sys.platform == "darwin"
_AT_FDCWD = -2 if _IS_MACOS else -100
_CLONE_NOOWNERCOPY = 2
_EXCHANGE = 2
"""RENAME_EXCHANGE of Linux and RENAME_SWAP of macOS."""
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
_seeking = Lock()


def kind_of(error: OSError) -> type[RefusedError | WriteError]:
    """Return the class of an error of writing."""
    return RefusedError if error.errno in FORBIDDEN else WriteError


def ensure_can_change(target: str) -> None:
    """Raise RefusedError on a system where sbbf only reads."""
    if not CAN_CHANGE:
        is_windows = os.name == "nt" or sys.platform == "win32"
        system = "Windows" if is_windows else "this system"
        raise RefusedError(
            f"sbbf does not change files on {system}, which has no file locks of the kind that it "
            "needs",
            file=target,
            hint="run the command on Linux or macOS, or in WSL",
        )


def lock_exclusively(fd: int) -> None:
    """Take the exclusive lock of an open file. Raises BlockingIOError if another process has a
    lock, and OSError."""
    assert fcntl is not None
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def unlock(fd: int) -> None:
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_UN)


def sync(fd: int) -> None:
    """Write the bytes of an open file to the disk, as `fsync` does. Raises OSError.

    On macOS, `fsync` only moves them to the cache of the disk, which loses them without power;
    F_FULLFSYNC writes them to the disk. File systems of other machines may not support it.
    """
    with waiting():
        if fcntl is not None and _FULL_SYNC is not None:
            with suppress(OSError):
                fcntl.fcntl(fd, _FULL_SYNC)
                return
        os.fsync(fd)


def sync_folder(folder: str) -> None:
    fd = os.open(folder or ".", READ)
    try:
        sync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        close(fd)


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(fd, view) :]


def read_at(fd: int, length: int, offset: int) -> bytes:
    """Read up to `length` bytes from `offset`, as `pread` does. Raises OSError."""
    if hasattr(os, "pread"):
        return os.pread(fd, length, offset)
    with _seeking:
        os.lseek(fd, offset, os.SEEK_SET)
        return os.read(fd, length)


def read_all(fd: int, length: int, offset: int) -> bytes:
    """Read `length` bytes from `offset`, and fewer only at the end of the file. Raises OSError."""
    parts = []
    while length and (part := read_at(fd, length, offset)):
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def user_id() -> int:
    """Return the number of the effective user; 0, to which all files belong, on a system without
    such numbers."""
    return os.geteuid() if HAS_USERS else 0


def exchange(first: str, second: str) -> None:
    """Let two files get each other's name in one step. Raises OSError: one of `NO_EXCHANGE` if the
    system or the file system cannot."""
    call = _find_function("renameatx_np" if _IS_MACOS else "renameat2")
    if call is None:
        # The C library of Alpine Linux has no such function.
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), second)
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE) != 0:
        # Loaded with the function.
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), second)


def clone(source: int, path: str) -> bool:
    """Make `path`, which does not exist, a clone of an open file, with its attributes; return
    whether the file system could.

    Only APFS can. The clone belongs to this user.
    """
    call = _find_function("fclonefileat")
    return call is not None and call(source, _AT_FDCWD, os.fsencode(path), _CLONE_NOOWNERCOPY) == 0


@cache
def _find_function(name: str) -> Callable[..., int] | None:
    """Return a function of the C library that Python does not offer; None if it has none of this
    name."""
    # It takes milliseconds, which commands that read need not spend.
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), name, None)


def open_to_change(path: str, flags: int = 0) -> int:
    """Open the regular file of this name for reading and writing, without following a link or
    waiting for a FIFO. Raises OSError."""
    fd = os.open(path, os.O_RDWR | NO_WAIT | NO_FOLLOW | flags)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    close(fd)
    raise OSError(errno.EINVAL, "not a regular file", path)


def lock(fd: int, name: str, work: str) -> None:
    """Take the exclusive lock of a file.

    Raises ChangedError with the `work` of the process that has the lock, and OSError if the file
    system does not support locks on this descriptor.
    """
    try:
        lock_exclusively(fd)
    except BlockingIOError:
        raise ChangedError(
            f"another process is {work} this file",
            file=name,
            hint="wait until it has finished, and run the command again",
        ) from None


def is_locked(fd: int) -> bool:
    """Return whether another process has the exclusive lock; False if the system or the file system
    has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            unlock(fd)
    except BlockingIOError:
        return True
    except OSError:
        return False
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


def reason_of(error: OSError | ValueError) -> str:
    """Return the system's text for an error, without number and path; a ValueError is that of a
    name with a null byte."""
    if isinstance(error, ValueError):
        return f"no file can have this name ({error})"
    return (error.strerror or type(error).__name__).lower()


def close(fd: int) -> None:
    """Close a descriptor and ignore errors: it was only read from, or `fsync` has already written
    its bytes to disk."""
    with suppress(OSError):
        os.close(fd)


_GROUPS = "/proc/self/cgroup"
_USUAL_BYTES = 8 << 30
"""Memory of a machine whose system, such as Windows, does not report it by `sysconf`."""
_UNIFIED = "/sys/fs/cgroup"
_OLD = "/sys/fs/cgroup/memory"


def memory_bytes() -> int:
    """Return the memory that this process may use: that of the machine, or the limit of its control
    group (cgroup v1 or v2)."""
    return min([_machine_bytes(), *_limits()])


def _machine_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return _USUAL_BYTES


def _limits() -> Iterator[int]:
    """Yield the limits of the control group and of all groups above it, as far as this process can
    read them."""
    for path in _limit_files():
        try:
            with open(path, encoding="ascii") as stream:
                text = stream.read(64).strip()
        except (OSError, ValueError):
            continue
        # v2 writes `max` if there is no limit.
        if text.isdecimal() and int(text) > 0:
            yield int(text)


def _limit_files() -> Iterator[str]:
    try:
        with open(_GROUPS, encoding="utf-8", errors="surrogateescape") as stream:
            lines = stream.read(64 << 10).splitlines()
    except OSError:
        return
    for line in lines:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            root = _UNIFIED
            name = "memory.max"
        elif "memory" in controllers.split(","):
            root = _OLD
            name = "memory.limit_in_bytes"
        else:
            continue
        # In a container, the path may be the host's path: then the root is the group itself.
        group = path.strip("/")
        while True:
            yield os.path.join(root, group, name)
            if not group:
                break
            group = os.path.dirname(group)
