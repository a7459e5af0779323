"""What `resize_filters` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class ResizedFilter:
    """One filter that was made smaller, or built anew, or, of a dry run, would be."""

    row_group: int
    column: str
    way: str
    """`folded`, or `rebuilt` from the data."""
    offset: int
    old_bytes: int
    """Of the bitset, like `new_bytes`."""
    new_bytes: int
    old_fpp: float
    new_fpp: float


@dataclass(frozen=True)
class ResizeReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[ResizedFilter, ...]
    unchanged: int
    """Filters that already have the size."""
    left: tuple[str, ...]
    """Filters that folding does not bring to the size: place and reason."""
    data_bytes_read: int = 0
    """Bytes of the chunks that were read to rebuild filters."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow decoded too, to the same values: of a writer that the tests do not know, or without statistics."""
    not_cross_checked: int = 0
    """Column chunks that pyarrow was to decode too, and cannot."""


@dataclass(frozen=True)
class ResizeRow(FileRow):
    report: ResizeReport | None = None
