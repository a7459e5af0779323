"""A layer below the storage room that counts the calls which change a disk, and disturbs one of
them.

Run as a program, it is a server that forks a process for each request: the process runs a command
and is killed at a call, or after a time. The slow part, starting Python and importing Arrow,
happens once.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from sbbf_tool.storage import system_calls

TESTS = Path(__file__).parents[1]
CALLS = (
    "open",
    "write",
    "copy_file_range",
    "fsync",
    "ftruncate",
    "fchmod",
    "fchown",
    "setxattr",
    "rename",
    "exchange",
    "link",
    "unlink",
)


def module_of(name: str) -> ModuleType:
    """Return the module by which the storage room makes a call."""
    return system_calls if name == "exchange" else os


DIVISIBLE = ("write", "copy_file_range")
"""Calls that may write only a part of the bytes."""

BEFORE, HALF, AFTER = "before", "half", "after"


def moments_of(calls: Sequence[str]) -> list[tuple[int, str]]:
    """Return the moments at which calls may fail: before each and, for those that may write only a
    part, in the middle."""
    return [(at, BEFORE) for at in range(len(calls))] + [
        (at, HALF) for at, call in enumerate(calls) if call in DIVISIBLE
    ]


class Disturbance:
    """Call `strike` at the call number `at` (from 0), before, after, or in the middle of it; at all
    later calls too if `lasting`."""

    def __init__(
        self,
        at: int | None,
        strike: Callable[[], None],
        when: str = BEFORE,
        only: tuple[str, ...] = CALLS,
        lasting: bool = False,
    ):
        self.at, self.strike, self.when, self.only, self.lasting = at, strike, when, only, lasting
        self.calls: list[str] = []

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def disturbed(*arguments: Any, **options: Any) -> Any:
            if name == "open" and not arguments[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return call(*arguments, **options)
            number = len(self.calls)
            self.calls.append(name)
            if self.at is None or number < self.at or (number > self.at and not self.lasting):
                return call(*arguments, **options)
            if self.when == BEFORE or number > self.at:
                self.strike()
            elif self.when == HALF:
                call(*_halved(name, arguments), **options)
                self.strike()
            try:
                return call(*arguments, **options)
            finally:
                self.strike()

        return disturbed

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Calls made in the block are neither counted nor disturbed."""
        calls, at, self.at = self.calls, self.at, None
        self.calls = []
        try:
            yield
        finally:
            self.calls, self.at = calls, at

    @contextmanager
    def in_force(self) -> Iterator[Disturbance]:
        functions = {name: getattr(module_of(name), name) for name in self.only}
        for name, call in functions.items():
            setattr(module_of(name), name, self.wrap(name, call))
        try:
            yield self
        finally:
            for name, call in functions.items():
                setattr(module_of(name), name, call)


def _halved(name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if name == "write":
        return arguments[0], arguments[1][: len(arguments[1]) // 2]
    return (*arguments[:2], arguments[2] // 2, *arguments[3:])


def fail_with(code: int) -> Callable[[], None]:
    def strike() -> None:
        raise OSError(code, os.strerror(code))

    return strike


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Killer:
    """A client that starts the server. Use it as a context manager."""

    def __enter__(self) -> Killer:
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            command, cwd=TESTS, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _order(self, **order: object) -> dict[str, Any]:
        print(json.dumps(order), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def calls(self, path: str, folder: Path) -> list[str]:
        """Run the command undisturbed; return its calls."""
        return self._order(path=path, folder=str(folder), at=None, when=BEFORE)["calls"]

    def kill_at(self, path: str, folder: Path, at: int, when: str) -> bool:
        """Run the command and kill it at that call; return whether it got that far."""
        return self._order(path=path, folder=str(folder), at=at, when=when)["killed"]

    def kill_everywhere(
        self, path: str, lay_out: Callable[[], Path], calls: Sequence[str]
    ) -> Iterator[Path]:
        """Kill the command at each moment of its calls, and after the last; yield its folder each
        time, which is laid out before."""
        for at, when in [*moments_of(calls), (len(calls) - 1, AFTER)]:
            folder = lay_out()
            assert self.kill_at(path, folder, at, when), f"{when} {calls[at]}, number {at}"
            yield folder

    def kill_after(self, path: str, folder: Path, seconds: float) -> bool:
        return self._order(path=path, folder=str(folder), at=None, when=BEFORE, seconds=seconds)[
            "killed"
        ]

    def seconds(self, path: str, folder: Path) -> float:
        """Return the seconds that the command takes."""
        return self._order(path=path, folder=str(folder), at=None, when=BEFORE)["seconds"]


def _serve() -> None:
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from faults.write_paths import INDEX_PATHS, TABLE_PATHS, WRITE_PATHS

    for line in sys.stdin:
        order = json.loads(line)
        start = time.perf_counter()
        back, forth = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(back)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(1, 2)
            random.seed(os.getpid())
            with Disturbance(order["at"], _die, order["when"]).in_force() as disturbance:
                code = {**WRITE_PATHS, **TABLE_PATHS, **INDEX_PATHS}[order["path"]].act(
                    Path(order["folder"])
                )
            os.write(forth, json.dumps(disturbance.calls).encode())
            os._exit(code)
        os.close(forth)
        if "seconds" in order:
            time.sleep(order["seconds"])
            os.kill(child, signal.SIGKILL)
        with os.fdopen(back, encoding="ascii") as stream:
            output = stream.read()
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        answer = {
            "killed": killed,
            "seconds": time.perf_counter() - start,
            "calls": json.loads(output) if output else [],
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
