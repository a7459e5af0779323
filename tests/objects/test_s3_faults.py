"""Connections that break, stores that fail, rivals, kills and interrupts: the old object is whole,
and nothing is left behind."""

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
from sbbf_tool.errors import ChangedError, SbbfError
from support.buckets import Bucket

pytestmark = pytest.mark.heavy


@pytest.mark.parametrize(
    ("step", "data"), [("PutObject", small()), ("CompleteMultipartUpload", large())]
)
def test_a_store_without_conditions_is_looked_at_before_the_write(bucket, step, data):
    url = bucket.put("x.parquet", data)

    def rival(exchange):
        if exchange.operation == step:
            bucket.proxy.fault = None
            bucket.put("x.parquet", small(600))

    bucket.proxy.fault = rival
    with pytest.raises(
        ChangedError,
        match=f"{url}: the object changed while it was worked on; run the command again",
    ):
        sbbf_tool.add_filters(url, ["id"], in_place=True)
    assert bucket.get("x.parquet") == small(600)
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


# SIGINT is handled also where this test runs in a shell's background, whose processes ignore it. On
# a busy machine, requests that clean up take longer than a command waits for them.
PROGRAM = """
import signal
from sbbf_tool.__main__ import main
from sbbf_tool.storage import threads
signal.signal(signal.SIGINT, signal.default_int_handler)
threads._CLEANUP_SECONDS = 60
main()
"""
# And the answers to requests that are under way take longer than it waits for these.
PATIENT = f"""
from sbbf_tool.running import local
from sbbf_tool.storage.objects import conditional
local.STOP_SECONDS = conditional.STOP_SECONDS = 60
{PROGRAM}
"""


def killed_at(bucket: Bucket, url: str, step: str, number: int) -> int:
    """Run a command and send it this signal when it requests this step, whose answer is delayed;
    return its exit code."""
    running: list[subprocess.Popen[bytes]] = []

    def kill(exchange):
        if exchange.operation == step and running and running[0].poll() is None:
            running[0].send_signal(number)
            time.sleep(0.3)

    bucket.proxy.fault = kill
    with bucket.proxy.draining():
        command = [sys.executable, "-c", PATIENT, "add-filter", url, "-c", "id", "--in-place"]
        running.append(
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        )
        code = running[0].wait(timeout=120)
    bucket.proxy.forget()
    return code


@pytest.mark.parametrize(
    "step",
    [
        "GetObject",
        "CreateMultipartUpload",
        "UploadPart",
        "UploadPartCopy",
        "ListParts",
        "CompleteMultipartUpload",
    ],
)
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
        assert any("unfinished upload" in warning for warning in report.warnings) == bool(
            bucket.unfinished()
        )
    assert sbbf_tool.verify(url).is_sound


@pytest.mark.parametrize("step", ["CreateMultipartUpload", "UploadPartCopy"])
@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_terminated_command_leaves_nothing(bucket, step, number, exit_code):
    url = bucket.put("large.parquet", large())
    assert killed_at(bucket, url, step, number) == exit_code
    assert bucket.get("large.parquet") == large()
    assert bucket.unfinished() == []


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("operation", ["UploadPartCopy", "ListParts"])
def test_uploads_in_parts_are_aborted(moto_bucket, operation, number, exit_code):
    """Every request of the operation hangs until the command has ended."""
    for n in range(3):
        moto_bucket.put(f"lake/{n}.parquet", large())
    released, is_hung = threading.Event(), threading.Event()

    def hang(exchange):
        if exchange.operation == operation:
            is_hung.set()
            released.wait(300)

    moto_bucket.proxy.fault = hang
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "add-filter",
        moto_bucket.url("lake/"),
        "-c",
        "id",
        "--in-place",
        "--jobs",
        "1",
    ]
    with moto_bucket.proxy.draining():
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert is_hung.wait(120)
            os.killpg(process.pid, number)
            error = process.communicate(timeout=100)[1]
        finally:
            released.set()
            process.kill()
    moto_bucket.proxy.fault = None
    assert process.returncode == exit_code, error
    assert "Traceback" not in error
    assert all(moto_bucket.get(f"lake/{n}.parquet") == large() for n in range(3))
    assert moto_bucket.unfinished() == []
