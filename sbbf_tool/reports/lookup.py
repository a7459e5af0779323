"""Result of a lookup of many values in one file."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class KeyHit:
    """Row groups that may hold a value."""

    value: str
    row_groups: tuple[int, ...]


@dataclass(frozen=True)
class InconclusiveRowGroups:
    """Row groups that may hold any of the values, since no filter excludes them: `no filter`, or `cannot say` with the reason."""

    row_groups: tuple[int, ...]
    answer: str
    reason: str | None


@dataclass(frozen=True)
class LookupReport:
    """Answers of the filters of one file for many values. Values that are certainly absent are not listed."""

    file: str
    column: str
    type: str
    keys: int
    """Number of values that were looked up."""
    row_groups: int
    hits: tuple[KeyHit, ...]
    inconclusive: tuple[InconclusiveRowGroups, ...]
    bytes_read: int
    requests: int = 0
    """Requests to a server; 0 for a local file."""

    @property
    def is_absent(self) -> bool:
        """Whether every value is certainly absent from the whole file."""
        return not self.hits and not self.inconclusive


@dataclass(frozen=True)
class LookupRow(FileRow):
    report: LookupReport | None = None
