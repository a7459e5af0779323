"""Result of `remove_filters`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.change import ChangeReport
from sbbf_tool.reports.named_columns import NamedColumn

TRUNCATED, COMPACTED, NEW_FOOTER = "truncated", "compacted", "new footer"


@dataclass(frozen=True)
class RemovedFilter:
    row_group: int
    column: str


@dataclass(frozen=True, repr=False)
class RemoveReport(ChangeReport):
    _row = RemovedFilter

    filters: tuple[RemovedFilter, ...]
    method: str
    """`truncated` to the previous footer, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes in the file that nothing refers to any more."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    warnings: tuple[str, ...] = ()

    def _rows(self) -> Iterable[object]:
        return self.filters

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}"
