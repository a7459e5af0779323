"""Threads that wait for stores: they take turns to compute, stop when their run is interrupted, and
never keep the process from ending.

turns       a thread that waits for a request gives its turn to another one: so requests are in
            flight whatever the number of workers is, and no more threads compute than there are
            workers
stop        a run that ends early stops its threads before their next request; a thread whose
            request does not return is abandoned
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

Answer = TypeVar("Answer")

STOP_SECONDS = 1.0
"""How long a run that ends early waits for its threads, so that a command ends within two
seconds."""
_CLEANUP_SECONDS = 0.7
_CLEANUPS_IN_FLIGHT = 8
_POLL_SECONDS = 0.05


class StoppedError(BaseException):
    """The run of this thread ended early. No handler of ordinary errors may take it for the failure
    of a file."""


class Stop:
    """Whether a run has ended early; the stop of a part of a run also follows that of the run."""

    def __init__(self, run: Stop | None = None) -> None:
        self._run = run
        self._event = threading.Event()
        self._cleanups: dict[object, Callable[[], object]] = {}

    @property
    def is_set(self) -> bool:
        return self._event.is_set() or (self._run is not None and self._run.is_set)

    def set(self) -> None:
        self._event.set()

    @contextmanager
    def cleaning_up(self, cleanup: Callable[[], object]) -> Iterator[None]:
        """Call `cleanup` if the run ends early while this thread, which then is abandoned, is still
        in the block."""
        if self._run is not None:
            with self._run.cleaning_up(cleanup):
                yield
            return
        key = object()
        self._cleanups[key] = cleanup
        try:
            yield
        finally:
            self._cleanups.pop(key, None)

    def clean_up(self) -> None:
        """Call what abandoned threads would have called; wait for it only for a moment."""
        pool = DaemonThreads(_CLEANUPS_IN_FLIGHT, "sbbf-cleanup")
        for cleanup in tuple(self._cleanups.values()):
            pool.submit(cleanup)
        pool.close(_CLEANUP_SECONDS)

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds. Raises StoppedError as soon as the run ends early."""
        end = time.monotonic() + seconds
        while not self.is_set:
            remaining = end - time.monotonic()
            if remaining <= 0:
                return
            self._event.wait(min(remaining, _POLL_SECONDS))
        raise StoppedError


_STOP: ContextVar[Stop | None] = ContextVar("stop", default=None)


@contextmanager
def stoppable() -> Iterator[Stop]:
    """Yield the stop of all work that is started in this block; it is set if an exception ends the
    block."""
    stop = Stop(_STOP.get())
    token = _STOP.set(stop)
    try:
        yield stop
    except BaseException:
        stop.set()
        raise
    finally:
        _STOP.reset(token)


def cleaning_up(cleanup: Callable[[], object]) -> AbstractContextManager[None]:
    """Call `cleanup` if the run of this thread ends early while the thread is in the block and does
    not return."""
    stop = _STOP.get()
    return nullcontext() if stop is None else stop.cleaning_up(cleanup)


def ensure_running() -> None:
    """Raise StoppedError if the run of this thread has ended early."""
    stop = _STOP.get()
    if stop is not None and stop.is_set:
        raise StoppedError


def pause(seconds: float) -> None:
    """Wait for so many seconds. Raises StoppedError as soon as the run of this thread ends
    early."""
    (_STOP.get() or Stop()).wait(seconds)


def result_of(future: Future[Answer], ensure: Callable[[], None] | None = None) -> Answer:
    """Wait for a result. Raises StoppedError as soon as the run of this thread ends early, and what
    `ensure` raises, which is called now and then.

    The system may give a signal to any thread, but only the main thread handles it, and only if it
    does not wait for long.
    """
    while True:
        try:
            return future.result(_POLL_SECONDS)
        except TimeoutError:
            # It may be the error of the task itself, or the task has ended since.
            if future.done():
                return future.result()
            ensure_running()
            if ensure is not None:
                ensure()


class Turns:
    """The right to compute, for at most `count` threads at the same time."""

    def __init__(self, count: int) -> None:
        self._free = threading.Semaphore(count)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold a turn in this block, except while the thread is `waiting`."""
        while not self._free.acquire(timeout=_POLL_SECONDS):
            ensure_running()
        _THREAD.turns = self
        try:
            yield
        finally:
            _THREAD.turns = None
            self._free.release()

    @contextmanager
    def _without_turn(self) -> Iterator[None]:
        _THREAD.turns = None
        self._free.release()
        try:
            yield
        finally:
            # Also after a stop, because `turn` releases it: other threads then end soon, and
            # release theirs.
            self._free.acquire()
            _THREAD.turns = self


class _Thread(threading.local):
    turns: Turns | None = None


_THREAD = _Thread()


@contextmanager
def waiting() -> Iterator[None]:
    """Give the turn of this thread, if it has one, to other threads for the length of the block."""
    turns = _THREAD.turns
    if turns is None:
        yield
    else:
        with turns._without_turn():
            yield


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock whose holder may wait for requests: while this thread waits for the lock, another
    one has its turn."""
    with waiting():
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


class DaemonThreads:
    """A pool of at most `count` daemon threads: unlike those of concurrent.futures, the process
    ends without waiting for them."""

    def __init__(self, count: int, name: str) -> None:
        # Commands that start no thread need not load it.
        from queue import SimpleQueue

        self._count = count
        self._name = name
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._open_tasks = 0

    def submit(self, function: Callable[..., Answer], *arguments: Any) -> Future[Answer]:
        """Call a function in a thread, with the context variables of the caller."""
        # It imports `logging`, which commands that start no thread need not load.
        from concurrent.futures import Future

        future: Future[Answer] = Future()
        context = copy_context()
        with self._lock:
            self._open_tasks += 1
            if len(self._threads) < min(self._count, self._open_tasks):
                thread = threading.Thread(
                    target=self._run, name=f"{self._name}-{len(self._threads)}", daemon=True
                )
                self._threads.append(thread)
                thread.start()
        self._tasks.put((future, lambda: context.run(function, *arguments)))
        return future

    def close(self, seconds: float | None = None) -> None:
        """End the threads after the tasks that were submitted; wait for them at most so many
        seconds."""
        for _ in self._threads:
            self._tasks.put(None)
        if seconds is None:
            for thread in self._threads:
                thread.join()
            return
        end = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, call = task
            try:
                if future.set_running_or_notify_cancel():
                    future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
            finally:
                with self._lock:
                    self._open_tasks -= 1
                del future, call, task
