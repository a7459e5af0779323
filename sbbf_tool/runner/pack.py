"""Pack many small units of work into few tasks, by bytes: starting a task costs more than a small file.

The cost of a unit is counted in bytes: the bytes that its work reads, and a constant for opening the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Unit = TypeVar("Unit")

OPENING_COST = 256 << 10
"""Bytes whose decoding takes about as long as opening a file, parsing its footer and publishing it."""
TASK_COST = 64 << 20
"""Bytes of one task: some seconds of work, or 256 nearly empty files."""
MOST_UNITS = 1000


def pack(units: Iterable[Unit], cost: Callable[[Unit], int], task_cost: int = TASK_COST, most: int = MOST_UNITS) -> Iterator[list[Unit]]:
    """Yield the units in order, packed into tasks of at least one unit, at most `most` units, and at most `task_cost` where possible."""
    task: list[Unit] = []
    task_bytes = 0
    for unit in units:
        weight = cost(unit) + OPENING_COST
        if task and (task_bytes + weight > task_cost or len(task) >= most):
            yield task
            task, task_bytes = [], 0
        task.append(unit)
        task_bytes += weight
    if task:
        yield task
