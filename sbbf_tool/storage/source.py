"""Bytes to read: the interface of all sources, local files, and a planned file that is read as if
it were already written.

`places.open_source` opens sources of two kinds, `LocalSource` and `ObjectSource`.
"""

from __future__ import annotations

import io
import os
import re
import stat
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol, Self

from sbbf_tool.errors import MissingError, UnreadableError
from sbbf_tool.extension import ensure_no_index
from sbbf_tool.storage.system_calls import READ, close, read_all, reason_of
from sbbf_tool.storage.threads import result_of, waiting

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pyarrow import NativeFile

Bytes = bytes | bytearray | memoryview

_BLOCK_BYTES = 4 << 20
_FIRST_WINDOW = 256 << 10
_LARGEST_WINDOW = 8 << 20


class Source(ABC):
    """A file open for ranged reads, pinned to one version while it is open. Use as a context
    manager."""

    name: str
    """The user's name for the file, without secrets."""
    size: int
    bytes_read: int = 0
    requests: int = 0
    """Requests sent to a server; 0 for a local file."""
    etag: str | None = None
    """Strong ETag of the open version of an object."""
    can_reopen: bool = True
    """Whether `name` is a path or URL: then the file can be changed, and files beside it can be
    read."""

    @property
    def descriptor(self) -> int | None:
        """The descriptor of an open local file; None for other sources."""
        return None

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`. Raises UnreadableError if the file is too
        short or has changed."""

    def read_up_to(self, offset: int, length: int) -> bytes:
        """Read `length` bytes from `offset`, or fewer at the end of the file."""
        return self.read(offset, max(0, min(length, self.size - offset)))

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:  # noqa: B027  local files need no prefetching
        """Announce ranges (offset and length) to read later: remote sources join near ranges and
        fetch them concurrently.

        Local files do nothing, because reads are cheap and the kernel reads ahead.
        """

    def open_arrow(self) -> NativeFile:
        """Open an independent pyarrow stream over the same version of the file."""
        import pyarrow

        return pyarrow.PythonFile(Stream(self), mode="r")

    def begin_read(self, offset: int, length: int) -> Future[bytes] | None:
        """Start to fetch a range in the background; None if there is nothing to wait for."""
        return None

    @abstractmethod
    def is_unchanged(self) -> bool:
        """Return whether the name still refers to the open version."""

    def close(self) -> None:  # noqa: B027  a planned file holds no resources of its own
        """Release the resources held for reading."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()


def ensure_within(source: Source, offset: int, length: int) -> None:
    """Raise UnreadableError if the range extends beyond the file."""
    if offset < 0 or length < 0 or offset + length > source.size:
        raise UnreadableError(
            f"bytes {offset:,} to {offset + length:,} are outside the file, which has "
            f"{source.size:,}",
            file=source.name,
        )


_TABLE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_FILE_SUFFIXES = ("parquet", "parq", "pq", "orc", "json", "jsonl", "csv", "txt", "toml")


def _hint_at_catalog(name: str) -> str | None:
    """Return how a table of a catalog is named, if a missing file has a name like one."""
    _, _, last = name.rpartition(".")
    if not _TABLE_NAME.fullmatch(name) or last in _FILE_SUFFIXES:
        return None
    return f"a table of a catalog is named CATALOG:{name}"


class LocalSource(Source):
    """A file open for ranged reads; `name` is the user's name for it. Use as a context manager."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.name = os.fsdecode(path)
        self._fd = -1
        try:
            # Without O_NONBLOCK, opening a FIFO would wait for a writer that never comes.
            self._fd = os.open(self.name, READ)
            self._stat = os.fstat(self._fd)
        except FileNotFoundError as error:
            self.close()
            hint = _hint_at_catalog(self.name)
            raise MissingError(reason_of(error), file=self.name, hint=hint) from error
        except (OSError, ValueError) as error:
            self.close()
            raise UnreadableError(reason_of(error), file=self.name) from error
        self._ensure_regular()
        self.size = self._stat.st_size

    def _ensure_regular(self) -> None:
        mode = self._stat.st_mode
        if stat.S_ISREG(mode):
            return
        self.close()
        if stat.S_ISDIR(mode):
            ensure_no_index(self.name)
            raise UnreadableError("it is a folder", file=self.name, hint="name one of its files")
        raise UnreadableError("not a regular file", file=self.name)

    @property
    def descriptor(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1

    def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`. Raises UnreadableError if the file is too
        short."""
        ensure_within(self, offset, length)
        try:
            data = read_all(self._fd, length, offset)
        except OSError as error:
            raise UnreadableError(
                reason_of(error), file=self.name, place=f"byte {offset:,}"
            ) from error
        if len(data) < length:
            raise UnreadableError(
                "the file became shorter while it was read",
                file=self.name,
                place=f"byte {offset + len(data):,}",
            )
        self.bytes_read += length
        return data

    def open_arrow(self) -> NativeFile:
        """Open an independent pyarrow stream over the same open file, even if its path now names
        another."""
        import pyarrow

        link = f"/proc/self/fd/{self._fd}"
        return pyarrow.OSFile(link if os.path.exists(link) else self.name)

    def is_unchanged(self) -> bool:
        """Return whether path and open file are unchanged: inode, size, modification time (mtime)
        and change time (ctime)."""
        try:
            by_name = os.stat(self.name)
            opened = os.fstat(self._fd)
        except OSError:
            return False
        return _identity(by_name) == _identity(opened) == _identity(self._stat)

    def is_file_of(self, status: os.stat_result) -> bool:
        """Return whether a status is that of the open file and its content is unchanged, whatever
        its name is: a rename changes ctime."""
        is_same_file = os.path.samestat(status, os.fstat(self._fd))
        return is_same_file and _content(status) == _content(self._stat)


def _content(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _identity(status: os.stat_result) -> tuple[int, ...]:
    # A writer can set mtime back, but not ctime.
    return status.st_dev, status.st_ino, *_content(status), status.st_ctime_ns


class Extent(Protocol):
    """Bytes of a new file that are not in memory; they are read while the file is written."""

    def __len__(self) -> int: ...
    def read(self, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes from `offset`, counted from the first byte of the extent."""


