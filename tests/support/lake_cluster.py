"""A run of `sbbf add-filter` in processes of its own, which can be killed: the driver, its JVM, and the executors of its cluster."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CLUSTER = "local-cluster[2,1,1024]"
_SECONDS_TO_END = 60


class Run:
    """A run as a context manager, which ends all its processes at exit."""

    def __init__(self, lake: Path, scratch: Path, *arguments: str, master: str = CLUSTER, python_path: Path | None = None) -> None:
        self.lake = lake
        settings = [
            f"spark.local.dir={scratch / 'blocks'}",
            f"spark.sql.warehouse.dir={scratch / 'warehouse'}",
            "spark.task.maxFailures=20",
        ]
        conf = [word for setting in settings for word in ("--conf", setting)]
        command = [sys.executable, "-m", "sbbf_tool", "add-filter", str(lake), *arguments, "--in-place", "--master", master, *conf]
        package = os.pathsep.join(str(path) for path in (python_path, Path(__file__).parent.parent.parent) if path is not None)
        self.log = scratch / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=scratch, env={**os.environ, "PYTHONPATH": package}, stdout=log, stderr=log, start_new_session=True
            )
        self._processes: set[int] = set()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._processes |= set(self.descendants())
        for pid in (self.process.pid, *self._processes):
            kill(pid)
        self.process.wait()

    def descendants(self) -> list[int]:
        """Return every process that this run started, including children of children."""
        processes, frontier = [], [self.process.pid]
        while frontier:
            children = [child for pid in frontier for child in _children(pid)]
            processes += children
            frontier = children
        self._processes |= set(processes)
        return processes

    def executors(self) -> list[int]:
        return [pid for pid in self.descendants() if b"CoarseGrainedExecutorBackend" in _command(pid)]

    def driver_jvm(self) -> int | None:
        return next((pid for pid in self.descendants() if b"SparkSubmit" in _command(pid)), None)

    def wait_until(self, is_so: Callable[[], object]) -> bool:
        """Wait until the condition holds; return False if the run ends before."""
        while self.process.poll() is None:
            self.descendants()
            if is_so():
                return True
            time.sleep(0.05)
        return False

    def read_output(self) -> str:
        return self.log.read_text(errors="replace")


def wait_for_end(processes: list[int]) -> None:
    """Wait until none of these processes is left."""
    started = time.monotonic()
    while alive := [pid for pid in processes if _command(pid)]:
        assert time.monotonic() - started < _SECONDS_TO_END, alive
        time.sleep(0.05)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += [int(child) for child in (task / "children").read_text().split()]
    return children


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
