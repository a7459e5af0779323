"""The times of a listed file as a part of its version: whether another change would show in them.

A file that is changed twice within the unit in which its file system counts has the same times
after both changes. The unit is a tick of the kernel on most file systems, a second on ext4 with
inodes of 128 bytes, ext3, HFS+ and many FUSE file systems, and two seconds on FAT; a server of NFS
has that of its own disk. Nothing states it, but times without a fraction show it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sbbf_tool.reports.rows import ListedFile

FINE_SECONDS, COARSE_SECONDS = 0.05, 2.0
"""Units in which file systems count, at most: ticks of the kernel, and seconds."""


def granularity_of(file: ListedFile) -> float:
    """Return the time in seconds after which a change of a file gives it other times; 0 if its
    version does not depend on times.

    Only the change time (ctime) counts if it has a fraction: every change sets it. A time without a
    fraction is coarse, and so is the time of the last modification alone: some stores count in
    seconds.
    """
    if file.etag is not None or file.modified is None:
        return 0.0
    is_fine = file.change_time is not None and not file.change_time.is_integer()
    return FINE_SECONDS if is_fine else COARSE_SECONDS


def shows_changes(file: ListedFile) -> bool:
    """Return whether another change of the file would give it other times.

    A file whose time is not in the past may be changed now: its server has another clock.
    """
    granularity = granularity_of(file)
    if not granularity:
        return True
    times = [file.change_time]
    if granularity == COARSE_SECONDS:
        times.append(file.modified)
    last = max(seconds for seconds in times if seconds is not None)
    return time.time() - last > granularity


def wait_for_other_times(files: Iterable[ListedFile]) -> None:
    """Wait until a change of any of these files, which were just listed, gives it other times than
    those that were listed.

    No clock is read, since that of the file server may be ahead or behind.
    """
    time.sleep(max(map(granularity_of, files), default=0.0))
