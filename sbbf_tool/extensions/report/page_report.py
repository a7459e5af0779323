"""Result of `write_report`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class UnreadableFile:
    """A file that the page lists without pictures."""

    file: str
    reason: str


@dataclass(frozen=True)
class PageFigure:
    key: str
    """The anchor of the figure on the page."""
    title: str


@dataclass(frozen=True, repr=False)
class PageReport(Tabular):
    """The page that was written, and what it is about."""

    _row = PageFigure
    _first = ("output",)

    output: str
    bytes: int
    files: int
    """Number of files that the page describes."""
    row_groups: int
    filters: int
    findings: int
    figures: tuple[PageFigure, ...]
    unreadable: tuple[UnreadableFile, ...] = ()
    """The first files that could not be read, each with the reason."""
    unreadable_files: int = 0
    """Number of files that could not be read."""
    exit_code: int = 0
    """The highest exit code of these files."""

    def _rows(self) -> Iterable[object]:
        return self.figures

    def _summary(self) -> str:
        return f"{self.output}: {format_size(self.bytes)}, {format_count(self.files, 'file')}"
