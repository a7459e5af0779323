"""What commands leave in a folder when they are killed: temporary files and journals, under names
that a later command recognizes and removes.

    .NAME.123456789abc.sbbf-tmp   a new version of NAME, or another file of the write protocol
    .NAME.sbbf-journal            what an append to NAME would undo

A file of a living process is locked. In a shared folder another user may give such a name to
anything.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import suppress
from contextvars import ContextVar

from sbbf_tool.storage.system_calls import (
    CAN_CHANGE,
    NO_FOLLOW,
    READ,
    clone,
    close,
    is_locked,
    is_open_file,
    leads_to,
    lock_exclusively,
    open_to_change,
    user_id,
)

TEMPORARY_SUFFIX = ".sbbf-tmp"
JOURNAL_SUFFIX = ".sbbf-journal"
MOST_JOURNAL_BYTES = 4 << 10
PRIVATE = 0o600
_NAME = r"(?s)(\..*\.)[0-9a-f]{12}" + re.escape(TEMPORARY_SUFFIX)
"""Name of a temporary file. The first group is the result of `_stem` for the target's name."""
_listings: ContextVar[dict[str, list[str]] | None] = ContextVar("listings", default=None)
"""Temporary files per folder, as the current run has listed them; None outside a run."""


def temporary_path(path: str) -> str:
    """Return an unused path beside `path` that `sweep` recognizes."""
    folder, base = os.path.split(path)
    return os.path.join(folder, f"{_stem(base)}{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")


def open_locked(path: str, mode: int = PRIVATE, original: int | None = None) -> int:
    """Create a file, or a clone of an open one, locked so that no other process removes it; return
    its descriptor. Raises OSError."""
    is_clone = original is not None and clone(original, path)
    flags = NO_FOLLOW if is_clone else os.O_CREAT | os.O_EXCL
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, mode)
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


class share_listings:  # noqa: N801  a run enters it for each file, and a generator takes longer
    """Let `sweep` list each folder once while the block runs, however many of its files change.

    Files that other processes leave behind during this run are removed by the next run. A run of
    several blocks passes the same `listings` to each, initially empty.
    """

    __slots__ = ("_before", "_listings")

    def __init__(self, listings: dict[str, list[str]] | None = None) -> None:
        self._listings = {} if listings is None else listings

    def __enter__(self) -> None:
        self._before = _listings.get()
        _listings.set(self._listings)

    def __exit__(self, *exc_info: object) -> None:
        _listings.set(self._before)


def sweep(folder: str, base: str | None = None, *, is_locked_here: bool = False) -> None:
    """Remove the temporary files that killed processes left in a folder, those of its file `base`
    or of all, and the journals of files that were deleted.

    Files of living processes are locked and stay, and so do all those of a target that another
    process has locked: between two exchanges of names, one of them is the file of a third.
    `is_locked_here` is whether this process has that lock. In a shared folder, other users may give
    such a name to anything, so links are not followed and FIFOs and devices are not opened.
    """
    names = _list_leftovers(folder, is_shared=base is not None)
    if not CAN_CHANGE:
        return
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith(".") and name.endswith(JOURNAL_SUFFIX):
            _sweep_journal(path)
        match = re.fullmatch(_NAME, name)
        if match is None or (base is not None and match[1] != _stem(base)):
            continue
        target = None
        if not is_locked_here:
            target = os.path.join(folder, base or match[1][1:-1])
        with suppress(OSError):
            _sweep_file(path, target)


def _list_leftovers(folder: str, *, is_shared: bool) -> list[str]:
    """Return the names in a folder of the kinds that killed processes leave; as the run has listed
    them before if they are shared."""
    listings = _listings.get() if is_shared else None
    if listings is not None and folder in listings:
        return listings[folder]
    names = []
    # Unlike `listdir`, this never has all names of a large folder in memory.
    with suppress(OSError), os.scandir(folder or ".") as entries:
        suffixes = (TEMPORARY_SUFFIX, JOURNAL_SUFFIX)
        names = [entry.name for entry in entries if entry.name.endswith(suffixes)]
    if listings is not None:
        listings[folder] = names
    return names


def _sweep_file(path: str, target: str | None) -> None:
    """Remove a temporary file unless a process has it locked, or another process has locked its
    `target`. Raises OSError."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return
    fd = open_to_change(path)
    try:
        lock_exclusively(fd)
        is_changing = target is not None and _is_other_locked(target, fd)
        if leads_to(path, fd) and not is_changing:
            os.unlink(path)
    finally:
        close(fd)


def _sweep_journal(path: str) -> None:
    """Remove the journal of an append if this user wrote it and its file does not exist any more:
    there is nothing to undo."""
    folder, name = os.path.split(path)
    target = os.path.join(folder, name[1:].removesuffix(JOURNAL_SUFFIX))
    with suppress(OSError):
        status = os.lstat(path)
        is_ours = (
            stat.S_ISREG(status.st_mode)
            and status.st_uid == user_id()
            and status.st_size <= MOST_JOURNAL_BYTES
        )
        if is_ours and not os.path.lexists(target):
            os.unlink(path)


def _is_other_locked(path: str, fd: int = -1) -> bool:
    """Return whether another process has the lock on a file that is not the one open as `fd`; False
    if there is no such file."""
    try:
        other = os.open(path, READ | NO_FOLLOW)
    except OSError:
        return False
    try:
        return not is_open_file(os.fstat(other), fd) and is_locked(other)
    finally:
        close(other)


def _stem(base: str) -> str:
    # A file name may have at most 255 bytes, and the target's name may use them all. The dot hides
    # the file from Hadoop and Spark.
    return f".{os.fsencode(base)[:200].decode(errors='ignore')}."


def left_names(real: str, status: os.stat_result) -> list[str]:
    """Return the temporary names of a file that was killed between `link` and `unlink`, which gave
    it the name `real`; none if its process lives."""
    if status.st_nlink < 2:
        return []
    folder, base = os.path.split(real)
    left = []
    with suppress(OSError), os.scandir(folder or ".") as entries:
        for entry in entries:
            match = re.fullmatch(_NAME, entry.name)
            is_temporary = match is not None and match[1] == _stem(base)
            if is_temporary and os.path.samestat(entry.stat(follow_symlinks=False), status):
                left.append(entry.path)
    return left if left and not _is_other_locked(real) else []


def remove_left(real: str) -> None:
    """Remove the file that a killed command gave a new name, so that the command can be repeated.
    Raises OSError."""
    with suppress(FileNotFoundError):
        left = left_names(real, os.lstat(real))
        for path in [real, *left] if left else []:
            os.unlink(path)
