"""Temporary files beside the file that they are for: locked while their process lives, removed by a later command if it was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.system_errors import FORBIDDEN, close, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEMPORARY_SUFFIX = ".sbbf-tmp"
PRIVATE = 0o600
USUAL = 0o666
"""Modes of new files, of which the umask takes its part."""
_NAME = re.compile(r"(\..*\.)[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX), re.DOTALL)
"""The name of a temporary file, and in it what `_stem` makes of its target's."""
_listed: ContextVar[dict[str, list[str]] | None] = ContextVar("listed", default=None)
"""The temporary files of each folder, as the run in progress has listed them; None outside of one."""


@contextmanager
def listing_once(listed: dict[str, list[str]] | None = None) -> Iterator[None]:
    """Let `sweep` list each folder once while the block runs, however many files of a folder it changes.

    What other processes leave behind meanwhile is removed by the next run. A run of several blocks passes the same `listed`, which is
    empty at first.
    """
    before = _listed.get()
    _listed.set({} if listed is None else listed)
    try:
        yield
    finally:
        _listed.set(before)


def sweep(target: str) -> None:
    """Remove temporary files that a killed process left beside `target`; those of a living one are locked, and stay."""
    folder, base = os.path.split(os.path.realpath(target))
    listed = _listed.get()
    names = None if listed is None else listed.get(folder)
    if names is None:
        names = _temporary_names(folder)
        if listed is not None:
            listed[folder] = names
    stem = _stem(base)
    _remove_dead(folder, (name for name in names if (ours := _NAME.fullmatch(name)) and ours[1] == stem))


def sweep_folder(folder: str) -> None:
    """As `sweep`, of temporary files beside whatever target."""
    _remove_dead(folder, _temporary_names(folder))


def _temporary_names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder or ".") if name.endswith(TEMPORARY_SUFFIX) and _NAME.fullmatch(name)]
    except OSError:
        return []


def _remove_dead(folder: str, names: Iterable[str]) -> None:
    for name in names:
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
            if error.errno in FORBIDDEN:
                message = f"cannot create a file beside it: {reason_of(error)}"
                raise RefusedError(message, file=os.path.join(folder, base), hint=ELSEWHERE) from error
            raise WriteError(reason_of(error), file=os.path.join(folder, base), hint=ELSEWHERE) from error
        try:
            yield path, fd
        finally:
            close(fd)
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
        close(fd)
