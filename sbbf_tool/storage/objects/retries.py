"""Retries of requests to a bucket: which budget a request has, and how long it pauses, together
with all other requests to the bucket.

budget   a request is given up after TRIES tries, if the bucket has also not answered any request
         with success for PATIENCE_SECONDS; `AWS_MAX_ATTEMPTS` replaces both by a number of tries
pauses   grow with each failure to LONGEST_PAUSE and shrink with each success; a failure pauses all
         requests to the bucket, each with its own jitter, so that they do not return at the same
         moment
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import lru_cache
from threading import BoundedSemaphore, Lock
from typing import TypeVar

from sbbf_tool import log
from sbbf_tool.display import redact_answer
from sbbf_tool.errors import UnreadableError
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.storage.threads import DaemonThreads, ensure_running, pause, waiting

Answer = TypeVar("Answer")

TRIES = 10
PATIENCE_SECONDS = 180.0
TRIES_TO_REACH = 5
"""Number of tries if a service cannot be reached that was never reached: its name is then probably
wrong. Later requests are tried once."""
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 20.0
"""Seconds."""
IN_FLIGHT = 64
"""Maximum number of concurrent requests of one process, to all buckets."""

ANSWER_SECONDS = 60.0
"""How long an answer may take, beside the time for its bytes."""
LEAST_RATE = 16 << 10
"""Bytes of an answer that must come per second; each wait for a byte has a limit of its own."""
LIST_SECONDS = 180.0
"""How long a library may take for some objects of a list, which may be many pages without one."""
_MOST_TIMED_BYTES = 64 << 20
_TRIES_OF_SLOW = 3

_IN_FLIGHT = BoundedSemaphore(IN_FLIGHT)


class SlowError(UnreadableError):
    """An answer did not come in its time, although its bytes may come one after the other."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the server sends too slowly: its answer takes more than {seconds:.0f} seconds",
            hint="check the network and the endpoint, or try again",
        )


def seconds_for(length: int) -> float:
    """Return how long an answer of up to so many bytes may take."""
    return ANSWER_SECONDS + min(length, _MOST_TIMED_BYTES) / LEAST_RATE


def within(seconds: float, request: Callable[[], Answer]) -> Answer:
    """Return the answer of `request`. Raises SlowError if it does not come in time; its thread is
    then abandoned."""
    thread = DaemonThreads(1, "sbbf-answer")
    future = thread.submit(request)
    thread.close(0)
    try:
        return future.result(seconds)
    except TimeoutError:
        # It may be the error of the request itself, or the answer has come since.
        if future.done():
            return future.result()
        raise SlowError(seconds) from None


class Budget(Frozen):
    """When a request is given up."""

    tries: int = TRIES
    patience_seconds: float = PATIENCE_SECONDS

    @classmethod
    def of_tries(cls, tries: int) -> Budget:
        """Return the budget of this number of tries, however long they take."""
        return cls(max(1, tries), 0.0)


class Retries:
    """The retries of all requests to one bucket. Threads share one; `clock` and `sleep` are those
    of the process unless given."""

    def __init__(
        self,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = pause,
    ) -> None:
        self.budget = budget or Budget()
        self._clock = clock
        self._sleep = sleep
        self._lock = Lock()
        self._last_success: float | None = None
        self._failures = 0
        """How often the pause has doubled."""
        self._resume = 0.0
        """When the present pause ends."""
        self._pause = 0.0
        self._tries_to_reach = TRIES_TO_REACH

    def call(
        self,
        request: Callable[[], Answer],
        is_temporary: Callable[[Exception], bool],
        is_unreachable: Callable[[Exception], bool] = lambda error: False,
    ) -> Answer:
        """Return the answer of `request`; send it again while its errors are temporary and its
        budget lasts.

        `is_unreachable` returns whether an error means that no server answered. The error that ends
        the request has `tries_of`.
        """
        begin = self._clock()
        tries = 0
        while True:
            self._wait_for_resume()
            sent = self._clock()
            tries += 1
            try:
                ensure_running()
                with waiting(), _IN_FLIGHT:
                    answer = request()
            except Exception as error:
                if not is_temporary(error):
                    # The service answered.
                    self._note_success()
                    raise
                is_slow = isinstance(error, SlowError) and tries >= _TRIES_OF_SLOW
                if is_slow or self._is_spent(tries, begin, is_unreachable(error)):
                    error.__dict__["sbbf_tries"] = tries
                    raise
                reason = redact_answer(str(error).partition("\n")[0])
                log.info("repeating a request that failed: %s", reason)
                self._note_failure(sent)
            else:
                self._note_success()
                return answer

    def _is_spent(self, tries: int, begin: float, is_unreachable: bool) -> bool:
        last_success = self._last_success
        since = begin if last_success is None else max(begin, last_success)
        is_late = self._clock() - since >= self.budget.patience_seconds
        is_spent = is_late and tries >= self.budget.tries
        if is_unreachable and last_success is None and tries >= self._tries_to_reach:
            is_spent = True
        if is_spent:
            self._tries_to_reach = 1
        return is_spent

    def _note_success(self) -> None:
        with self._lock:
            self._last_success = self._clock()
            self._failures = max(0, self._failures - 1)

    def _note_failure(self, sent: float) -> None:
        with self._lock:
            # Requests that were in flight together fail together, and count as one failure.
            if sent < self._resume:
                return
            self._pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**self._failures)
            self._resume = self._clock() + self._pause * random.uniform(0.5, 1.0)
            self._failures = min(self._failures + 1, 32)

    def _wait_for_resume(self) -> None:
        with self._lock:
            remaining = self._resume - self._clock()
            jitter = random.uniform(0.0, self._pause / 4)
        if remaining > 0:
            with waiting():
                self._sleep(remaining + jitter)


TEMPORARY_STATUSES = (408, 429, 500, 502, 503, 504)
"""The statuses of answers after which the same request may succeed."""


def unreachable_error(error: Exception, hint: str) -> UnreadableError:
    """Return the error of this package for one of a request that no server answered."""
    tries = format_count(tries_of(error), "try", "tries")
    return UnreadableError(
        f"the service cannot be reached ({type(error).__name__.removesuffix('Error')}, {tries})",
        hint=hint,
    )


def tries_of(error: BaseException) -> int:
    """Return how often a request was sent that ended with this error of `Retries.call`."""
    return int(getattr(error, "sbbf_tries", 1))


@lru_cache(1024)
def retries_of(process: int, service: str, bucket: str, budget: Budget) -> Retries:
    """Return the retries that all requests of a process to a bucket share."""
    return Retries(budget)
