"""One version of an object, read by ranges.

opening        one request for the last bytes returns size, ETag, and usually the whole footer
pinning        every further request requires that ETag: a changed object is an error, and versions are never mixed
small reads    also fetch the bytes after them, in growing windows while reads are sequential
large reads    are split, and the parts are fetched concurrently
prefetch       fetches near ranges in one request, and other ranges concurrently
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING

from sbbf_tool import log
from sbbf_tool.errors import ErrorPlace, SbbfError, UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.objects.store import IN_FLIGHT
from sbbf_tool.storage.source import Source, ensure_within, open_stream

if TYPE_CHECKING:
    from pyarrow import NativeFile

    from sbbf_tool.storage.objects.location import Location
    from sbbf_tool.storage.objects.store import ObjectStore

_TAIL_BYTES = 64 << 10
_LEAST_BYTES = 4 << 10
_MOST_AHEAD = 1 << 20
_PART_BYTES = 8 << 20
_NEAR_BYTES = 64 << 10
_CACHE_BYTES = 64 << 20
_READERS = 16


class ObjectSource(Source):
    """A `Source` over an object. Threads may share one."""

    def __init__(self, store: ObjectStore, location: Location) -> None:
        self.store = store
        self.location = location
        self.name = location.name
        self._lock = Lock()
        # Bytes by start offset; the most recently used entry is last.
        self._cache: OrderedDict[int, bytes] = OrderedDict()
        # Length of the last window by the next offset, for each of the latest sequential readers.
        self._readers: OrderedDict[int, int] = OrderedDict()
        with ErrorPlace(self.name):
            tail, self.version = self.store.tail(self.location.key, _TAIL_BYTES)
        self.size, self.etag = self.version.size, self.version.tag
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
        data = self._find(offset, length)
        if data is not None:
            return data
        if length >= _PART_BYTES:
            end = offset + length
            return b"".join(self._fetch_all([(start, min(_PART_BYTES, end - start)) for start in range(offset, end, _PART_BYTES)]))
        window = max(length, self._window(offset, length))
        data = self._fetch(offset, min(window, self.size - offset))
        if len(data) <= _MOST_AHEAD:
            self._remember(offset, data)
        with self._lock:
            self._readers[offset + len(data)] = len(data)
            while len(self._readers) > _READERS:
                self._readers.popitem(last=False)
        return data[:length]

    def prefetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        missing = [
            (offset, length) for offset, length in _clip(ranges, self.size) if length <= _PART_BYTES and self._find(offset, length) is None
        ]
        requests, total = [], 0
        for offset, length in _merge_near(missing):
            total += length
            if total > _CACHE_BYTES // 2:
                break
            requests.append((offset, length))
        for (offset, _), data in zip(requests, self._fetch_all(requests), strict=True):
            self._remember(offset, data)

    def open_arrow(self) -> NativeFile:
        return open_stream(self, self.begin_read)

    def begin_read(self, offset: int, length: int) -> Future[bytes]:
        """Start to fetch a range in the background."""
        return _threads(os.getpid()).submit(self._fetch, offset, length)

    def is_unchanged(self) -> bool:
        try:
            return self.store.version(self.location.key) == self.version
        except SbbfError:
            return False

    def _window(self, offset: int, length: int) -> int:
        """Return the minimum length to fetch: twice the last window if this continues a sequential read, perhaps after a gap."""
        with self._lock:
            for end in reversed(self._readers):
                if end <= offset <= end + _NEAR_BYTES + self._readers[end]:
                    return min(2 * max(self._readers.pop(end), length), _MOST_AHEAD)
        return _LEAST_BYTES

    def _find(self, offset: int, length: int) -> bytes | None:
        if offset >= self._tail_start:
            start = offset - self._tail_start
            return self._tail[start : start + length]
        with self._lock:
            for start, data in reversed(self._cache.items()):
                if start <= offset and offset + length <= start + len(data):
                    self._cache.move_to_end(start)
                    return data[offset - start : offset - start + length]
        return None

    def _remember(self, offset: int, data: bytes) -> None:
        with self._lock:
            self._cache[offset] = data
            size = sum(map(len, self._cache.values()))
            while size > _CACHE_BYTES:
                size -= len(self._cache.popitem(last=False)[1])

    def _fetch(self, offset: int, length: int) -> bytes:
        # If the object has changed and is shorter now, the service may report an invalid range instead of the change.
        with ErrorPlace(self.name):
            data = self.store.get(self.location.key, offset, length, self.version)
        if len(data) != length:
            raise UnreadableError(f"the service sent {len(data):,} bytes instead of {length:,}", file=self.name, place=f"byte {offset:,}")
        self._count(data)
        log.debug("read %s from byte %s of %s", format_count(length, "byte"), f"{offset:,}", self.name)
        return data

    def _fetch_all(self, ranges: list[tuple[int, int]]) -> list[bytes]:
        if len(ranges) == 1:
            return [self._fetch(*ranges[0])]
        return [future.result() for future in [self.begin_read(*byte_range) for byte_range in ranges]]

    def _count(self, data: bytes) -> None:
        with self._lock:
            self.requests += 1
            self.bytes_read += len(data)


@cache
def _threads(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="sbbf-fetch")


def _clip(ranges: Iterable[tuple[int, int]], size: int) -> Iterator[tuple[int, int]]:
    for offset, length in ranges:
        if 0 <= offset < size and length > 0:
            yield offset, min(length, size - offset)


def _merge_near(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the ranges in order; ranges so near that one request costs less than two are joined."""
    start = end = -1
    for offset, length in sorted(ranges):
        if start >= 0 and offset <= end + _NEAR_BYTES and max(end, offset + length) - start <= _PART_BYTES:
            end = max(end, offset + length)
            continue
        if start >= 0:
            yield start, end - start
        start, end = offset, offset + length
    if start >= 0:
        yield start, end - start
