"""Result of `resize_filters`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.change import ChangeReport, SaturatedFilter
from sbbf_tool.reports.named_columns import NamedColumn


@dataclass(frozen=True)
class ResizedFilter:
    """One filter that was folded; in a dry run, one that would be."""

    row_group: int
    column: str
    offset: int
    old_bytes: int
    """Bytes of the old bitset; `new_bytes` is the size of the new one."""
    new_bytes: int
    old_fpp: float
    new_fpp: float


@dataclass(frozen=True)
class FilterSize:
    """A size to which one filter can be folded, or its present size, and the false-positive rate that its bits give at that size."""

    row_group: int
    column: str
    bytes: int
    fpp: float


@dataclass(frozen=True, repr=False)
class ResizeReport(ChangeReport):
    _row = ResizedFilter

    filters: tuple[ResizedFilter, ...]
    unchanged: int
    """Number of filters that already have the requested size."""
    not_resized: tuple[str, ...]
    """Filters that cannot be folded to the requested size: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()
    saturated_filters: tuple[SaturatedFilter, ...] = ()
    """Filters that were left out because they would exclude hardly any value."""
    sizes: tuple[FilterSize, ...] = ()
    """In a dry run: the present size of each filter, and every half of it down to 64 bytes."""

    def _rows(self) -> Iterable[object]:
        return self.filters

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}"
