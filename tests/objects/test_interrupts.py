"""Runs over objects whose requests hang or fail: an interrupt ends them within two seconds, and an
outage of a minute costs no object."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from objects.large_files import small
from sbbf_tool.cli import run
from sbbf_tool.storage.objects import cloud
from sbbf_tool.storage.objects.retries import Budget
from support.buckets import forget_clients

pytestmark = [pytest.mark.heavy, pytest.mark.environment(minutes=1)]

OBJECTS = HANGING = 32
SECONDS = 1.8
BUSY = 10
"""A machine that is busy with other work gets so many starts of Python more, each of 20 ms where it
is not."""
# SIGINT is handled also where this test runs in a shell's background, whose processes ignore it.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from "
    "sbbf_tool.__main__ import main; main()"
)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("method", ["GET", "PUT POST"])
@pytest.mark.parametrize("service", ["moto_bucket", "container", "google_bucket"])
def test_a_run_ends_while_its_requests_hang(request, service, method, number, exit_code):
    bucket = request.getfixturevalue(service)
    for n in range(OBJECTS):
        bucket.put(f"lake/{n:02}.parquet", small())
    released, are_hung, hung = threading.Event(), threading.Event(), []

    def hang(exchange):
        if exchange.method in method and exchange.path.endswith(".parquet") | (
            "upload" in exchange.path
        ):
            hung.append(exchange)
            if len(hung) >= HANGING:
                are_hung.set()
            released.wait(300)

    bucket.proxy.fault = hang
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "add-filter",
        bucket.url("lake/"),
        "-c",
        "id",
        "--in-place",
        "--jobs",
        "1",
    ]
    with bucket.proxy.draining():
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert are_hung.wait(120)
            begin = time.monotonic()
            subprocess.run([sys.executable, "-S", "-c", ""], check=True)
            limit = SECONDS + BUSY * (time.monotonic() - begin)
            begin = time.monotonic()
            os.killpg(process.pid, number)
            error = process.communicate(timeout=100)[1]
            seconds = time.monotonic() - begin
        finally:
            released.set()
            process.kill()
    bucket.proxy.fault = None
    assert process.returncode == exit_code, error
    assert "Traceback" not in error
    assert "interrupted" in error
    assert seconds < limit
    assert all(bucket.get(f"lake/{n:02}.parquet").startswith(small()) for n in range(OBJECTS))


@pytest.mark.nightly(minutes=5)
@pytest.mark.parametrize("service", ["moto_bucket", "container", "google_bucket"])
def test_a_minute_without_service_costs_no_object(request, service, monkeypatch):
    bucket = request.getfixturevalue(service)
    for n in range(OBJECTS):
        bucket.put(f"lake/{n:02}.parquet", small())
    monkeypatch.setattr(cloud, "BUDGET", Budget())
    monkeypatch.delenv("AWS_MAX_ATTEMPTS", raising=False)
    forget_clients()
    end, failures = time.monotonic() + 60, []

    def fail(exchange):
        if time.monotonic() > end:
            return None
        failures.append(exchange)
        return 503

    bucket.proxy.fault = fail
    assert run(["add-filter", bucket.url("lake/"), "-c", "id", "--in-place"]) == 0
    assert failures
    assert all(len(bucket.get(f"lake/{n:02}.parquet")) > len(small()) for n in range(OBJECTS))
