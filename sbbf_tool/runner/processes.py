"""A pool of processes that outlives its members, and does not outlive its owner.

A worker that dies (of too little memory, say) takes the pool with it, as Python has it; here what was under way is done again by a new
one. Workers leave Ctrl-C to their owner, and end when it is gone, however it went. Where an exception ends the owner's block, they are
interrupted as a single process is by Ctrl-C: they remove their temporary files.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Thread
from typing import Generic, TypeVar

Unit = TypeVar("Unit")
Row = TypeVar("Row")


class Task(Generic[Unit, Row]):
    """Some units, and the rows that come of them."""

    def __init__(self, units: Sequence[Unit], work: Callable[[Sequence[Unit]], list[Row]]) -> None:
        self.units = units
        self.work = work
        self.future: Future[list[Row]] | None = None
        self.pool: ProcessPoolExecutor | None = None


class Processes:
    """Use as a context manager; what has not begun by its end is not begun any more."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool: ProcessPoolExecutor | None = None
        # Its reading end tells a worker when the last holder of the writing end, its owner, is gone; a byte, that it is to stop.
        self._alive: tuple[int, int] | None = None

    def __enter__(self) -> Processes:
        self._alive = os.pipe()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        if kind is not None and self._alive is not None:
            # Each worker takes one byte; the last is for one of `_apart`.
            os.write(self._alive[1], bytes(self.workers + 1))
        self._stop()
        for fd in self._alive or ():
            os.close(fd)

    def submit(self, task: Task[Unit, Row]) -> Task[Unit, Row]:
        """Begin a task when a worker is free."""
        try:
            task.future = self._running().submit(_work, task.work, task.units)
        except BrokenProcessPool:
            self._stop()
            task.future = self._running().submit(_work, task.work, task.units)
        task.pool = self._pool
        return task

    def rows(self, task: Task[Unit, Row], lost: Callable[[Unit], Row]) -> list[Row]:
        """What came of a task; `lost` makes the row of a unit that kills whoever works on it. Waits."""
        try:
            assert task.future is not None
            return task.future.result()
        except BrokenProcessPool:
            # One of several tasks did it. Each is tried again by itself, and the culprit found by halving.
            if task.pool is self._pool:
                self._stop()
            return self._apart(task.units, task.work, lost)

    def _apart(self, units: Sequence[Unit], work: Callable[[Sequence[Unit]], list[Row]], lost: Callable[[Unit], Row]) -> list[Row]:
        with self._new_pool(1) as pool:
            try:
                return pool.submit(_work, work, units).result()
            except BrokenProcessPool:
                pass
        if len(units) == 1:
            return [lost(units[0])]
        half = len(units) // 2
        return [*self._apart(units[:half], work, lost), *self._apart(units[half:], work, lost)]

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = self._new_pool(self.workers)
        return self._pool

    def _new_pool(self, workers: int) -> ProcessPoolExecutor:
        # A forked process has everything imported already; elsewhere than on Linux, forking is not safe.
        forks = sys.platform == "linux"
        return ProcessPoolExecutor(
            workers,
            mp_context=get_context("fork" if forks else None),
            initializer=_begin,
            initargs=(self._alive if forks else None,),
        )

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _begin(alive: tuple[int, int] | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _refuse)
    if alive is not None:
        reading, writing = alive
        os.close(writing)
        Thread(target=_end_with_owner, args=(reading,), daemon=True).start()


def _work(work: Callable[[Sequence[Unit]], list[Row]], units: Sequence[Unit]) -> list[Row]:
    """Work in a worker. That SIGTERM is ignored means that the worker was told to stop: tasks on their way to it are not begun."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        raise SystemExit
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return work(units)
    finally:
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, _refuse)


def _refuse(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _interrupt(number: int, frame: object) -> None:
    _refuse(number, frame)
    raise SystemExit


def _end_with_owner(reading: int) -> None:
    if os.read(reading, 1):
        os.kill(os.getpid(), signal.SIGTERM)
        hang_up = select.poll()
        hang_up.register(reading, 0)
        hang_up.poll()
    os._exit(1)
