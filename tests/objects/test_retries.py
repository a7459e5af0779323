"""Retries of requests to a bucket: when one is given up, how long the pauses are, and what the environment changes. Time is counted."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from sbbf_tool.storage.objects import retries, s3_bucket
from sbbf_tool.storage.objects.retries import Budget, Retries, tries_of
from sbbf_tool.storage.threads import DaemonThreads, StoppedError, ensure_running, pause, stoppable


class Clock:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class ThrottledError(Exception):
    pass


def make_retries(budget: Budget | None = None) -> tuple[Retries, Clock]:
    clock = Clock()
    return Retries(budget, clock, clock.sleep), clock


def throttle() -> None:
    raise ThrottledError


def is_throttled(error: Exception) -> bool:
    return isinstance(error, ThrottledError)


def test_a_request_is_given_up_after_ten_tries_and_three_minutes_without_success():
    bucket, clock = make_retries()
    with pytest.raises(ThrottledError) as caught:
        bucket.call(throttle, is_throttled)
    assert tries_of(caught.value) >= 10
    assert 180 <= clock.now < 180 + 2 * 25
    assert max(clock.pauses) <= 20 * 1.25
    assert clock.pauses[0] < 0.2
    assert sum(pause > 10 for pause in clock.pauses) >= 5


def test_a_success_of_another_request_renews_the_patience():
    bucket, clock = make_retries()
    calls = []

    def request() -> str:
        calls.append(clock.now)
        if clock.now < 600:
            # Meanwhile others succeed.
            bucket.call(str, is_throttled)
            raise ThrottledError
        return "at last"

    assert bucket.call(request, is_throttled) == "at last"
    assert len(calls) > 10


def test_an_answer_that_is_no_temporary_failure_is_not_repeated():
    bucket, clock = make_retries()

    def refuse() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        bucket.call(refuse, is_throttled)
    assert clock.pauses == []


def test_a_service_that_was_never_reached_is_given_up_soon():
    bucket, clock = make_retries()
    with pytest.raises(ThrottledError) as caught:
        bucket.call(throttle, is_throttled, is_throttled)
    assert tries_of(caught.value) == retries.TRIES_TO_REACH
    assert clock.now < 5


def test_the_environment_states_the_number_of_tries(monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "4")
    s3_bucket.retry_settings.cache_clear()
    settings = s3_bucket.retry_settings(0)
    bucket, clock = make_retries(settings.budget)
    with pytest.raises(ThrottledError) as caught:
        bucket.call(throttle, is_throttled)
    assert tries_of(caught.value) == 4
    assert clock.now < 5
    assert not settings.is_left_to_botocore


@pytest.fixture(autouse=True)
def forget_settings():
    yield
    for cached in (s3_bucket.retry_settings, s3_bucket.client):
        cached.cache_clear()


def test_a_run_that_ends_early_ends_its_pauses():
    def work() -> None:
        try:
            pause(60)
        except StoppedError:
            ended.set()

    ended = threading.Event()
    with suppress(KeyboardInterrupt), stoppable():
        DaemonThreads(1, "test").submit(work)
        raise KeyboardInterrupt
    assert ended.wait(10)
    ensure_running()
