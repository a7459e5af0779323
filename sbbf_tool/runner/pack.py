"""Many small units of work into few tasks, by bytes: to start a task costs more than a small file.

The cost of a unit is counted in bytes of data: what must be decoded, a share of what is merely copied, and a constant for opening it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Unit = TypeVar("Unit")

OPENING_COST = 256 << 10
"""To open a file, parse its footer and publish it takes as long as decoding about so many bytes."""
TASK_COST = 64 << 20
"""Some seconds of work, or 256 files of nearly nothing."""
MOST_UNITS = 1000


def pack(units: Iterable[Unit], cost: Callable[[Unit], int], task_cost: int = TASK_COST, most: int = MOST_UNITS) -> Iterator[list[Unit]]:
    """The units in their order, as many in a task as fit into `task_cost`, and at least one; no more than `most`."""
    task: list[Unit] = []
    filled = 0
    for unit in units:
        weight = cost(unit) + OPENING_COST
        if task and (filled + weight > task_cost or len(task) >= most):
            yield task
            task, filled = [], 0
        task.append(unit)
        filled += weight
    if task:
        yield task
