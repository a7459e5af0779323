"""A figure of a benchmark beside its peer and its target, and how commands are timed."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple


class Target(NamedTuple):
    """What is wanted of a figure."""

    text: str
    is_reached: Callable[[Figure], bool]

    @classmethod
    def times_faster(cls, bound: float) -> Target:
        return cls(
            f"at least {bound:g} x faster",
            lambda figure: figure.peer_amount / figure.amount >= bound,
        )

    @classmethod
    def of_the_peer(cls, bound: float) -> Target:
        return cls(
            f"at most {bound:g} x of it", lambda figure: figure.amount / figure.peer_amount <= bound
        )

    @classmethod
    def in_seconds(cls, bound: float) -> Target:
        return cls(f"at most {bound:g} s", lambda figure: figure.amount <= bound)


class Figure(NamedTuple):
    """Medians of `sbbf` and of the peer, measured in turn in the same run."""

    name: str
    amount: float
    peer: str
    peer_amount: float
    target: Target
    note: str = ""
    layout: str = "{:.2f} s"

    @property
    def ratio(self) -> str:
        if self.target.text.endswith("faster"):
            return f"{self.peer_amount / self.amount:.2f} x faster"
        return f"{self.amount / self.peer_amount:.2f} x of it"

    @property
    def is_reached(self) -> bool:
        return self.target.is_reached(self)


def timed(command: list[str]) -> float:
    """Return the seconds of a whole process."""
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode not in ((0, 1) if "probe" in command else (0,)):
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stderr}")
    return seconds


def in_turn(rounds: int, work: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The median of each piece of work, measured round after round so that a busy minute hits all
    alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, once in work.items():
            times[name].append(once())
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def measure(
    rounds: int,
    name: str,
    ours: Callable[[], float],
    peer: str,
    theirs: Callable[[], float],
    target: Target,
) -> Figure:
    times = in_turn(rounds, {"ours": ours, "peer": theirs})
    return Figure(name, times["ours"], peer, times["peer"], target)


def command(*words: object) -> Callable[[], float]:
    return lambda: timed(list(map(str, words)))


def python(program: str, *arguments: object) -> Callable[[], float]:
    return lambda: timed([sys.executable, "-c", program, *map(str, arguments)])


def usage_of(command: list[str]) -> tuple[float, int]:
    """Return the processor time of a process in seconds, and its peak memory in bytes."""
    program = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "usage = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *command], check=True, capture_output=True, text=True
    )
    seconds, peak = done.stdout.split()
    return float(seconds), int(peak)


def cost_of(command: list[str]) -> str:
    """Describe the cost on which other processes have less influence than on the time."""
    seconds, peak = usage_of(command)
    return f"{seconds:.2f} s of processor time, peak of {peak / 1e6:,.0f} MB"
