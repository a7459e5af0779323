"""The progress of an operation on one file: the bytes of column chunks that are processed."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

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
