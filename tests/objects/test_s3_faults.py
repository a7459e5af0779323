"""Connections that break, stores that fail, rivals, kills and interrupts: the old object is whole, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import sbbf_tool
from objects.large_files import large, small
from sbbf_tool.errors import ChangedError, SbbfError, WriteError
from support.buckets import Bucket, environment

pytestmark = pytest.mark.heavy

STEPS = ("CreateMultipartUpload", "UploadPart", "UploadPartCopy", "ListParts", "CompleteMultipartUpload")


def of(operation: str, answer: str | int, times: int | None = None):
    """A fault of one operation, each time or the first few."""
    matches = []

    def fault(exchange):
        if exchange.operation == operation and (times is None or len(matches) < times):
            matches.append(exchange)
            return answer
        return None

    return fault


@pytest.mark.parametrize("answer", [500, "cut"])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_leaves_the_old_object_and_nothing_else(bucket, step, answer):
    url = bucket.put("large.parquet", large())
    bucket.proxy.fault = of(step, answer)
    with pytest.raises(WriteError, match="the old object is untouched") as caught:
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert caught.value.exit_code == 5
    assert bucket.proxy.count("AbortMultipartUpload") == (step != "CreateMultipartUpload")
    bucket.proxy.forget()
    assert bucket.get("large.parquet") == large()
    assert bucket.unfinished() == []


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_once_is_tried_again(bucket, step):
    url = bucket.put("large.parquet", large())
    bucket.proxy.fault = of(step, "cut", times=1)
    sbbf_tool.add_filters(url, ["id"], in_place=True)
    bucket.proxy.forget()
    assert sbbf_tool.verify(url).is_sound
    assert bucket.unfinished() == []


def test_an_upload_completion_with_a_lost_response_succeeds(bucket):
    # In place Swift refuses the conditional one first; a new object is completed at once.
    url = bucket.put("large.parquet", large())
    bucket.proxy.fault = of("CompleteMultipartUpload", "lose answer")
    sbbf_tool.add_filters(url, ["id"], output=bucket.url("new.parquet"))
    bucket.proxy.forget()
    assert sbbf_tool.verify(bucket.url("new.parquet")).is_sound
    assert bucket.unfinished() == []


@pytest.mark.parametrize("answer", [500, "cut"])
def test_a_put_that_fails_leaves_the_old_object(bucket, answer):
    url = bucket.put("small.parquet", small())
    bucket.proxy.fault = of("PutObject", answer)
    with pytest.raises(WriteError, match="the old object is untouched"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert bucket.get("small.parquet") == small()


@pytest.mark.parametrize("step", ["CreateMultipartUpload", "UploadPartCopy", "ListParts", "PutObject"])
def test_an_object_that_changes_meanwhile_keeps_the_change(bucket, step):
    data, theirs = (small(), small(600)) if step == "PutObject" else (large(), large()[:-1000] + bytes(1000))
    url = bucket.put("x.parquet", data)

    def rival(exchange):
        if exchange.operation == step and not done:
            done.append(exchange)
            bucket.client.put_object(Bucket=bucket.name, Key="x.parquet", Body=theirs)

    done: list[object] = []
    bucket.proxy.fault = rival
    with pytest.raises(ChangedError, match=f"{url}: the object changed while it was worked on; run the command again"):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert done
    assert bucket.get("x.parquet") == theirs
    assert bucket.unfinished() == []


def test_an_object_that_changes_during_the_read_is_an_error(bucket):
    url = bucket.put("large.parquet", large())
    calls = []

    def rival(exchange):
        if exchange.operation == "GetObject" and len(calls) < 2:
            calls.append(exchange)
            if len(calls) == 2:
                bucket.client.put_object(Bucket=bucket.name, Key="large.parquet", Body=small())

    bucket.proxy.fault = rival
    with pytest.raises(SbbfError, match="the object changed while it was worked on"):
        sbbf_tool.add_filters(url, ["payload"], in_place=True)
    assert bucket.get("large.parquet") == small()


def command(url: str) -> list[str]:
    # Also where this test runs in a shell's background, whose processes ignore SIGINT.
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from sbbf_tool.__main__ import main; main()"
    return [sys.executable, "-c", program, "add-filter", url, "-c", "id", "--in-place"]


def killed_at(bucket, url: str, step: str, number: int) -> int:
    """Run a command and send it this signal when it requests this step, whose answer is delayed; return its exit code."""
    running: list[subprocess.Popen[bytes]] = []

    def kill(exchange):
        if exchange.operation == step and running and running[0].poll() is None:
            running[0].send_signal(number)
            time.sleep(0.3)

    bucket.proxy.fault = kill
    with bucket.proxy.draining():
        running.append(
            subprocess.Popen(
                command(url), env={**os.environ, **environment(bucket.proxy.url)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        )
        code = running[0].wait(timeout=120)
    bucket.proxy.forget()
    return code


@pytest.mark.parametrize("step", ["GetObject", *STEPS])
def test_a_kill_leaves_a_whole_object(bucket, step):
    url = bucket.put("large.parquet", large())
    assert killed_at(bucket, url, step, signal.SIGKILL) == -signal.SIGKILL
    data = bucket.get("large.parquet")
    assert data[: len(large())] == large()
    if data != large():
        # The completion had been sent, and the store went through with it.
        assert step == "CompleteMultipartUpload"
        assert sbbf_tool.verify(url).is_sound
    else:
        # The half is out of sight. The next command works, and says that it is there.
        report = sbbf_tool.add_filters(url, ["id"], in_place=True)
        assert any("unfinished upload" in warning for warning in report.warnings) == bool(bucket.unfinished())
    assert sbbf_tool.verify(url).is_sound


@pytest.mark.parametrize("step", ["CreateMultipartUpload", "UploadPartCopy"])
@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_terminated_command_leaves_nothing(bucket, step, number, exit_code):
    url = bucket.put("large.parquet", large())
    assert killed_at(bucket, url, step, number) == exit_code
    assert bucket.get("large.parquet") == large()
    assert bucket.unfinished() == []


SIGNALS = pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])

# SIGINT is handled also where this test runs in a shell's background, whose processes ignore it. On a busy machine, requests that clean up
# take longer than a command waits for them.
PROGRAM = """
import signal
from sbbf_tool.__main__ import main
from sbbf_tool.storage import threads
signal.signal(signal.SIGINT, signal.default_int_handler)
threads._CLEANUP_SECONDS = 60
main()
"""


def interrupt_when_hung(bucket: Bucket, operation: str, count: int, number: int) -> tuple[int, str]:
    """Run a command of which every request of one operation hangs, and interrupt its process group once `count` of them do.

    Returns exit code and standard error. The requests go on when the command has ended.
    """
    released, are_hung, hung = threading.Event(), threading.Event(), []

    def hang(exchange):
        if exchange.operation == operation:
            hung.append(exchange)
            if len(hung) >= count:
                are_hung.set()
            released.wait(300)

    bucket.proxy.fault = hang
    with bucket.proxy.draining():
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "add-filter", bucket.url("lake/"), "-c", "id", "--in-place", "--jobs", "1"],
            env={**os.environ, **environment(bucket.proxy.url)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert are_hung.wait(120)
            os.killpg(process.pid, number)
            # The requests would hang for longer.
            error = process.communicate(timeout=100)[1]
        finally:
            released.set()
            process.kill()
    bucket.proxy.fault = None
    return process.returncode, error


@SIGNALS
@pytest.mark.parametrize("operation", ["GetObject", "PutObject"])
def test_a_run_ends_although_its_requests_hang(moto_bucket, operation, number, exit_code):
    urls = [moto_bucket.put(f"lake/{n:02}.parquet", small()) for n in range(40)]
    code, error = interrupt_when_hung(moto_bucket, operation, 16, number)
    assert code == exit_code, error
    assert "Traceback" not in error
    assert "interrupted" in error
    for n in range(40):
        assert moto_bucket.get(f"lake/{n:02}.parquet").startswith(small())
    assert all(sbbf_tool.verify(url).is_sound for url in urls[:3])


@SIGNALS
@pytest.mark.parametrize("operation", ["UploadPartCopy", "ListParts"])
def test_uploads_in_parts_are_aborted(moto_bucket, operation, number, exit_code):
    for n in range(3):
        moto_bucket.put(f"lake/{n}.parquet", large())
    code, error = interrupt_when_hung(moto_bucket, operation, 1, number)
    assert code == exit_code, error
    assert "Traceback" not in error
    assert all(moto_bucket.get(f"lake/{n}.parquet") == large() for n in range(3))
    assert moto_bucket.unfinished() == []
