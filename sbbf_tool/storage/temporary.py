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
from sbbf_tool.storage.system_calls import (
    CAN_CHANGE,
    FORBIDDEN,
    NO_FOLLOW,
    READ,
    clone,
    close,
    leads_to,
    lock_exclusively,
    open_to_change,
    reason_of,
    sync,
)

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
    _remove_dead(folder, (name for name in names if (match := _NAME.fullmatch(name)) and match[1] == _stem(base)))


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
    """Remove those temporary files that no process has locked.

    In a shared folder, other users may give such a name to anything, so links are not followed and FIFOs and devices are not opened.
    """
    for path in (os.path.join(folder, name) for name in names if CAN_CHANGE):
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(path).st_mode):
                fd = open_to_change(path)
                try:
                    lock_exclusively(fd)
                    if leads_to(path, fd):
                        os.unlink(path)
                finally:
                    close(fd)


def _stem(base: str) -> str:
    # A file name may have at most 255 bytes, and the target's name may use them all. The dot hides the file from Hadoop and Spark.
    return f".{os.fsencode(base)[:200].decode(errors='ignore')}."


@contextmanager
def temporary_file(real: str, target: str, mode: int = PRIVATE, original: int | None = None) -> Iterator[tuple[str, int]]:
    """Create a locked file beside the path `real`, which has no links; yield its path and descriptor. Remove it unless it was renamed.

    The file is empty, or a clone of the open file `original` where the system makes clones of files. The umask, or the folder's default
    access list, reduces `mode` as for any new file. Temporary files of killed processes are removed first. Raises RefusedError about
    `target` without permission to create a file there, and WriteError if creating it fails.
    """
    _sweep(*os.path.split(real))
    path = temporary_path(real)
    # The file is removed however this block ends, even if creating it is interrupted.
    try:
        try:
            fd = open_locked(path, mode, original)
        except OSError as error:
            raise creation_error(error, target) from error
        try:
            yield path, fd
        finally:
            close(fd)
    finally:
        # Usually the file no longer exists. If it cannot be removed, the next command tries again.
        with suppress(OSError):
            os.unlink(path)


def creation_error(error: OSError, target: str) -> RefusedError | WriteError:
    if error.errno in FORBIDDEN:
        return RefusedError(f"cannot create a file beside the target: {reason_of(error)}", file=target, hint=ELSEWHERE)
    return WriteError(reason_of(error), file=target, hint=ELSEWHERE)


def temporary_path(path: str) -> str:
    """Return an unused path beside `path` that `sweep` recognizes."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f"{_stem(base)}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")


def open_locked(path: str, mode: int = PRIVATE, original: int | None = None) -> int:
    """Create a file, or a clone of an open one, locked so that no other process removes it; return its descriptor. Raises OSError."""
    is_clone = original is not None and clone(original, path)
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (NO_FOLLOW if is_clone else os.O_CREAT | os.O_EXCL), mode)
    except PermissionError:
        if not is_clone:
            raise
        # The clone has the mode of its original, which its owner may not write.
        os.unlink(path)
        return open_locked(path, mode)
    if is_clone:
        os.fchmod(fd, mode)
    with suppress(OSError):
        lock_exclusively(fd)
    if os.fstat(fd).st_nlink:
        return fd
    # Another process removed the file before it was locked.
    os.close(fd)
    return open_locked(path, mode)


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
