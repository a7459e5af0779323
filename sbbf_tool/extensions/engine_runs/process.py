"""Run an engine's jobs in a process of its own, which may crash or hang without ending this one."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import sbbf_tool
from sbbf_tool.display import escape
from sbbf_tool.extensions.engine_runs.measure import Job, QueryCondition

_MOST_ANSWER_BYTES = 1 << 20
_LOG_BYTES = 4096


@dataclass
class Answers:
    """What an engine answered: the measurement or the error of each job, by its name."""

    version: str | None = None
    measurements: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    start_error: str | None = None
    """Why the engine did not start."""


def run_jobs(driver: str, request: QueryCondition, jobs: Sequence[Job], seconds: float) -> Answers:
    """Run all jobs with the driver of this name, as `load` takes it; a job may take so many
    seconds, as may the start.

    After a crash, the jobs that remain run in another process.
    """
    answers = Answers()
    remaining = list(jobs)
    while remaining:
        reason = _run_process(driver, request, remaining, seconds, answers)
        done = answers.measurements.keys() | answers.errors.keys()
        remaining = [job for job in remaining if job.name not in done]
        if remaining and answers.version is None:
            answers.start_error = answers.start_error or reason
            break
        if remaining:
            answers.errors[remaining.pop(0).name] = reason or "the engine ended without an answer"
    return answers


def _run_process(
    driver: str, request: QueryCondition, jobs: Sequence[Job], seconds: float, answers: Answers
) -> str | None:
    """Run jobs in a new process, and add its answers; return why it ended early, if it did."""
    document = {
        "driver": driver,
        "request": asdict(request),
        "jobs": [asdict(job) for job in jobs],
        "path": sys.path,
    }
    line = f"{json.dumps(document)}\n".encode()
    read_end, write_end = os.pipe()
    with TemporaryFile() as log:
        try:
            process = _start(write_end, log)
        finally:
            os.close(write_end)
        try:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            problem = _read_answers(read_end, seconds, len(jobs), answers)
            if problem is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_SECONDS_TO_END)
        finally:
            os.close(read_end)
            _end(process)
        return problem or _describe_end(process.returncode, log)


def _start(descriptor: int, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the program, which writes its answers to the descriptor."""
    command = [
        sys.executable,
        "-P",
        "-W",
        "ignore",
        "-m",
        "sbbf_tool.extensions.engine_runs.program",
        str(descriptor),
    ]
    root = str(Path(sbbf_tool.__path__[0]).parent)
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=(descriptor,),
        env={**os.environ, "PYTHONPATH": root},
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()


_SECONDS_TO_END = 10


def _read_answers(descriptor: int, seconds: float, jobs: int, answers: Answers) -> str | None:
    """Read the answers until their end, or until one takes longer than `seconds`; return the reason
    in that case."""
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        deadline = time.monotonic() + seconds
        while True:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return f"no answer within {seconds:g} seconds"
            block = os.read(descriptor, 65536)
            if not block:
                return None
            data += block
            if len(data) > _MOST_ANSWER_BYTES:
                return "the answer of the engine is too long"
            *lines, data = data.split(b"\n")
            for line in lines:
                _add(json.loads(line), answers)
                deadline = time.monotonic() + seconds
            if answers.start_error is not None or jobs == 0:
                return answers.start_error


def _add(answer: dict[str, Any], answers: Answers) -> None:
    if "version" in answer:
        answers.version = answer["version"]
    elif "job" not in answer:
        answers.start_error = answer["error"]
    elif "measurement" in answer:
        answers.measurements[answer["job"]] = answer["measurement"]
    else:
        answers.errors[answer["job"]] = answer["error"]


def _describe_end(code: int, log: Any) -> str:
    if code < 0:
        name = str(-code)
        if -code in set(signal.Signals):
            name = signal.Signals(-code).name
        return f"the engine crashed ({name})"
    ending = f"the engine ended with exit code {code}"
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _LOG_BYTES))
    lines = [line for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    if lines and code > 0:
        ending += f": {escape(lines[-1].strip())}"
    return ending
