"""A pool of processes that survives the death of workers, and ends when its owner ends.

A worker that dies (for example, out of memory) breaks Python's pool; this module runs the
unfinished tasks again in a new pool. Workers ignore Ctrl-C, which their owner handles, and end when
the owner ends for any reason. If an exception ends the owner's block, workers are interrupted as
Ctrl-C interrupts a single process, so they remove their temporary files.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from threading import Thread, Timer
from typing import Any, Generic, TypeVar

from sbbf_tool.storage.interrupts import (
    SIGNALS,
    ensure_uninterrupted,
    forget_interrupt,
    interrupt,
)
from sbbf_tool.storage.threads import result_of

Unit = TypeVar("Unit")
Row = TypeVar("Row")
Carry = Callable[[Sequence[Unit]], list[Row]]
"""A function that returns the rows of units of work."""

_SECONDS_TO_SEND = 5.0
"""How long a worker that was interrupted has for sending what its task returned."""


class InterruptError(SystemExit):
    """The owner interrupts this worker. A task may catch it and return the rows that it has."""


class Task(Generic[Unit, Row]):
    """Units of work, the function that returns their rows, and another one for units that a worker
    may have begun that ended early."""

    def __init__(
        self,
        units: Sequence[Unit],
        work: Carry[Unit, Row],
        again: Carry[Unit, Row] | None = None,
    ) -> None:
        self.units = units
        self.work = work
        self.again = again or work
        self.future: Future[list[Row]] | None = None
        self.pool: ProcessPoolExecutor | None = None


class WorkerContext(Generic[Unit]):
    """A value that each worker gets once, when it begins: pickled with a task, it stands for that
    value."""

    in_this_process: WorkerContext[Any] | None = None
    is_interrupted_by_owner = False
    """Whether the owner has interrupted this worker, and not another program."""

    def __init__(self, value: Unit) -> None:
        self.value = value

    def __reduce__(self) -> tuple[Callable[[], object], tuple[()]]:
        return _get_context, ()


def _get_context() -> object:
    return WorkerContext.in_this_process


class Processes:
    """A pool of worker processes. Use as a context manager; tasks that have not started when it
    ends are cancelled."""

    def __init__(self, workers: int, context: WorkerContext[Any] | None = None) -> None:
        self.workers = workers
        self._context = context
        self._pool: ProcessPoolExecutor | None = None
        # Pipe from owner to workers: end of file means that the owner has ended; a byte means that
        # a worker must stop.
        self._alive: tuple[int, int] | None = None

    def __enter__(self) -> Processes:
        self._alive = os.pipe()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        if kind is not None:
            self._interrupt()
        self._stop()
        for fd in self._alive or ():
            os.close(fd)

    def submit(self, task: Task[Unit, Row]) -> Task[Unit, Row]:
        """Submit a task, to start as soon as a worker is free."""
        try:
            task.future = _submit(self._running(), task.work, task.units)
        except BrokenProcessPool:
            self._stop()
            task.future = _submit(self._running(), task.work, task.units)
        task.pool = self._pool
        return task

    def rows(
        self,
        task: Task[Unit, Row],
        unit_of: Callable[[Row], Unit],
        build_lost_row: Callable[[Unit], Row],
    ) -> list[Row]:
        """Wait for a task and return its rows, one for each unit; `build_lost_row` returns the row
        of a unit that kills its worker."""
        try:
            assert task.future is not None
            rows = result_of(task.future, ensure_uninterrupted)
        except BrokenProcessPool:
            # Any of the tasks may have killed the worker. Each is run again separately; halving a
            # task finds the unit.
            if task.pool is self._pool:
                self._stop()
            return self._apart(task.units, task.again, build_lost_row)
        if len(rows) == len(task.units):
            return rows
        # Another program has interrupted the worker.
        row_of = {unit_of(row): row for row in rows}
        missing = [unit for unit in task.units if unit not in row_of]
        if not missing:
            return rows
        for row in self._apart(missing, task.again, build_lost_row):
            row_of[unit_of(row)] = row
        return [row_of[unit] for unit in task.units]

    def interrupt(self, tasks: Iterable[Task[Unit, Row]]) -> Iterator[Row]:
        """Interrupt the workers, and yield the rows that these tasks have so far."""
        self._interrupt()
        self._stop()
        for task in tasks:
            future = task.future
            if future is None or not future.done() or future.cancelled():
                continue
            if future.exception() is None:
                yield from future.result()

    def _interrupt(self) -> None:
        if self._alive is not None:
            # Each worker reads one byte; the last byte is for a worker of `_apart`.
            os.write(self._alive[1], bytes(self.workers + 1))

    def _apart(
        self,
        units: Sequence[Unit],
        work: Carry[Unit, Row],
        build_lost_row: Callable[[Unit], Row],
    ) -> list[Row]:
        with self._new_pool(1) as pool:
            try:
                rows = _submit(pool, work, units).result()
            except BrokenProcessPool:
                rows = []
        if len(rows) == len(units):
            return rows
        if len(units) == 1:
            return [build_lost_row(units[0])]
        half = len(units) // 2
        return [
            *self._apart(units[:half], work, build_lost_row),
            *self._apart(units[half:], work, build_lost_row),
        ]

    def _running(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = self._new_pool(self.workers)
        return self._pool

    def _new_pool(self, workers: int) -> ProcessPoolExecutor:
        # A forked process need not import modules again, but forking is safe only on Linux.
        forks = sys.platform == "linux"
        value = None if self._context is None else self._context.value
        return ProcessPoolExecutor(
            workers,
            mp_context=get_context("fork" if forks else None),
            initializer=_begin,
            initargs=(self._alive if forks else None, pickle.dumps(value)),
        )

    def _stop(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None


def _submit(
    pool: ProcessPoolExecutor, work: Carry[Unit, Row], units: Sequence[Unit]
) -> Future[list[Row]]:
    """Submit a task. The pool may start workers for it, in which signals stay blocked until
    `_begin` has replaced the owner's handlers."""
    if not hasattr(signal, "pthread_sigmask"):
        return pool.submit(_work, work, units)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        return pool.submit(_work, work, units)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _begin(alive: tuple[int, int] | None, context: bytes) -> None:
    # Pickled, so that a forked process has no caches and locks of its owner.
    WorkerContext.in_this_process = WorkerContext(pickle.loads(context))
    forget_interrupt()
    for number in SIGNALS:
        signal.signal(number, _refuse if number == signal.SIGTERM else signal.SIG_IGN)
    if alive is not None:
        reading, writing = alive
        os.close(writing)
        Thread(target=_end_with_owner, args=(reading,), daemon=True).start()
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _work(work: Carry[Unit, Row], units: Sequence[Unit]) -> list[Row]:
    """Run a task in a worker. A worker that was interrupted ignores SIGTERM and runs no task that
    arrives afterwards. Unless its owner interrupted it, it soon ends as if it were killed."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_IGN:
        if not WorkerContext.is_interrupted_by_owner:
            os._exit(1)
        raise SystemExit
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return work(units)
    finally:
        if signal.getsignal(signal.SIGTERM) is _interrupt:
            signal.signal(signal.SIGTERM, _refuse)
        else:
            _end_soon()


def _refuse(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _end_soon()


def _interrupt(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    interrupt(InterruptError())


def _end_soon() -> None:
    """End a worker that is about to wait for a task, perhaps for ever: a worker that was killed
    may have had the lock of the queue, and the owner waits until all workers of a broken pool have
    ended."""
    timer = Timer(_SECONDS_TO_SEND, _end_without_owner)
    timer.daemon = True
    timer.start()


def _end_without_owner() -> None:
    # The owner takes the rows of its other workers first, and then ends this one.
    if not WorkerContext.is_interrupted_by_owner:
        os._exit(1)


def _end_with_owner(reading: int) -> None:
    if os.read(reading, 1):
        WorkerContext.is_interrupted_by_owner = True
        os.kill(os.getpid(), signal.SIGTERM)
        hang_up = select.poll()
        hang_up.register(reading, 0)
        hang_up.poll()
    os._exit(1)
