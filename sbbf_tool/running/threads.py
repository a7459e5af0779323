"""Work on objects in stores: in threads, because it mostly waits for requests.

Up to 32 objects are in work, whatever the number of workers is, which bounds how many threads compute at the same time. Memory is bounded
by the bytes that the work on these objects holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from sbbf_tool.storage.threads import STOP_SECONDS, DaemonThreads, Stop, Turns, result_of, stoppable

Unit = TypeVar("Unit")
Answer = TypeVar("Answer")

MOST_OPEN = 32
"""Maximum number of units in work at the same time."""
MOST_BYTES = 512 << 20
"""Maximum number of bytes that the units in work hold together, except that one unit may hold more."""
_MOST_AHEAD = 4 * MOST_OPEN
"""Maximum number of units after the first unfinished one; the answers of those that are done wait."""


def map_in_order(
    function: Callable[[Unit], Answer],
    units: Iterable[Unit],
    memory_of: Callable[[Unit], int],
    workers: int,
    rest: list[Answer] | None = None,
) -> Generator[Answer, None, None]:
    """Call a function for each unit in threads, of which at most `workers` compute at the same time; yield the answers in order.

    If the caller ends the iteration early or is interrupted, no new request is sent, and threads whose request does not return soon are
    abandoned; `rest` receives the answer that was yielded last, and those that were not yielded.
    """
    turns = Turns(workers)

    def call(unit: Unit) -> Answer:
        with turns.turn():
            return function(unit)

    ahead: deque[tuple[Future[Answer], int]] = deque()

    def first_answer() -> Iterator[Answer]:
        yield result_of(ahead[0][0])
        ahead.popleft()

    pool = DaemonThreads(MOST_OPEN, "sbbf-file")
    stop: Stop | None = None
    try:
        with stoppable() as stop:
            for unit in units:
                size = memory_of(unit)
                while ahead and (len(ahead) >= _MOST_AHEAD or size + _open_memory(ahead) > MOST_BYTES):
                    yield from first_answer()
                ahead.append((pool.submit(call, unit), size))
                while ahead and ahead[0][0].done():
                    yield from first_answer()
            while ahead:
                yield from first_answer()
    finally:
        for future, _ in ahead:
            future.cancel()
        is_ended = stop is not None and stop.is_set
        pool.close(STOP_SECONDS if is_ended else None)
        if stop is not None and is_ended:
            stop.clean_up()
        if rest is not None:
            rest += [future.result() for future, _ in ahead if _has_answer(future)]


def _has_answer(future: Future[Answer]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _open_memory(ahead: Iterable[tuple[Future[Answer], int]]) -> int:
    return sum(size for future, size in ahead if not future.done())
