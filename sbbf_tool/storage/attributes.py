"""Owner, mode and extended attributes of local files."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def carry_over(name: str, source: int, status: os.stat_result, fd: int) -> list[str]:
    """Owner, mode and extended attributes of the source onto `fd`; what cannot be carried is answered in words."""
    lost = []
    if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(fd, status.st_uid, status.st_gid)
        except OSError:
            lost.append(f"owner {status.st_uid}:{status.st_gid}")
            with suppress(OSError):
                # A member of the file's group can keep at least that.
                os.fchown(fd, -1, status.st_gid)
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    if hasattr(os, "listxattr"):
        with suppress(OSError):
            for attribute in os.listxattr(source):
                try:
                    os.setxattr(fd, attribute, os.getxattr(source, attribute))
                except OSError:
                    lost.append(f"attribute {attribute}")
    return [f"{name}: could not be carried over: {', '.join(lost)}"] if lost else []


def set_usual_mode(fd: int) -> list[str]:
    """What the file would have if it had been opened for writing by any other program."""
    mask = os.umask(0)
    os.umask(mask)
    os.fchmod(fd, 0o666 & ~mask)
    return []
