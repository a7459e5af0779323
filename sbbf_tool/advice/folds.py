"""What the filters of a column take as they are and at every half of their size, exactly, from their bits alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sbbf_tool.frozen import Frozen


@dataclass(slots=True)
class _Sum:
    filters: int = 0
    bytes: int = 0
    fpp: float = 0.0
    worst_fpp: float = 0.0

    def add(self, filters: int, num_bytes: int, fpp: float, worst_fpp: float) -> None:
        self.filters += filters
        self.bytes += num_bytes
        self.fpp += fpp
        self.worst_fpp = max(self.worst_fpp, worst_fpp)


@dataclass(slots=True)
class Folds:
    """Sums over filters, in memory that does not grow with their number."""

    fpp: float
    """Target false-positive rate."""
    bytes_at_target: int = 0
    """Bytes of the bitsets, each folded to the smallest size that meets the target, if any does."""
    _steps: list[_Sum] = field(default_factory=list)
    """For each number of halvings, the filters that can be folded so often."""
    _ends: list[_Sum] = field(default_factory=list)
    """For each number of halvings, the filters that can be folded so often and no further."""

    def add(self, sizes: tuple[tuple[int, float], ...]) -> None:
        """Add a filter by the bytes and the false-positive rate of each of its folds, beginning with the filter itself."""
        self.bytes_at_target += next((num_bytes for num_bytes, fpp in reversed(sizes) if fpp <= self.fpp), sizes[0][0])
        while len(self._steps) < len(sizes):
            self._steps.append(_Sum())
            self._ends.append(_Sum())
        for step, (num_bytes, fpp) in zip(self._steps, sizes, strict=False):
            step.add(1, num_bytes, fpp, fpp)
        self._ends[len(sizes) - 1].add(1, *sizes[-1], sizes[-1][1])

    def sizes(self) -> Iterator[FoldedSize]:
        """Yield the totals at each number of halvings; a filter that cannot be folded so often keeps its smallest size."""
        for halvings, step in enumerate(self._steps):
            total = _Sum()
            for part in (step, *self._ends[:halvings]):
                total.add(part.filters, part.bytes, part.fpp, part.worst_fpp)
            yield FoldedSize(halvings, total.bytes, total.fpp / total.filters, total.worst_fpp)


class FoldedSize(Frozen):
    """The filters of one column after a number of halvings, exactly, from their bits."""

    halvings: int
    bytes: int
    """Bytes of all bitsets; a filter that cannot be folded so often keeps its smallest size."""
    mean_fpp: float
    worst_fpp: float
