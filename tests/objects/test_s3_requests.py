"""The requests of a run over many objects: how many, how many at the same time, and when one is
given up; pauses are counted."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from contextlib import suppress

import pytest

import sbbf_tool
from objects.large_files import small
from sbbf_tool.cli import run
from sbbf_tool.storage.objects import retries, s3_bucket
from sbbf_tool.storage.objects.retries import Budget, Retries, tries_of
from sbbf_tool.storage.threads import DaemonThreads, StoppedError, ensure_running, pause, stoppable
from support.buckets import Bucket, forget_clients

OBJECTS = 6


def put_lake(bucket: Bucket, objects: int = OBJECTS) -> list[str]:
    return [bucket.put(f"lake/{number:03}.parquet", small()) for number in range(objects)]


def count_requests(bucket: Bucket, *arguments: str) -> Counter[str]:
    bucket.proxy.forget()
    assert run(["add-filter", bucket.url("lake/"), "-c", "id", "--in-place", *arguments]) == 0
    return Counter(bucket.proxy.operations())


def disable_access_lists(bucket: Bucket) -> None:
    rules = {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    bucket.client.put_bucket_ownership_controls(Bucket=bucket.name, OwnershipControls=rules)


def test_a_small_object_takes_four_requests(moto_bucket):
    disable_access_lists(moto_bucket)
    put_lake(moto_bucket)
    counts = count_requests(moto_bucket)
    assert counts.pop("ListObjectsV2") <= 16  # whatever the number of objects is
    # The last two once per bucket and prefix.
    assert counts == {
        "GetObject": 2 * OBJECTS,
        "GetObjectTagging": OBJECTS,
        "PutObject": OBJECTS,
        "GetBucketOwnershipControls": 1,
        "ListMultipartUploads": 1,
    }


def test_a_store_without_conditions_gets_one_conditional_request(bucket):
    """Each object then takes one more request, which compares its version before the write."""
    put_lake(bucket)
    counts = count_requests(bucket)
    assert counts["PutObject"] == OBJECTS + 1
    assert counts["GetObject"] == 2 * OBJECTS
    assert counts["HeadObject"] == counts["GetObjectTagging"] == counts["GetObjectAcl"] == OBJECTS


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_requests_are_in_flight_whatever_the_jobs_are(moto_bucket, jobs):
    together = threading.Barrier(16)
    put_lake(moto_bucket, 20)
    numbers = itertools.count()

    def gather(exchange):
        # The first 16 objects are all requested before any of them arrives.
        if exchange.operation == "GetObject" and next(numbers) < 16:
            together.wait(60)

    moto_bucket.proxy.fault = gather
    assert run(["inspect", moto_bucket.url("lake/"), "--jobs", jobs]) == 0
    assert not together.broken


@pytest.mark.heavy
def test_faults_of_every_kind_cost_no_object(moto_bucket, monkeypatch):
    """An outage at the start, and then every fifth request throttled, failed, reset, or cut off."""
    urls = put_lake(moto_bucket, 30)
    monkeypatch.setattr(retries, "LONGEST_PAUSE", 0.5)
    patient = Retries(Budget(10, 60.0))
    monkeypatch.setattr(s3_bucket, "retries_of", lambda *arguments: patient)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    forget_clients()
    numbers, failures = itertools.count(), Counter[object]()
    faults = itertools.cycle([503, 500, "cut", "cut answer", 503])

    def fail(exchange):
        number = next(numbers)
        if number < 60:
            failures["outage"] += 1
            return 503
        if number % 5:
            return None
        fault = next(faults)
        failures[fault] += 1
        return fault

    moto_bucket.proxy.fault = fail
    assert run(["add-filter", moto_bucket.url("lake/"), "-c", "id", "--in-place"]) == 0
    assert failures["outage"] == 60
    assert all(failures[fault] for fault in (503, 500, "cut", "cut answer"))
    moto_bucket.proxy.forget()
    assert all(sbbf_tool.verify(url).is_sound for url in urls)
    assert moto_bucket.unfinished() == []


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
    s3_bucket.budget.cache_clear()
    bucket, clock = make_retries(s3_bucket.budget(0))
    with pytest.raises(ThrottledError) as caught:
        bucket.call(throttle, is_throttled)
    assert tries_of(caught.value) == 4
    assert clock.now < 5


@pytest.fixture(autouse=True)
def forget_settings():
    yield
    for cached in (s3_bucket.budget, s3_bucket.client):
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
