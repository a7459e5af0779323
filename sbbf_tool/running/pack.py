"""Pack many small units of work into few tasks by their bytes: starting a task costs more than processing a small file.

The cost of a unit is the number of bytes that its work reads, plus a constant for opening the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Unit = TypeVar("Unit")

OPENING_COST = 256 << 10
"""Cost of opening a file, parsing its footer and publishing it: decoding this many bytes takes about as long."""
TASK_COST = 64 << 20
"""Cost of one task: some seconds of work, or 256 nearly empty files."""
MOST_UNITS = 1000


def pack(units: Iterable[Unit], cost: Callable[[Unit], int], task_cost: int = TASK_COST, most: int = MOST_UNITS) -> Iterator[list[Unit]]:
    """Yield the units in order, packed into tasks of 1 to `most` units and, if possible, a cost of at most `task_cost`."""
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
