"""Work on the column chunks of one file: concurrently, and with progress."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from threading import Lock
from typing import TypeVar

from sbbf_tool.parquet.splice import ChunkKey

_Answer = TypeVar("_Answer")


def in_parallel(
    work: Callable[[ChunkKey], _Answer], keys: Iterable[ChunkKey], jobs: int | None
) -> dict[ChunkKey, _Answer]:
    """Apply `work` to every key, `jobs` concurrently (None: one per core); return the results in
    the order of the keys.

    The work runs in threads: decoding, hashing and inserting let other threads run. After the first
    error no further key is started.
    """
    key_list = list(keys)
    if jobs is None:
        jobs = os.cpu_count() or 1
    workers = min(len(key_list), max(1, jobs))
    if workers <= 1:
        return {key: work(key) for key in key_list}
    from concurrent.futures import ThreadPoolExecutor  # with `logging`

    with ThreadPoolExecutor(workers, thread_name_prefix="sbbf") as pool:
        try:
            return dict(zip(key_list, pool.map(work, key_list), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


Progress = Callable[[str, int, int], None]
"""Callable that takes the current step, the bytes processed so far, and the total bytes."""


class Meter:
    """A counter of processed bytes of column chunks, for a progress bar. Threads may share it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0
        self._lock = Lock()

    def advance(self, step: str, size: int) -> None:
        with self._lock:
            self._done += size
            if self._progress is not None:
                self._progress(step, self._done, self._total)
