"""Errors of the operating system, in words."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a process that may not write there, as opposed to one that cannot."""


def reason_of(error: OSError) -> str:
    """The system's words for an error, without number and path."""
    return (error.strerror or type(error).__name__).lower()


def close(fd: int) -> None:
    """Close a descriptor that only read, or whose bytes `fsync` brought to the disk: an error of close(2) says nothing of these."""
    with suppress(OSError):
        os.close(fd)
