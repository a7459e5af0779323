"""A driver of an engine that crashes, hangs, prints or fails, as the name of the job says."""

from __future__ import annotations

import os
import signal
import sys
import threading

from sbbf_tool.extensions.engine_runs.measure import Counts, Job, QueryCondition, RowDigest


class Driver:
    version = "1.0"

    def __init__(self, request: QueryCondition) -> None:
        if request.text == "no start":
            raise RuntimeError("there is no\nengine here")
        self.text = request.text

    def run(self, job: Job, rows: RowDigest) -> Counts:
        print("noise on standard output", flush=True)
        sys.stderr.write("noise on standard error\n")
        sys.stderr.flush()
        if job.name == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if job.name == "hang":
            threading.Event().wait()
        if job.name == "exit":
            os._exit(7)
        if job.name == "fail":
            raise ValueError("cannot read\nthis")
        with rows.timed():
            rows.add(job.name.encode() if self.text == "differ" else b"row")
        return Counts(row_groups_read=1)