Piece = Bytes | Extent
"""Bytes of a new file, in memory or not."""


def blocks_of(pieces: Iterable[Piece]) -> Iterator[Bytes]:
    """Yield the bytes of these pieces in order, with few of them in memory at once."""
    for piece in pieces:
        if isinstance(piece, Bytes):
            yield piece
        else:
            for offset in range(0, len(piece), _BLOCK_BYTES):
                yield piece.read(offset, min(_BLOCK_BYTES, len(piece) - offset))


class PlannedSource(Source):
    """The first `keep` bytes of a source followed by `pieces`: a file that is verified before it is
    written.

    Closing it does not close the source.
    """

    def __init__(self, name: str, source: Source, keep: int, pieces: Iterable[Piece]) -> None:
        self.name = name
        self._source = source
        self.keep = keep
        self._pieces = [
            memoryview(piece).cast("B") if isinstance(piece, Bytes) else piece for piece in pieces
        ]
        self._starts = list(accumulate((len(piece) for piece in self._pieces), initial=keep))
        self.size = self._starts[-1]

    def read(self, offset: int, length: int) -> bytes:
        ensure_within(self, offset, length)
        self.bytes_read += length
        end = offset + length
        parts: list[Bytes] = []
        if offset < self.keep and length:
            parts.append(self._source.read(offset, min(end, self.keep) - offset))
        number = max(0, bisect_right(self._starts, offset) - 1)
        while number < len(self._pieces) and self._starts[number] < end:
            piece = self._pieces[number]
            start = self._starts[number]
            first = max(offset - start, 0)
            last = min(end - start, len(piece))
            if isinstance(piece, memoryview):
                parts.append(piece[first:last])
            else:
                parts.append(piece.read(first, last - first))
            number += 1
        return b"".join(parts)

    def new_bytes(self) -> PlannedSource:
        """Return what follows the kept bytes."""
        return PlannedSource(self.name, self._source, 0, self._pieces)

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        kept = [
            (offset, min(length, self.keep - offset))
            for offset, length in ranges
            if offset < self.keep
        ]
        self._source.prefetch(kept)

    def is_unchanged(self) -> bool:
        return self._source.is_unchanged()


class Stream(io.RawIOBase):
    """A source as a Python file.

    Sequential reads use growing windows and prefetch the next one where the store allows it.
    Read-ahead never exceeds the bytes read so far.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._position = 0
        self._buffer = b""
        self._buffer_start = 0
        self._window = 0
        self._ahead: Future[bytes] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        bases = (0, self._position, self._source.size)
        self._position = bases[whence] + offset
        return self._position

    def size(self) -> int:
        return self._source.size

    def read(self, size: int | None = -1) -> bytes:
        length = max(0, self._source.size - self._position)
        if size is not None and size >= 0:
            length = min(size, length)
        parts = []
        while length:
            block = self._read_some(self._position, length)
            parts.append(block)
            self._position += len(block)
            length -= len(block)
        return b"".join(parts)

    def readinto(self, buffer: Bytes) -> int:  # type: ignore[override]
        data = self.read(len(buffer))
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._buffer = b""
        self._ahead = None
        super().close()

    def _read_some(self, position: int, length: int) -> bytes:
        """Return some bytes at `position`, at least one and at most `length`."""
        end = self._buffer_start + len(self._buffer)
        if not self._buffer_start <= position < end:
            if position == end and self._buffer:
                self._window = min(max(2 * self._window, _FIRST_WINDOW), _LARGEST_WINDOW)
            else:
                self._window = 0
                self._ahead = None
            self._fill(position, length)
        start = position - self._buffer_start
        return self._buffer[start : start + length]

    def _fill(self, position: int, length: int) -> None:
        """Fill the buffer from `position`, with at least `length` bytes unless they are on their
        way, and begin to fetch the next window."""
        if self._ahead is not None:
            with waiting():
                self._buffer = result_of(self._ahead)
        else:
            self._buffer = self._source.read_up_to(position, max(length, self._window))
        self._buffer_start = position
        self._ahead = None
        next_start = position + len(self._buffer)
        remaining = self._source.size - next_start
        if self._window and remaining > 0:
            self._ahead = self._source.begin_read(next_start, min(self._window, remaining))
