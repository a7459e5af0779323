"""The requests of a run over many objects: how many per object, how many at the same time, and what faults of the store cost."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.storage.objects import s3_bucket
from sbbf_tool.storage.objects.retries import Budget, Retries
from support.buckets import Bucket
from support.large_files import small

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
    del counts["ListObjectsV2"]
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
    sbbf_tool.add_filters(bucket.url("lake/000.parquet"), ["id"], in_place=True)
    counts = count_requests(bucket)
    objects = OBJECTS - 1
    assert counts["PutObject"] == counts["HeadObject"] == objects
    assert counts["GetObject"] == 2 * objects + 1
    assert counts["GetObjectTagging"] == counts["GetObjectAcl"] == objects


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


def hasten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale the pauses and the patience of requests down."""
    bucket_retries: dict[str, Retries] = {}

    def retries_of(process: int, service: str, bucket: str, budget: Budget) -> Retries:
        return bucket_retries.setdefault(bucket, Retries(Budget(10, 60.0), longest_pause=0.5, first_pause=0.01))

    monkeypatch.setattr(s3_bucket, "retries_of", retries_of)
    monkeypatch.delenv("AWS_MAX_ATTEMPTS")
    from support.buckets import forget_clients

    forget_clients()


@pytest.mark.heavy
def test_faults_of_every_kind_cost_no_object(moto_bucket, monkeypatch):
    """An outage at the start, and then every fifth request throttled, failed, reset, or cut off."""
    urls = put_lake(moto_bucket, 30)
    hasten(monkeypatch)
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
