"""Result of `verify`."""

from __future__ import annotations

from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular


class FilterVerification(Frozen):
    """Membership check of one filter with every value of its column chunk."""

    row_group: int
    column: str
    type: str
    offset: int
    header_bytes: int | None
    """Like all fields that depend on the bitset, None if the bytes at `offset` are not a readable filter."""
    bitset_bytes: int | None
    stated_length: int | None
    """`bloom_filter_length` in the footer."""
    verified_values: int = 0
    """Number of non-null values of the chunk that were checked."""
    false_negatives: int = 0
    """Number of false negatives among these values: a query loses their rows. NaN is counted separately."""
    examples: tuple[str, ...] = ()
    """Some of the false negatives, in the form that `probe` accepts."""
    cause: str | None = None
    """Form in which the filter holds the false negatives, if known: `text`, `width`, `block`, `draft`; `empty` for an empty filter."""
    explanation: str | None = None
    """The cause as a sentence."""
    excluded_nans: int = 0
    """NaN values that the filter excludes. This is no defect, since NaN is stored in many forms and equals nothing."""
    excluded_forms: tuple[str, ...] = ()
    """Values that the filter excludes although they equal a stored value in another form: the other zero; the canonical `nan`."""
    excluded_intervals: int = 0
    """INTERVAL values whose normalised form the filter lacks, although the metadata claims otherwise; DuckDB queries only that form."""
    excluded_instants: int = 0
    """INT96 instants that are stored in a form that is not rounded down, while the filter lacks the rounded-down form."""
    estimated_fpp: float | None = None
    """False-positive rate, estimated from the bits that are set."""
    measured_fpp: float | None = None
    """False-positive rate, measured with `absent_keys`."""
    absent_keys: int = 0
    """Number of random keys, as wide as the column's values, that the chunk does not hold."""
    problem: str | None = None
    """Why the filter could not be verified."""
    dialect: str | None = None
    """For a filter with the header of a draft: the dialect in which it holds the values, if any."""

    wrong_statistics: tuple[str, ...] = ()
    """Statistics in the footer (min_value, max_value, null_count) that the values contradict; this is no defect of the filter."""

    @property
    def is_verified(self) -> bool:
        """Whether the filter was verified and holds every value that it must."""
        return self.problem is None and not self.false_negatives and not self.excluded_intervals


class VerifyReport(Tabular):
    _row = FilterVerification
    _first = ("file",)

    file: str
    created_by: str | None
    filters: tuple[FilterVerification, ...]
    findings: tuple[Finding, ...]
    """Findings that a filter contradicts the data or the format, or that released readers lose rows or fail; never about its cost."""
    unreadable: tuple[str, ...]
    """Chunks whose filters were not verified, because pages could not be decoded: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose filters were not verified, because their keys were not given; whether such a column has filters may be unknown."""

    @property
    def is_sound(self) -> bool:
        """Whether no finding is an error."""
        return not any(finding.severity == ERROR for finding in self.findings)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.filters), 'filter')}, {format_count(len(self.findings), 'finding')}"
