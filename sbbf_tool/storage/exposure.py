"""Users who can change a file that is trusted, such as the state of a run."""

from __future__ import annotations

import os
import stat

from sbbf_tool.storage.system_calls import HAS_USERS, user_id


def find_writer(path: str | os.PathLike[str]) -> str | None:
    """Return the users other than this one and root who may change a file, such as `every user`; None if there are none."""
    if not HAS_USERS:
        return None
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    writers = [name for name, bits in (("its group", stat.S_IWGRP), ("every user", stat.S_IWOTH)) if status.st_mode & bits]
    if status.st_uid not in (user_id(), 0):
        writers.append(f"its owner (uid {status.st_uid})")
    return writers[-1] if stat.S_ISREG(status.st_mode) and writers else None
