"""New versions of objects of all services: what is uploaded, and that rivals, faults and kills cost
no byte and leave nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pytest

import sbbf_tool
from objects import azure_server, google_server
from objects.large_files import ABSENT, PRESENT, large, small
from sbbf_tool.cli import run
from sbbf_tool.errors import ChangedError, RefusedError, UncertainWriteError, WriteError
from support.buckets import Bucket
from support.tables import each

pytestmark = pytest.mark.environment(minutes=1)


@dataclass
class Cloud:
    """A container of Azure, or a bucket of Google or S3."""

    store: Any

    def __post_init__(self) -> None:
        self.is_azure, self.is_s3 = (
            isinstance(self.store, azure_server.Container),
            isinstance(self.store, Bucket),
        )
        others: list[str] = []
        if self.is_s3:
            self.operation, others = (
                attrgetter("operation"),
                ["CreateMultipartUpload", "UploadPartCopy", "ListParts"],
            )
            self.step_of_small, self.step_of_large, self.step_of_tail = (
                "PutObject",
                "CompleteMultipartUpload",
                "UploadPart",
            )
        elif self.is_azure:
            self.operation = azure_server.operation
            self.step_of_small, self.step_of_large, self.step_of_tail = (
                "PutBlob",
                "PutBlockList",
                "PutBlock",
            )
        else:
            self.operation = google_server.operation
            self.step_of_small, self.step_of_large, self.step_of_tail = (
                "Upload",
                "Compose",
                "Upload",
            )
        self.steps = [
            (self.step_of_small, small()),
            *((step, large()) for step in (self.step_of_large, self.step_of_tail, *others)),
        ]
        self.proxy, self.get, self.url = self.store.proxy, self.store.get, self.store.url

    def put(self, key: str, data: bytes) -> str:
        self.proxy.forget()
        if self.is_azure and data is large():
            return self.store.put_blocks(key, azure_server.blocks_of(data))
        return self.store.put(key, data)

    def rest(self, key: str) -> list[str]:
        """Return what an unfinished change of the object left."""
        if self.is_s3:
            return self.store.unfinished()
        return (
            self.store.block_ids(key, "uncommitted")
            if self.is_azure
            else [name for name in self.store.names() if ".sbbf-" in name]
        )

    def fail(self, step: str, answer: Any, times: int | None = None) -> list[object]:
        """Give this answer to each request of one operation, or call a function then; return the
        list of these requests."""
        matches: list[object] = []

        def fault(exchange: Any) -> Any:
            if self.operation(exchange) != step or len(matches) == times:
                return None
            matches.append(exchange)
            return answer() if callable(answer) else answer

        self.proxy.fault = fault
        return matches

    def come_between(self, step: str, key: str, data: bytes) -> list[object]:
        """Store an object as another client before the first request of one operation arrives;
        return the list of these requests."""

        def store() -> int | None:
            self.store.put(key, data)
            # moto takes no notice of this condition, which S3 does.
            return 412 if step == "CompleteMultipartUpload" else None

        return self.fail(step, store, 1)


@pytest.fixture(params=["container", "google_bucket", "moto_bucket"], ids=["azure", "google", "s3"])
def cloud(request: pytest.FixtureRequest) -> Cloud:
    return Cloud(request.getfixturevalue(request.param))


WITHOUT_S3 = pytest.mark.parametrize(
    "cloud", ["container", "google_bucket"], ids=["azure", "google"], indirect=True
)


def test_only_the_tail_of_a_large_object_is_uploaded(cloud):
    url = cloud.put("lake/large.parquet", large())
    report = sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert cloud.proxy.uploaded < report.new_bytes - report.old_bytes + 2000
    assert (report.warnings, report.new_bytes) == ((), len(cloud.get("lake/large.parquet")))
    assert cloud.get("lake/large.parquet")[: len(large())] == large()
    assert cloud.rest("lake/large.parquet") == []
    assert sbbf_tool.verify(url).is_sound
    assert [sbbf_tool.probe(url, "id", [value]).is_absent for value in (ABSENT, PRESENT)] == [
        True,
        False,
    ]


def test_a_small_object_is_put_in_one_request(cloud):
    url = cloud.put("small.parquet", small())
    assert sbbf_tool.add_filters(url, ["id", "name"], in_place=True).warnings == ()
    assert [exchange.method in ("PUT", "POST") for exchange in cloud.proxy.exchanges].count(
        True
    ) == 1
    assert cloud.get("small.parquet")[: len(small())] == small()
    assert sbbf_tool.verify(url).is_sound


def test_a_listing_whose_requests_fail_once_is_whole(cloud, capfd):
    for key in "abc":
        cloud.put(f"lake/{key}.parquet", small())
    failed = set()

    def fail(exchange):
        if (
            cloud.operation(exchange) not in ("ListBlobs", "List", "ListObjectsV2")
            or exchange.query in failed
        ):
            return None
        failed.add(exchange.query)
        return 503

    cloud.proxy.fault = fail
    assert run(["inspect", cloud.url("lake/"), "--quick"]) == 0
    assert "3 files: 3 done" in capfd.readouterr().out
    assert failed


@WITHOUT_S3
def test_requests_per_object(cloud):
    """As docs/how-to/object-stores.md states them; a run also reads and lists."""
    reads = {"GetBlobProperties": 4} if cloud.is_azure else {"GetMetadata": 2}
    for data, last in ((small(), cloud.step_of_small), (large(), cloud.step_of_large)):
        cloud.put("lake/x.parquet", data)
        assert run(["add-filter", cloud.url("lake/"), "-c", "id", "--in-place"]) == 0
        expected = Counter({**reads, last: 1})
        if data is large():
            expected += Counter(
                {cloud.step_of_tail: 1, "GetBlockList" if cloud.is_azure else "Delete": 1}
            )
        counts = Counter(map(cloud.operation, cloud.proxy.exchanges))
        assert {
            name: count
            for name, count in counts.items()
            if name not in ("List", "ListBlobs", "Download", "GetBlob")
        } == expected


def test_every_change_in_place(cloud):
    url = cloud.put("large.parquet", large())
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    sbbf_tool.resize_filters(url, max_bytes=16384, in_place=True, force=True)
    assert {row.bitset_bytes for row in sbbf_tool.inspect(url).filters} == {16384}
    assert sbbf_tool.repair(url, drop=True, in_place=True).steps == ()
    cloud.proxy.forget()
    assert sbbf_tool.remove_filters(url, in_place=True).method == "truncated"
    assert cloud.get("large.parquet") == large()
    # Google composes whole objects only.
    assert cloud.proxy.uploaded < (0 if cloud.is_azure or cloud.is_s3 else len(large())) + 3000
    assert cloud.rest("large.parquet") == []


@each("data", [small(), large()])
def test_a_new_object_beside_the_old_one(cloud, data):
    url, new = cloud.put("old.parquet", data), f"new-{len(data)}.parquet"
    sbbf_tool.add_filters(url, ["id"], output=cloud.url(new))
    assert (cloud.get("old.parquet"), cloud.get(new)[: len(data)]) == (data, data)
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=cloud.url(new))
    other = f"other-{len(data)}.parquet"
    done = cloud.come_between(
        cloud.step_of_large if data is large() else cloud.step_of_small, other, b"theirs"
    )
    with pytest.raises(RefusedError, match="the target exists"):
        sbbf_tool.add_filters(url, ["id"], output=cloud.url(other))
    assert (len(done), cloud.get(other)) == (1, b"theirs")
    assert cloud.is_azure or cloud.rest(other) == []


def test_an_object_that_changes_meanwhile_keeps_the_change(cloud):
    for step, data in cloud.steps:
        url, theirs = cloud.put("x.parquet", data), data[:-1000] + bytes(1000)
        done = cloud.come_between(step, "x.parquet", theirs)
        with pytest.raises(
            ChangedError,
            match=f"{url}: the object changed while it was worked on; run the command again",
        ):
            sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert (len(done), cloud.get("x.parquet")) == (1, theirs)
        assert (
            cloud.is_azure or cloud.rest("x.parquet") == []
        )  # the service deletes blocks that are in no blob


def test_a_write_with_a_lost_response_is_recognised(cloud):
    for step, data in cloud.steps[:2]:
        url = cloud.put("x.parquet", data)
        cloud.fail(step, "lose answer", 1)
        assert sbbf_tool.add_filters(url, ["id"], in_place=True).warnings == ()
        cloud.proxy.forget()
        assert (sbbf_tool.verify(url).is_sound, cloud.rest("x.parquet")) == (True, [])


def test_a_write_whose_outcome_is_unknown_is_uncertain(cloud):
    """The response is lost, and from then on nothing can be asked."""
    for step, data in cloud.steps[:2]:
        url, lost = cloud.put("x.parquet", data), []

        def lose(exchange, step=step, lost=lost):
            if cloud.operation(exchange) == step:
                lost.append(exchange)
            return None if not lost else "lose answer" if lost[-1] is exchange else "cut"

        cloud.proxy.fault = lose
        with pytest.raises(
            UncertainWriteError, match="it is unknown whether the object was written"
        ):
            sbbf_tool.add_filters(url, ["id"], in_place=True)
        cloud.proxy.forget()
        assert cloud.get("x.parquet")[: len(data)] == data


@pytest.mark.heavy
@each("answer", [500, "cut"])
def test_a_step_that_fails_leaves_the_old_object_and_nothing_else(cloud, answer):
    for step, data in cloud.steps:
        url = cloud.put("x.parquet", data)
        cloud.fail(step, answer)
        with pytest.raises(WriteError, match="the old object is untouched"):
            sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert cloud.get("x.parquet") == data
        cloud.fail(step, answer, 1)
        sbbf_tool.add_filters(url, ["id"], in_place=True)
        cloud.proxy.forget()
        assert (sbbf_tool.verify(url).is_sound, cloud.rest("x.parquet")) == (True, [])


def test_a_denied_write_is_refused(cloud):
    url = cloud.put("x.parquet", large())
    cloud.fail(cloud.step_of_large, 403)
    with pytest.raises(RefusedError, match="the object cannot be written: access denied"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert cloud.get("x.parquet") == large()


@WITHOUT_S3
@pytest.mark.nightly(minutes=2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_kill_leaves_a_whole_object_and_the_next_run_removes_the_rest(cloud, number):
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from "
        "sbbf_tool.__main__ import main; main()"
    )
    for step in (cloud.step_of_tail, cloud.step_of_large):
        url = cloud.put("lake/x.parquet", large())
        running: list[subprocess.Popen[bytes]] = []

        def kill(running: list[subprocess.Popen[bytes]] = running) -> int | None:
            if running and running[0].poll() is None:
                running[0].send_signal(number)
                return 500  # the request does not arrive
            return None

        cloud.fail(step, kill)
        with cloud.proxy.draining():
            command = [sys.executable, "-c", program, "add-filter", url, "-c", "id", "--in-place"]
            running.append(
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            )
            assert (
                running[0].wait(timeout=120)
                == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}[number]
            )
        cloud.proxy.forget()
        assert cloud.get("lake/x.parquet") == large()
        assert number == signal.SIGKILL or cloud.is_azure or cloud.rest("lake/x.parquet") == []
        sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert (sbbf_tool.verify(url).is_sound, cloud.rest("lake/x.parquet")) == (True, [])
