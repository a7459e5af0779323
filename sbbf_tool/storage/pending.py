"""The publication of many small files together, because each `fsync` waits for the disk.

    write, verify    each new file, as `local.replace` does; the disk begins to write it
    fsync            all of them: most of their bytes are on the disk by now
    rename           all of them, if their old files are unchanged
    fsync            each folder, once

As for a single file, no file is renamed before its own `fsync`. So after a crash each name refers to a complete file, old or new. The old
files stay locked until the new ones have their names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sbbf_tool.errors import SbbfError
from sbbf_tool.storage.copying import begin_writeback
from sbbf_tool.storage.system_calls import sync
from sbbf_tool.storage.system_errors import reason_of
from sbbf_tool.storage.temporary import sync_folder


@dataclass(frozen=True, slots=True)
class PendingFile:
    """A new file that is written and verified, and still has its temporary name."""

    target: str
    """The path without links."""
    fd: int
    identity: tuple[int, int]
    """Device and inode of the old file."""
    rename: Callable[[], None]
    """Function that gives the file its name, unless the old file has changed. Raises SbbfError."""
    resources: ExitStack
    """What to release afterwards: the lock on the old file, and the temporary file, which is removed unless it was renamed."""


class PendingFiles:
    """New files that are published together. `local.replace` adds them while the block of `collect` runs."""

    MOST_FILES = 64
    MOST_BYTES = 64 << 20
    MOST_SECONDS = 1.0
    """Time after which files are published, so that slow work on many files progresses and locks are short."""
    LARGEST_BYTES = 4 << 20
    """Size of a file from which it is published by itself: copying it takes longer than waiting for the disk."""

    def __init__(self) -> None:
        self._files: dict[tuple[int, int], PendingFile] = {}
        self._num_bytes = 0
        self._since = 0.0
        self._latest: list[PendingFile] = []
        self.published_targets: set[str] = set()
        """Targets that the last `publish` has replaced, also if it was interrupted."""

    def __len__(self) -> int:
        return len(self._files)

    @property
    def is_full(self) -> bool:
        is_old = len(self) > 0 and time.monotonic() - self._since >= self.MOST_SECONDS
        return is_old or len(self) >= self.MOST_FILES or self._num_bytes >= self.MOST_BYTES

    @contextmanager
    def collect(self) -> Iterator[list[PendingFile]]:
        """Let `local.replace` add its files while the block runs; yield a list that receives them."""
        self._latest = []
        token = _collector.set(self)
        try:
            yield self._latest
        finally:
            _collector.reset(token)

    def has(self, path: str) -> bool:
        """Return whether a file by this name, old as it still is, is to be replaced."""
        try:
            return bool(self._files) and identity_of(os.stat(path)) in self._files
        except (OSError, ValueError):
            return False

    def add(self, file: PendingFile, num_bytes: int) -> None:
        begin_writeback(file.fd, 0, num_bytes)
        if not self._files:
            self._since = time.monotonic()
        self._files[file.identity] = file
        self._latest.append(file)
        self._num_bytes += num_bytes

    def publish(self) -> tuple[set[str], dict[str, str]]:
        """Publish the files; return the targets of those that stay as they were, and warnings by the targets of others.

        A file stays as it was if it changed in the meantime or the disk reported an error: it must be worked on again.
        """
        files, self._files, self._num_bytes = self._files, {}, 0
        self.published_targets = set()
        failed: set[str] = set()
        warnings: dict[str, str] = {}

        def rename(file: PendingFile) -> None:
            file.rename()
            self.published_targets.add(file.target)

        with ExitStack() as stack:
            for file in files.values():
                stack.push(file.resources)
            for step in (lambda file: sync(file.fd), rename):
                for file in files.values():
                    if file.target not in failed:
                        try:
                            step(file)
                        except (OSError, SbbfError):
                            failed.add(file.target)
            folders: dict[str, list[str]] = {}
            for file in files.values():
                if file.target not in failed:
                    folders.setdefault(os.path.dirname(file.target), []).append(file.target)
            for folder, targets in folders.items():
                try:
                    sync_folder(folder)
                except OSError as error:
                    warnings |= {target: describe_loss(target, error) for target in targets}
        return failed, warnings

    def discard(self) -> None:
        """Remove the files that are not published."""
        files, self._files, self._num_bytes = self._files, {}, 0
        with ExitStack() as stack:
            for file in files.values():
                stack.push(file.resources)


_collector: ContextVar[PendingFiles | None] = ContextVar("collector", default=None)


def collector_of(status: os.stat_result) -> PendingFiles | None:
    """Return what publishes the new version of a file with this status, together with others; None if it is published by itself."""
    collector = _collector.get()
    # Another name of the same file may be next; the lock would refuse it.
    is_small = status.st_size < PendingFiles.LARGEST_BYTES and status.st_nlink == 1
    return collector if collector is not None and is_small else None


def describe_loss(target: str, error: OSError) -> str:
    """Return the warning about a new file whose folder could not be synced."""
    return f"{target}: the new file is in place, but may not survive a power failure: {reason_of(error)}"


def identity_of(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
