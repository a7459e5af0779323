"""Concurrent work on the column chunks of one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sbbf_tool.parquet.patch import ChunkKey

_Answer = TypeVar("_Answer")


def in_parallel(work: Callable[[ChunkKey], _Answer], keys: Iterable[ChunkKey], jobs: int | None) -> dict[ChunkKey, _Answer]:
    """Apply `work` to every key, `jobs` concurrently (None: one per core); return the results in the order of the keys.

    The work runs in threads: decoding, hashing and inserting let other threads run. After the first error no further key is started.
    """
    key_list = list(keys)
    workers = min(len(key_list), max(1, jobs if jobs is not None else os.cpu_count() or 1))
    if workers <= 1:
        return {key: work(key) for key in key_list}
    with ThreadPoolExecutor(workers, thread_name_prefix="sbbf") as pool:
        try:
            return dict(zip(key_list, pool.map(work, key_list), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
