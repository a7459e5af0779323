"""Which folders have journals of appends, so that a run over many files does not look for a journal of each."""

from __future__ import annotations

import os
import time
from collections import Counter

from sbbf_tool.storage.journal import JOURNAL_SUFFIX

_LEAST_AGE = 2.0
"""Seconds since the last change of a folder after which a later change has another time, on any file system."""

_FILES_WITHOUT_LISTING = 20
"""Files of a folder for which it is not listed, because it may have far more files than the run."""


class JournalFolders:
    """The names of the journals in each folder, and the time when they were read: a folder that changes is not relied on.

    Looking at a folder's time takes a tenth of the time of looking for a journal beside the file to which a path leads.
    """

    def __init__(self) -> None:
        self._folders: dict[str, tuple[int, frozenset[str]] | None] = {}
        self._num_files: Counter[str] = Counter()

    def may_have_journal(self, path: str) -> bool:
        """Return whether the file of a path may have a journal. False is certain."""
        folder, base = os.path.split(path)
        if folder not in self._folders:
            self._num_files[folder] += 1
            if self._num_files[folder] <= _FILES_WITHOUT_LISTING:
                return True
            self._folders[folder] = _read_folder(folder or os.curdir)
        state = self._folders[folder]
        if state is None:
            return True
        change_time, journals = state
        try:
            # A link leads to a file in another folder.
            return os.path.islink(path) or os.stat(folder or os.curdir).st_mtime_ns != change_time or f".{base}{JOURNAL_SUFFIX}" in journals
        except OSError:
            return True


def _read_folder(folder: str) -> tuple[int, frozenset[str]] | None:
    """Return the time of the last change of a folder and the names of its journals; None if they cannot be relied on."""
    try:
        before = os.stat(folder)
        names = frozenset(name for name in os.listdir(folder) if name.endswith(JOURNAL_SUFFIX))
        now = os.stat(folder)
    except OSError:
        return None
    # A change soon after the last one may leave the time as it is.
    is_at_rest = now.st_mtime_ns == before.st_mtime_ns and abs(time.time() - now.st_mtime) > _LEAST_AGE
    return (now.st_mtime_ns, names) if is_at_rest else None
