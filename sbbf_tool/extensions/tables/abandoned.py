"""Result of `repair` for the copies of files that runs left in a table."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True, slots=True)
class AbandonedCopy:
    """A copy that no version of the table refers to, made by a run that is no longer at work."""

    path: str
    run: str
    """Id of the run, which is part of the copy's name."""
    age_seconds: float
    """Seconds since the run renewed its marker; since the copy was written, if there is no marker."""


@dataclass(frozen=True, repr=False)
class AbandonedReport(Tabular):
    """The abandoned copies in a table."""

    table: str
    copies: tuple[AbandonedCopy, ...]
    deleted: bool
    """Whether the copies were deleted."""
    younger: int = 0
    """Number of copies that no version refers to, but that a run may still commit."""

    def _summary(self) -> str:
        done = "deleted" if self.deleted else "abandoned"
        return f"{self.table}: {format_count(len(self.copies), 'copy', 'copies')} {done}"
