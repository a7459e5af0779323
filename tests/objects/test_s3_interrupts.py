"""An interrupt of a run over many objects: it ends although no request returns, and leaves every object old or new, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

import sbbf_tool
from support.buckets import Bucket, environment
from support.large_files import large, small

pytestmark = pytest.mark.heavy

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
