"""Result of `remove_filters`."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class RemovedFilter:
    row_group: int
    column: str


@dataclass(frozen=True)
class RemoveReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[RemovedFilter, ...]
    method: str
    """`truncated` to the previous footer, `compacted`, or `new footer`."""
    unreferenced_bytes: int
    """Bytes in the file that nothing refers to any more."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class RemoveRow(FileRow):
    report: RemoveReport | None = None
