"""Copies of the first bytes of a local file, made by the kernel where it can: at once, or by a
thread while the filters are built.

A thread that copies a large file takes little time of the interpreter, and its bytes are on their
way to the disk before the filters are built: the `fsync` of the new file then has little left to
wait for. On Btrfs, XFS and bcachefs, `copy_file_range` shares blocks with the original; on APFS,
the temporary file is a clone from the start.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Self

from sbbf_tool.storage.system_calls import clone, fcntl, sync, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sbbf_tool.storage.source import Source

_COPY_BYTES = 16 << 20
_READ_BYTES = 4 << 20
_BLOCK_BYTES = 512
"""Unit of `st_blocks` in bytes, whatever the file system's block size is."""
_POLL_SECONDS = 0.05
_BLOCK = b"\0" * 4096
_FICLONE = 0x40049409
"""Request of `ioctl`, from linux/fs.h."""
_NOT_BY_KERNEL = (errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM, errno.EIO)


class BegunCopy:
    """The copy of the first `count` bytes of a source that a thread makes in a temporary file for
    `target`, which has no links.

    It stops at the end of the block.
    """

    MIN_BYTES = 32 << 20
    """Size from which a copy is worth a thread."""

    def __init__(self, source: Source, count: int, target: str, path: str, fd: int) -> None:
        self.count = count
        self.target = target
        self.path = path
        self.fd = fd
        self._source = source
        self._is_stopped = False
        self._is_finished = Event()
        """Unlike `Thread.join`, the event can be waited for again after an interrupt."""
        self._error: BaseException | None = None
        self._thread = Thread(target=self._copy, name="sbbf-copy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_stopped = True
        self._is_finished.wait()
        self._thread.join()

    def finish(self) -> int:
        """Wait for the thread; return the number of bytes that it copied. Raises OSError."""
        while not self._is_finished.wait(_POLL_SECONDS):
            # The main thread handles a signal only if it does not wait for long.
            pass
        if self._error is not None:
            raise self._error
        return self.count

    def _copy(self) -> None:
        try:
            for start, end in _copied_ranges(self._source, self.fd, 0, self.count):
                if self._is_stopped:
                    return
                if hasattr(os, "posix_fadvise"):
                    with suppress(OSError):
                        # Linux starts to write dirty pages that are not needed, and drops only
                        # clean ones: these are not clean yet.
                        os.posix_fadvise(self.fd, start, end - start, os.POSIX_FADV_DONTNEED)
        except BaseException as error:
            # Raised again by `finish`, in the thread that waits for it.
            self._error = error
        finally:
            self._is_finished.set()


def copy(source: Source, fd: int, count: int, *, start: int = 0) -> None:
    """Copy the bytes of the source from `start` to `count` to the same offsets of `fd`, and
    position `fd` after them.

    Holes of a sparse local file stay holes. A clone of the source has its bytes already, and only
    loses those after `count`.
    """
    for _ in _copied_ranges(source, fd, start, count):
        pass
    if os.fstat(fd).st_size != count:
        os.ftruncate(fd, count)
    os.lseek(fd, count, os.SEEK_SET)


def _copied_ranges(source: Source, fd: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Copy the ranges that hold data, and yield start and end of each part that is copied. Of a
    clone, there are none."""
    if os.fstat(fd).st_size == source.size:
        return
    by_kernel = hasattr(os, "copy_file_range")
    for range_start, range_end in _extents(source, start, end):
        position = range_start
        while position < range_end:
            remaining = range_end - position
            done = 0
            if by_kernel:
                done = _copy_by_kernel(source, fd, position, min(_COPY_BYTES, remaining))
            if not done:
                # Some cluster file systems fail, others return 0. Copy the rest with read and
                # write, which report real errors.
                by_kernel = False
                data = source.read(position, min(_READ_BYTES, remaining))
                os.lseek(fd, position, os.SEEK_SET)
                write_all(fd, data)
                done = len(data)
            yield position, position + done
            position += done


def _copy_by_kernel(source: Source, fd: int, position: int, length: int) -> int:
    """Copy in the kernel, as a reflink if the file system supports it; return the number of copied
    bytes, 0 if it cannot."""
    source_fd = source.descriptor
    if source_fd is None:
        return 0
    while True:
        try:
            return os.copy_file_range(source_fd, fd, length, position, position)
        except InterruptedError:
            # Unlike for read and write, Python does not repeat the call.
            continue
        except OSError as error:
            if error.errno not in _NOT_BY_KERNEL:
                raise
            return 0


def _extents(source: Source, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the ranges between `start` and `end` that hold data."""
    fd = source.descriptor
    if fd is None or not _may_have_holes(fd, source.size):
        yield start, end
        return
    position = start
    while position < end:
        try:
            data_start = os.lseek(fd, position, os.SEEK_DATA)
            data_end = os.lseek(fd, data_start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                # Only a hole remains.
                return
            data_start = position
            data_end = end
        if data_end <= data_start:
            # Another process is writing the file, or the file system reports holes without an end:
            # copy the rest as data.
            data_end = end
        if data_start >= end:
            return
        yield data_start, min(data_end, end)
        position = data_end


def _may_have_holes(fd: int, size: int) -> bool:
    # A file whose blocks take up as much space as its size has no holes.
    return os.fstat(fd).st_blocks * _BLOCK_BYTES < size and hasattr(os, "SEEK_DATA")


def has_reflinks(folder: str) -> bool:
    """Return whether the file system of a folder shares blocks; tries it with files that have no
    name, or with one that it removes."""
    # Not at the top: it imports much that commands which read do not use.
    from tempfile import TemporaryDirectory, TemporaryFile

    try:
        with TemporaryFile(dir=folder) as source:
            source.write(_BLOCK)
            source.flush()
            sync(source.fileno())
            if sys.platform == "darwin":
                with TemporaryDirectory(prefix=".sbbf-", dir=folder) as inner:
                    return clone(source.fileno(), os.path.join(inner, "clone"))
            with TemporaryFile(dir=folder) as target:
                if fcntl is None:
                    return False
                fcntl.ioctl(target, _FICLONE, source.fileno())
                return True
    except OSError:
        return False
