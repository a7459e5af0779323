"""SIGTERM to the whole process group: a worker that has just started prints no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

PROGRAM = """
import os, signal, sys
from sbbf_tool.running import processes

def terminate(number, frame):
    raise SystemExit(143)

signal.signal(signal.SIGTERM, terminate)
begin = processes._begin

def begin_late(*given):
    # The signal arrives before the worker has its own handlers.
    os.kill(os.getpid(), signal.SIGTERM)
    begin(*given)

processes._begin = begin_late
with processes.Processes(1) as pool:
    task = pool.submit(processes.Task([1], list))
    os.kill(os.getpid(), signal.SIGTERM)
    pool.rows(task, str)
"""


def test_a_worker_that_starts_while_the_group_is_terminated_prints_nothing():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.stderr == ""
    assert process.returncode == 128 + signal.SIGTERM
