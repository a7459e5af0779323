"""What the reports of all operations that change one file have in common."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True, repr=False)
class ChangeReport(Tabular):
    """The file before and after a change."""

    _first = ("file",)

    file: str
    output: str
    """Path of the new file, which is `file` if it was changed in place."""
    dry_run: bool
    old_bytes: int
    new_bytes: int
