"""Copies that share their blocks with the original: which file systems make them, and the clones of APFS, which have a call of their own.

On Linux, `copy_file_range` shares blocks on Btrfs, XFS and bcachefs; see `copying`. On macOS, `fclonefileat` makes a clone of a whole file,
under a name that is not used yet.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from sbbf_tool.storage import system_calls
from sbbf_tool.storage.system_calls import sync

_FICLONE = 0x40049409
_BLOCK = b"\0" * 4096
_AT_FDCWD = -2
_CLONE_NOOWNERCOPY = 2
"""Both as macOS defines them, in sys/fcntl.h and sys/clonefile.h."""


def has_reflinks(folder: str) -> bool:
    """Return whether the file system of a folder shares blocks; tries it with files that have no name, or with one that it removes."""
    from tempfile import TemporaryFile  # not at the top: it imports much that commands which read do not use

    try:
        with TemporaryFile(dir=folder) as source:
            source.write(_BLOCK)
            source.flush()
            sync(source.fileno())
            if _fclonefileat() is not None:
                return _clones_into(folder, source.fileno())
            with TemporaryFile(dir=folder) as copy:
                if system_calls.fcntl is None:
                    return False
                system_calls.fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
            return True
    except OSError:
        return False


def _clones_into(folder: str, source: int) -> bool:
    from tempfile import mkdtemp

    inner = mkdtemp(prefix=".sbbf-", dir=folder or ".")
    path = os.path.join(inner, "clone")
    try:
        return clone(source, path)
    finally:
        with suppress(OSError):
            os.unlink(path)
        os.rmdir(inner)


def clone(source: int, path: str) -> bool:
    """Make `path`, which does not exist, a clone of an open file, with its attributes; return whether the file system could.

    Only APFS can. The clone belongs to this user.
    """
    call = _fclonefileat()
    return call is not None and call(source, _AT_FDCWD, os.fsencode(path), _CLONE_NOOWNERCOPY) == 0


@cache
def _fclonefileat() -> Callable[[int, int, bytes, int], int] | None:
    if sys.platform != "darwin":
        return None
    import ctypes

    try:
        call = ctypes.CDLL(None).fclonefileat
    except (OSError, AttributeError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32]
    call.restype = ctypes.c_int
    return call
