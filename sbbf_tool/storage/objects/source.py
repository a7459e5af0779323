"""One version of an object, read by ranges.

opening        one request for the last bytes returns size, ETag, and usually the whole footer
pinning        every further request requires that ETag: a changed object is an error, and versions
               are never mixed
small reads    also fetch the bytes after them, in growing windows while reads are sequential
large reads    are split, and the parts are fetched concurrently
prefetch       fetches near ranges in one request, and other ranges concurrently
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING

from sbbf_tool import log
from sbbf_tool.errors import ErrorPlace, SbbfError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.source import Source, ensure_within
from sbbf_tool.storage.threads import DaemonThreads, result_of, waiting

if TYPE_CHECKING:
    from concurrent.futures import Future

    from sbbf_tool.storage.objects.store import Location, ObjectStore

_TAIL_BYTES = 64 << 10
_LEAST_BYTES = 4 << 10
_MOST_AHEAD = 1 << 20
_PART_BYTES = 8 << 20
_NEAR_BYTES = 64 << 10
_CACHE_BYTES = 64 << 20
_READERS = 16
_FETCHES = 16
"""Maximum number of ranges that one process fetches in the background."""


class ObjectSource(Source):
    """A `Source` over an object. Threads may share one."""

    def __init__(self, store: ObjectStore, location: Location) -> None:
        self.store = store
        self.location = location
        self.name = location.name
        self._lock = Lock()
        # Bytes by start offset; the most recently used entry is last.
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        # Lengths by start offset.
        self._on_the_way: dict[int, int] = {}
        # Length of the last window by the next offset, for each of the latest sequential readers.
        self._readers: OrderedDict[int, int] = OrderedDict()
        with ErrorPlace(self.name):
            tail, self.version = self.store.tail(self.location.key, _TAIL_BYTES)
        self.size = self.version.size
        self.etag = self.version.strong_tag
        log.debug("pinned %s to %s", self.name, self.version)
        self._count(tail)
        self._tail_start = self.size - len(tail)
        self._tail = tail

    def close(self) -> None:
        with self._lock:
            self._cache.clear()

    def read(self, offset: int, length: int) -> bytes:
        ensure_within(self, offset, length)
        if not length:
            return b""
        if offset < self._tail_start < offset + length:
            missing = self._tail_start - offset
            return self.read(offset, missing) + self._tail[: length - missing]
        head = self._find_start(offset, length)
        if len(head) == length:
            return head
        offset += len(head)
        length -= len(head)
        if length >= _PART_BYTES:
            end = offset + length
            starts = range(offset, end, _PART_BYTES)
            parts = self._fetch_all([(start, min(_PART_BYTES, end - start)) for start in starts])
            return b"".join((head, *parts))
        data = self._fetch_window(offset, length)[:length]
        return head + data if head else data

    def _fetch_window(self, offset: int, length: int) -> bytes:
        """Fetch a range, and the bytes after it that a sequential reader probably reads next."""
        window = max(length, self._window(offset, length))
        data = self._fetch(offset, min(window, self._gap(offset, length)))
        with self._lock:
            self._readers[offset + len(data)] = len(data)
            while len(self._readers) > _READERS:
                self._readers.popitem(last=False)
        return data

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        missing = [
            (offset, length)
            for offset, length in _clip(ranges, self.size)
            if length <= _PART_BYTES and len(self._find_start(offset, length)) < length
        ]
        requests = []
        total = 0
        for offset, length in _merge_near(missing):
            total += length
            if total > _CACHE_BYTES // 2:
                break
            requests.append((offset, length))
        self._fetch_all(requests, is_kept=True)

    def begin_read(self, offset: int, length: int) -> Future[bytes]:
        return _threads(os.getpid()).submit(self._fetch_rest, offset, length)

    def is_unchanged(self) -> bool:
        try:
            return self.store.version(self.location.key) == self.version
        except SbbfError:
            return False

    def _window(self, offset: int, length: int) -> int:
        """Return the minimum length to fetch: twice the last window if this continues a sequential
        read, perhaps after a gap."""
        with self._lock:
            for end in reversed(self._readers):
                if end <= offset <= end + _NEAR_BYTES + self._readers[end]:
                    return min(2 * max(self._readers.pop(end), length), _MOST_AHEAD)
        return _LEAST_BYTES

    def _gap(self, offset: int, length: int) -> int:
        """Return how many bytes from `offset`, at least `length`, are neither in memory nor on
        their way to another thread."""
        end = offset + length
        with self._lock:
            known = chain(self._cache, tuple(self._on_the_way))
            starts = [start for start in known if start >= end]
        return min((*starts, max(self._tail_start, end))) - offset

    def _find_start(self, offset: int, length: int) -> bytes:
        """Return the bytes from `offset` that are in memory: all of the range, its first bytes, or
        none."""
        if offset >= self._tail_start:
            start = offset - self._tail_start
            return self._tail[start : start + length]
        parts = []
        with self._lock:
            while length and (entry := self._entry_at(offset)) is not None:
                start, data = entry
                part = data[offset - start : offset - start + length]
                self._cache.move_to_end(start)
                parts.append(part)
                offset += len(part)
                length -= len(part)
        return b"".join(parts)

    def _entry_at(self, offset: int) -> tuple[int, bytes] | None:
        for start, data in reversed(self._cache.items()):
            if start <= offset < start + len(data):
                return start, data
        return None

    def _remember(self, offset: int, data: bytes) -> None:
        with self._lock:
            self._cache[offset] = data
            size = sum(map(len, self._cache.values()))
            while size > _CACHE_BYTES:
                size -= len(self._cache.popitem(last=False)[1])

    def _fetch_rest(self, offset: int, length: int) -> bytes:
        """Return a range, of which the first bytes may be in memory."""
        head = self._find_start(offset, length)
        if len(head) == length:
            return head
        return head + self._fetch(offset + len(head), length - len(head))

    def _fetch(self, offset: int, length: int, is_kept: bool = False) -> bytes:
        # If the object has changed and is shorter now, the service may report an invalid range
        # instead of the change.
        self._on_the_way[offset] = length
        try:
            with ErrorPlace(self.name):
                data = self.store.get(self.location.key, offset, length, self.version)
        finally:
            self._on_the_way.pop(offset, None)
        if len(data) != length:
            raise UnreadableError(
                f"the service sent {len(data):,} bytes instead of {length:,}",
                file=self.name,
                place=f"byte {offset:,}",
            )
        self._count(data)
        # An object that fits is kept as a whole, because values are read twice if the first reader
        # may have misread them.
        if is_kept or length <= _MOST_AHEAD or self.size <= _CACHE_BYTES:
            self._remember(offset, data)
        log.debug(
            "read %s from byte %s of %s", format_count(length, "byte"), f"{offset:,}", self.name
        )
        return data

    def _fetch_all(self, ranges: list[tuple[int, int]], is_kept: bool = False) -> list[bytes]:
        if len(ranges) == 1:
            return [self._fetch(*ranges[0], is_kept)]
        threads = _threads(os.getpid())
        futures = [threads.submit(self._fetch, *byte_range, is_kept) for byte_range in ranges]
        with waiting():
            return [result_of(future) for future in futures]

    def _count(self, data: bytes) -> None:
        with self._lock:
            self.requests += 1
            self.bytes_read += len(data)


@cache
def _threads(process: int) -> DaemonThreads:
    return DaemonThreads(_FETCHES, "sbbf-fetch")


def _clip(ranges: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    for offset, length in ranges:
        if 0 <= offset < size and length > 0:
            yield offset, min(length, size - offset)


def _merge_near(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges in order; ranges so near that one request costs less than two are joined."""
    start = end = -1
    for offset, length in sorted(ranges):
        joined_end = max(end, offset + length)
        is_near = offset <= end + _NEAR_BYTES and joined_end - start <= _PART_BYTES
        if start >= 0 and is_near:
            end = joined_end
            continue
        if start >= 0:
            yield start, end - start
        start = offset
        end = offset + length
    if start >= 0:
        yield start, end - start
