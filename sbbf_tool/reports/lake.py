"""Results of the stages of work on a lake: one row per file or column chunk, the same on every runner.

Rows travel between processes and through Spark, where each field is a column: `runner.rows` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.verify import FilterVerification


@dataclass(frozen=True)
class SurveyRow(FileRow):
    """Survey of one file, as summed up by `advise`."""

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
    """Filters to build in a file, or to verify: `ok` where there is something to do."""

    bytes: int = 0
    fingerprint: str | None = None
    """Planned fingerprint, of length and footer: a file with another one has changed since."""
    columns: tuple[str, ...] = ()
    filters: int = 0
    data_bytes: int = 0
    splits: tuple[PlannedSplit, ...] = ()


@dataclass(frozen=True)
class BuiltChunk(FileRow):
    """The filter of one column chunk, verified against its values; or, with another status than `ok`, why there is none."""

    fingerprint: str | None = None
    row_group: int = 0
    column: int = 0
    """Index of the leaf column in the schema."""
    values: int = 0
    data_bytes_read: int = 0
    bitset: bytes | None = None
    is_cross_checked: bool = False
    """Whether pyarrow decoded the chunk as well, with equal values."""
    is_undecodable: bool = False
    """Whether pyarrow was to decode the chunk as well, but cannot."""
    wrong_statistics: tuple[str, ...] = ()
    """Statistics in the footer that the values of the chunk contradict."""


@dataclass(frozen=True)
class VerifiedFilter:
    column: int
    """Index of the leaf column in the schema."""
    verification: FilterVerification


@dataclass(frozen=True)
class VerifiedSplit(FileRow):
    """Verification of the filters of some row groups; with another status than `ok`, why there is none."""

    fingerprint: str | None = None
    filters: tuple[VerifiedFilter, ...] = ()
