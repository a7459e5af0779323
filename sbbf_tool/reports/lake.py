"""Results of the stages of work on a lake: one row per file or column chunk, the same on every runner.

Rows are passed between processes and through Spark, where each field is a column: `reports.arrow` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.verify import FilterVerification


@dataclass(frozen=True)
class SurveyRow(FileRow):
    """Survey of one file, which `advise` adds up."""

    survey: bytes | None = None
    """A pickled `FileSurvey`, for a process of the same version."""


@dataclass(frozen=True)
class PlannedSplit:
    """A split of a file: row groups whose filters one task builds or verifies."""

    row_groups: tuple[int, ...]
    data_bytes: int
    """Compressed bytes of the chunks to read."""


@dataclass(frozen=True)
class PlannedFile(FileRow):
    """Filters to build or verify in a file; the status is `ok` if there is something to do."""

    bytes: int = 0
    fingerprint: str | None = None
    """Planned fingerprint, from length and footer: a file with a different fingerprint has changed since."""
    columns: tuple[str, ...] = ()
    filters: int = 0
    data_bytes: int = 0
    splits: tuple[PlannedSplit, ...] = ()
    not_measured: tuple[str, ...] = ()
    """Columns with existing filters that stay, and whose bits were not read."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""


@dataclass(frozen=True)
class BuiltChunk(FileRow):
    """The filter of one column chunk, verified against the chunk's values; `reason` says why there is none if the status is not `ok`."""

    fingerprint: str | None = None
    row_group: int = 0
    column: int = 0
    """Index of the leaf column in the schema."""
    values: int = 0
    data_bytes_read: int = 0
    bitset: bytes | None = None
    is_cross_checked: bool = False
    """Whether pyarrow also decoded the chunk, with equal values."""
    is_undecodable: bool = False
    """Whether the chunk needs a cross-check, but pyarrow cannot decode it."""
    wrong_statistics: tuple[str, ...] = ()
    """Statistics in the footer that the values of the chunk contradict."""


@dataclass(frozen=True)
class VerifiedFilter:
    column: int
    """Index of the leaf column in the schema."""
    verification: FilterVerification


@dataclass(frozen=True)
class VerifiedSplit(FileRow):
    """Verification of the filters of some row groups; `reason` says why there is none if the status is not `ok`."""

    fingerprint: str | None = None
    filters: tuple[VerifiedFilter, ...] = ()
