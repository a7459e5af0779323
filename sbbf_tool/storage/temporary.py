"""Temporary files in the folder of their target: locked while their process lives; if it was killed, a later command removes them."""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.reflinks import clone
from sbbf_tool.storage.system_calls import CAN_CHANGE, NO_FOLLOW, NO_WAIT, READ, lock_exclusively, sync
from sbbf_tool.storage.system_errors import FORBIDDEN, close, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TEMPORARY_SUFFIX = ".sbbf-tmp"
PRIVATE = 0o600
USUAL = 0o666
"""Mode of new files, before the umask applies."""
_NAME = re.compile(r"(\..*\.)[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX), re.DOTALL)
"""Name of a temporary file. The first group is the result of `_stem` for the target's name."""
_listings: ContextVar[dict[str, list[str]] | None] = ContextVar("listings", default=None)
"""Temporary files per folder, as the current run has listed them; None outside a run."""


@contextmanager
def share_listings(listings: dict[str, list[str]] | None = None) -> Iterator[None]:
    """Let `sweep` list each folder once while the block runs, however many of its files change.

    Files that other processes leave behind during this run are removed by the next run. A run of several blocks passes the same `listings`
    to each, initially empty.
    """
    before = _listings.get()
    _listings.set({} if listings is None else listings)
    try:
        yield
    finally:
        _listings.set(before)


def sweep(target: str) -> None:
    """Remove temporary files that killed processes left beside `target`; files of living processes are locked and stay."""
    _sweep(*os.path.split(os.path.realpath(target)))


def _sweep(folder: str, base: str) -> None:
    listings = _listings.get()
    names = None if listings is None else listings.get(folder)
    if names is None:
        names = _temporary_names(folder)
        if listings is not None:
            listings[folder] = names
    if not names:
        return
    stem = _stem(base)
    _remove_dead(folder, (name for name in names if (match := _NAME.fullmatch(name)) and match[1] == stem))


def sweep_folder(folder: str) -> None:
    """Remove the temporary files of killed processes for all targets in the folder."""
    _remove_dead(folder, _temporary_names(folder))


def _temporary_names(folder: str) -> list[str]:
    try:
        # Unlike `listdir`, this never has all names of a large folder in memory.
        with os.scandir(folder or ".") as entries:
            return [entry.name for entry in entries if entry.name.endswith(TEMPORARY_SUFFIX) and _NAME.fullmatch(entry.name)]
    except OSError:
        return []


def _remove_dead(folder: str, names: Iterable[str]) -> None:
    if not CAN_CHANGE:
        return
    for name in names:
        with suppress(OSError):
            _remove_if_dead(os.path.join(folder, name))


def _remove_if_dead(path: str) -> None:
    """Remove a temporary file that no process has locked. Raises OSError.

    In a shared folder, other users may give such a name to anything, so links are not followed and FIFOs and devices are not opened.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    fd = os.open(path, os.O_RDWR | NO_WAIT | NO_FOLLOW)
    try:
        lock_exclusively(fd)
        if os.path.samestat(os.lstat(path), os.fstat(fd)):
            os.unlink(path)
    finally:
        os.close(fd)


def _stem(base: str) -> str:
    # A file name may have at most 255 bytes, and the target's name may use them all. The dot hides the file from Hadoop and Spark.
    return f".{os.fsencode(base)[:200].decode(errors='ignore')}."


@contextmanager
def temporary_file(folder: str, base: str, mode: int = PRIVATE, original: int | None = None) -> Iterator[tuple[str, int]]:
    """Create a locked file beside the file `base` in `folder`; yield its path and descriptor. Remove it unless it was renamed.

    The file is empty, or a clone of the open file `original` where the system makes clones of files.

    No part of `folder` is a link. The umask, or the folder's default access list, reduces `mode` as for any new file. Temporary files of
    killed processes are removed first. Raises RefusedError without permission to create a file there, and WriteError if creating it fails.
    """
    _sweep(folder, base)
    path = temporary_path(folder, base)
    # The file is removed however this block ends, even if creating it is interrupted.
    try:
        try:
            fd = None if original is None else _open_clone(original, path, mode)
            if fd is None:
                fd = open_locked(path, mode)
        except OSError as error:
            if error.errno in FORBIDDEN:
                message = f"cannot create a file beside the target: {reason_of(error)}"
                raise RefusedError(message, file=os.path.join(folder, base), hint=ELSEWHERE) from error
            raise WriteError(reason_of(error), file=os.path.join(folder, base), hint=ELSEWHERE) from error
        try:
            yield path, fd
        finally:
            close(fd)
    finally:
        # Usually the file no longer exists. If it cannot be removed, the next command tries again.
        with suppress(OSError):
            os.unlink(path)


def temporary_path(folder: str, base: str) -> str:
    """Return an unused path beside the file `base` in `folder` that `sweep` recognizes."""
    return os.path.join(folder, f"{_stem(base)}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")


def open_locked(path: str, mode: int = PRIVATE) -> int:
    """Create a file, locked so that no other process removes it; return its descriptor. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with suppress(OSError):
        lock_exclusively(fd)
    if os.fstat(fd).st_nlink:
        return fd
    # Another process removed the file before it was locked.
    os.close(fd)
    return open_locked(path, mode)


def _open_clone(original: int, path: str, mode: int) -> int | None:
    """Return the descriptor of a new clone at `path`, locked; None, and no file, if it cannot be written. Raises OSError."""
    if not clone(original, path):
        return None
    try:
        fd = os.open(path, os.O_RDWR | NO_WAIT | NO_FOLLOW)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return None
    try:
        os.fchmod(fd, mode)
        with suppress(OSError):
            lock_exclusively(fd)
        if os.fstat(fd).st_nlink:
            return fd
    except BaseException:
        os.close(fd)
        raise
    # Another process removed the file before it was locked.
    os.close(fd)
    return None


def write_all(fd: int, data: bytes | bytearray | memoryview) -> None:
    view = memoryview(data).cast("B")
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: str) -> None:
    fd = os.open(folder or ".", READ)
    try:
        sync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        close(fd)
