"""What `add_filters` answers with; whoever else builds filters tells of them as it does."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class BuiltFilter:
    """One filter as it was written, or, of a dry run, as it would be."""

    row_group: int
    column: str
    values: int
    """Non-null values that were hashed; those of a dictionary page once each."""
    estimated_ndv: float | None
    offset: int
    header_bytes: int
    bitset_bytes: int
    fpp: float
    """Error rate measured from the bits that are set."""


@dataclass(frozen=True)
class AddReport:
    file: str
    output: str
    dry_run: bool
    old_bytes: int
    new_bytes: int
    filters: tuple[BuiltFilter, ...]
    skipped: int
    """Column chunks that had a filter already, and keep it."""
    data_bytes_read: int
    """Bytes of the chunks that were read to build them: of data pages that refer to a dictionary, their headers."""
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow decoded too, to the same values: of a writer that the tests do not know, or without statistics."""
    not_cross_checked: int = 0
    """Column chunks that pyarrow was to decode too, and cannot."""

    @property
    def bytes_added(self) -> int:
        return self.new_bytes - self.old_bytes


@dataclass(frozen=True)
class AddRow(FileRow):
    report: AddReport | None = None
    """Also of a file that was skipped, since it has every filter; None where nothing could be done."""


@dataclass(frozen=True)
class AddPlan:
    """What a file would get, as its footer tells."""

    file: str
    bytes: int
    columns: tuple[str, ...]
    filters: int
    data_bytes: int
    """Compressed bytes of the column chunks to read."""


@dataclass(frozen=True)
class PlanRow(FileRow):
    report: AddPlan | None = None
