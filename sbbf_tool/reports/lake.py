"""What the stages of work on a lake answer with: one row a file, or a column chunk, in every engine the same.

Rows travel between processes and through Spark, where each field is a column: `runner.rows` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.findings import CheckReport
from sbbf_tool.reports.inspect import InspectReport
from sbbf_tool.reports.verify import FilterProof, VerifyReport

OK, SKIPPED, REFUSED, FAILED = "ok", "skipped", "refused", "failed"
"""Done; nothing to do, since the file has what it should; must not be done, as asked; could not be done."""


LINK = "a link that the listing of a folder met: name it to change the file that it leads to"
"""Why commands that change files skip it."""


@dataclass(frozen=True)
class LakeFile:
    """A file as a listing has it."""

    path: str
    bytes: int | None = None
    modified: float | None = None
    """Seconds since 1970."""
    is_link: bool = False
    """Whether a folder or glob led to it by way of a link; only where links are asked for."""


@dataclass(frozen=True)
class FileRow:
    """What every row of a file begins with."""

    path: str
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None
    """In words; None where the status is `ok`."""
    exit_code: int
    """That a command on this file alone would end with, findings and answers apart."""
    seconds: float


@dataclass(frozen=True)
class InspectRow(FileRow):
    report: InspectReport | None = None


@dataclass(frozen=True)
class VerifyRow(FileRow):
    report: VerifyReport | None = None


@dataclass(frozen=True)
class CheckRow(FileRow):
    report: CheckReport | None = None
    """Also of a file that could not be opened: then no rule was run."""


@dataclass(frozen=True)
class SurveyRow(FileRow):
    """What `advise` adds up."""

    survey: bytes | None = None
    """A pickled `FileSurvey`, for a process of the same version."""


@dataclass(frozen=True)
class KeyHit:
    """Row groups that may hold a value."""

    value: str
    row_groups: tuple[int, ...]


@dataclass(frozen=True)
class Unanswered:
    """Row groups that may hold any of the values, since no filter speaks for them: `no filter`, or `cannot say` with the reason."""

    row_groups: tuple[int, ...]
    answer: str
    reason: str | None


@dataclass(frozen=True)
class KeysReport:
    """What one file's filters say of many values; those that are certainly absent are not listed."""

    file: str
    column: str
    type: str
    keys: int
    """Values that were asked for."""
    row_groups: int
    hits: tuple[KeyHit, ...]
    unanswered: tuple[Unanswered, ...]
    bytes_read: int

    @property
    def is_absent(self) -> bool:
        """Every value is certainly absent from the whole file."""
        return not self.hits and not self.unanswered


@dataclass(frozen=True)
class ProbeRow(FileRow):
    report: KeysReport | None = None


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


@dataclass(frozen=True)
class FileOutcome(FileRow):
    """What became of one file."""

    filters: int = 0
    """Filters that were added."""
    bytes_added: int = 0
    data_bytes_read: int = 0
    warnings: tuple[str, ...] = ()
    cross_checked: int = 0
    """Column chunks that pyarrow decoded too, to the same values: of a writer that the tests do not know, or without statistics."""
    not_cross_checked: int = 0
    """Column chunks that pyarrow was to decode too, and cannot."""
