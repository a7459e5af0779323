"""What the HTML report shows of one file: the reports of other verbs, and the numbers that only
pictures need."""

from __future__ import annotations

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.verbs.inspect import InspectReport


class StoredPart(Frozen):
    """Bytes of a file with one content."""

    offset: int
    length: int
    kind: str
    """`pages`, `dictionary page`, `column index`, `offset index`, `filter`, `unreferenced`,
    `footer` or `other`."""
    name: str
    """What the bytes are, with column and row group if they belong to a chunk."""
    column: str | None = None


class FoldSize(Frozen):
    """A filter as it is, or folded to a half of its size any number of times."""

    bytes: int
    fpp: float


class FilterDetail(Frozen):
    """Numbers of one filter that come from its bits."""

    row_group: int
    column: str
    values: int | None
    """Stored values that are not null, duplicates included; None if the footer does not state
    it."""
    sizes: tuple[FoldSize, ...]
    blocks_by_bits: tuple[int, ...] = ()
    """Number of blocks with 0, 1, ... 256 bits set; empty if they were not counted."""


class EngineSteps(Frozen):
    """What one or several query engines do with each row group."""

    engines: tuple[str, ...]
    """Names of the engines; empty for any engine on the file without its filters."""
    steps: tuple[str, ...]
    """Per row group, as in `EngineExplanation`."""


class QuerySteps(Frozen):
    """What excludes each row group in one query."""

    query: str
    row_groups: int
    engines: tuple[EngineSteps, ...]
    """The file without its filters first."""
    problem: str | None = None
    """Why the file lacks a column of the query; its rows are then taken as null, or as what the
    partition states."""


class FileContents(Frozen):
    inspect: InspectReport
    check: CheckReport
    filters: tuple[FilterDetail, ...]
    parts: tuple[StoredPart, ...] = ()
    """The whole file from its first to its last byte; empty for one of many files."""
    queries: tuple[QuerySteps, ...] = ()


class UnreadableFile(Frozen):
    """A file that the page lists without pictures."""

    file: str
    reason: str


class PageFigure(Frozen):
    key: str
    """The anchor of the figure on the page."""
    title: str


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

    def _summary(self) -> str:
        return f"{self.output}: {format_size(self.bytes)}, {format_count(self.files, 'file')}"
