"""Text for errors of the operating system."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Errors that mean that the process has no permission to write; other errors mean that the write failed."""


def reason_of(error: OSError) -> str:
    """Return the system's text for an error, without number and path."""
    return (error.strerror or type(error).__name__).lower()


def close(fd: int) -> None:
    """Close a descriptor and ignore errors: it was only read from, or `fsync` has already written its bytes to disk."""
    with suppress(OSError):
        os.close(fd)
