"""What the stages of work on a lake answer with: one row a file, or a column chunk, in every engine the same.

Rows travel between processes and through Spark, where each field is a column: `runner.rows` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.verify import FilterProof


@dataclass(frozen=True)
class SurveyRow(FileRow):
    """What `advise` adds up."""

    survey: bytes | None = None
    """A pickled `FileSurvey`, for a process of the same version."""


@dataclass(frozen=True)
class PlannedPiece:
    """Row groups whose filters are built, or proven, together."""

    row_groups: tuple[int, ...]
    data_bytes: int
    """Compressed bytes of the chunks to read."""


@dataclass(frozen=True)
class PlannedFile(FileRow):
    """What a file is to get, or which of its filters are to be proven: `ok` where there is something to do."""

    bytes: int = 0
    fingerprint: str | None = None
    """Of length and footer: a file with another one has changed since."""
    columns: tuple[str, ...] = ()
    filters: int = 0
    data_bytes: int = 0
    pieces: tuple[PlannedPiece, ...] = ()


@dataclass(frozen=True)
class BuiltChunk(FileRow):
    """The filter of one column chunk, proven against the chunk's values; or, with another status than `ok`, why there is none."""

    fingerprint: str | None = None
    row_group: int = 0
    column: int = 0
    """The leaf's number in the schema."""
    values: int = 0
    data_bytes_read: int = 0
    bitset: bytes | None = None
    is_cross_checked: bool = False
    """pyarrow decoded the chunk too, to the same values."""
    is_undecodable: bool = False
    """pyarrow was to decode the chunk too, and cannot."""
    wrong_statistics: tuple[str, ...] = ()
    """What the footer states of the chunk, and its values contradict."""


@dataclass(frozen=True)
class ProvenFilter:
    column: int
    """The leaf's number in the schema."""
    proof: FilterProof


@dataclass(frozen=True)
class ProvenPiece(FileRow):
    """Proofs of the filters of some row groups; with another status than `ok`, why there are none."""

    fingerprint: str | None = None
    proofs: tuple[ProvenFilter, ...] = ()
