"""Text for errors of the operating system."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors of a process without permission to write, as opposed to one that cannot write."""


def reason_of(error: OSError) -> str:
    """Return the system's text for an error, without number and path."""
    return (error.strerror or type(error).__name__).lower()


def close(fd: int) -> None:
    """Close a descriptor that only read, or whose bytes `fsync` wrote to disk: an error of close(2) does not concern these bytes."""
    with suppress(OSError):
        os.close(fd)
