"""Bytes of a file that is not written yet: a few in memory, more in a temporary file without a
name.

So memory holds a single filter, however many are built. The temporary file disappears when its
process ends for any reason; only its owner can read it.
"""

from __future__ import annotations

import errno
import os
from threading import Lock

from sbbf_tool.errors import RefusedError, WriteError
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.storage.leftovers import open_locked, temporary_path
from sbbf_tool.storage.source import Bytes
from sbbf_tool.storage.system_calls import FORBIDDEN, kind_of, read_all, reason_of

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_FREE_SPACE = "choose fewer columns or smaller filters, or free space"


class SpoolRange(Frozen):
    """An `Extent`: the `length` bytes of a spool that begin at `start`."""

    spool: Spool
    start: int
    length: int

    def __len__(self) -> int:
        return self.length

    def read(self, offset: int, length: int) -> bytes:
        return self.spool.read(self.start + offset, length)


class Spool:
    """Bytes that several threads append and read again. Use as a context manager.

    The temporary file is in the folder of the file `beside`. `copies` is how many times the bytes
    are on that disk in the end: 2 if they are copied from the spool to a file on it. If `keeps` is
    False, the bytes are only counted and cannot be read.
    """

    MEMORY_BYTES = 8 << 20
    """Maximum number of bytes in memory."""

    def __init__(self, beside: str, *, copies: int = 1, keeps: bool = True) -> None:
        self._beside = beside
        self._copies = copies
        self._keeps = keeps
        self._buffer = bytearray()
        self._fd: int | None = None
        self._lock = Lock()
        self.size = 0

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.clear()

    @property
    def _folder(self) -> str:
        return os.path.dirname(os.path.realpath(self._beside))

    def clear(self) -> None:
        """Discard all bytes."""
        with self._lock:
            fd = self._fd
            self._fd = None
            self._buffer = bytearray()
            self.size = 0
            if fd is not None:
                os.close(fd)

    def ensure_room(self, num_bytes: int) -> None:
        """Raise RefusedError if the disk reports too little free space for this many bytes; a few
        bytes are not checked."""
        if num_bytes <= self.MEMORY_BYTES:
            return
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return
        free_bytes = disk.f_bavail * disk.f_frsize
        # Some network file systems do not report their size.
        if disk.f_blocks and free_bytes < num_bytes * self._copies:
            note = ""
            if self._copies > 1:
                note = ", which are on disk twice while the file is written"
            raise RefusedError(
                f"the filters take {num_bytes:,} bytes{note}, but {self._folder} has only "
                f"{free_bytes:,} bytes free",
                hint=_FREE_SPACE,
            )

    def append(self, data: Bytes) -> SpoolRange:
        """Append these bytes; return their range. Raises WriteError, and RefusedError without
        permission."""
        length = len(data)
        with self._lock:
            start = self.size
            self.size += length
            if not self._keeps:
                return SpoolRange(self, start, length)
            if self._fd is None and self.size <= self.MEMORY_BYTES:
                self._buffer += data
                return SpoolRange(self, start, length)
            if self._fd is None:
                self._fd = self._open()
                self._write(self._fd, 0, self._buffer)
                self._buffer = bytearray()
            fd = self._fd
        self._write(fd, start, data)
        return SpoolRange(self, start, length)

    def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` appended bytes from `offset`."""
        assert self._keeps
        with self._lock:
            fd = self._fd
            if fd is None:
                return bytes(self._buffer[offset : offset + length])
        data = read_all(fd, length, offset)
        if len(data) < length:
            raise WriteError("a temporary file became shorter", file=self._folder)
        return data

    def _open(self) -> int:
        try:
            if hasattr(os, "O_TMPFILE"):
                try:
                    return os.open(self._folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
                except OSError as error:
                    if error.errno in (*FORBIDDEN, *_NO_SPACE):
                        raise
            # The file system or operating system does not support files without a name.
            path = temporary_path(os.path.realpath(self._beside))
            fd = open_locked(path)
            os.unlink(path)
            return fd
        except OSError as error:
            message = f"cannot create a temporary file: {reason_of(error)}"
            raise kind_of(error)(message, file=self._folder, hint=ELSEWHERE) from error

    def _write(self, fd: int, position: int, data: Bytes) -> None:
        view = memoryview(data).cast("B")
        try:
            while view:
                count = os.pwrite(fd, view, position)
                view = view[count:]
                position += count
        except OSError as error:
            hint = _FREE_SPACE if error.errno in _NO_SPACE else None
            raise WriteError(
                f"the temporary file cannot be written: {reason_of(error)}",
                file=self._folder,
                hint=hint,
            ) from error
