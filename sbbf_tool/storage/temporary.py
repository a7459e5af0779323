"""Temporary files beside the file that they are for: locked while their process lives, removed by a later command if it was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.storage.system_errors import FORBIDDEN, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

TEMPORARY_SUFFIX = ".sbbf-tmp"


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
            path = os.path.join(folder, name)
            with suppress(OSError):
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(path)
                finally:
                    os.close(fd)


def _stem(base: str) -> str:
    # A file name may have 255 bytes, and the target's own may need them all. The dot hides the file from Hadoop and Spark.
    return f".{os.fsencode(base)[:200].decode(errors='ignore')}."


@contextmanager
def temporary_file(folder: str, base: str) -> Iterator[tuple[str, int]]:
    """A new locked file beside the file `base` of `folder`, gone afterwards unless it was renamed.

    What dead processes left of its like goes first.
    """
    sweep(os.path.join(folder, base))
    path = temporary_path(folder, base)
    # From the moment there may be a file, whatever ends us takes it away.
    try:
        try:
            fd = open_locked(path)
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


def open_locked(path: str, mode: int = 0o600) -> int:
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
