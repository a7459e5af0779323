"""What `verify` answers with."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.findings import ERROR, Finding
from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class FilterProof:
    """One filter, asked for every value of its column chunk."""

    row_group: int
    column: str
    type: str
    offset: int
    header_bytes: int | None
    """None, like all that follows from the bitset, where the bytes at `offset` cannot be read as a filter."""
    bitset_bytes: int | None
    stated_length: int | None
    """`bloom_filter_length` of the footer."""
    values: int
    """Non-null values of the chunk that were asked for."""
    missed: int
    """Of those, the ones that the filter calls absent: rows that a query loses. NaN is counted apart."""
    examples: tuple[str, ...]
    """Some of the missed values, as `probe` takes them."""
    cause: str | None
    """How the missed values got in instead, where that could be found: `text`, `width`, `block`, `draft`; `empty` where nothing got in."""
    explanation: str | None
    """The cause in words."""
    nans_missed: int
    """NaN values that the filter calls absent: not a fault, since NaN is stored in many forms and equals nothing."""
    equals_missed: tuple[str, ...]
    """Values that are not stored, equal one that is, and are called absent: the other zero; `nan` in its canonical form."""
    intervals_missed: int
    """INTERVAL values of which the filter lacks the normalised form that the file says it holds, the only one DuckDB asks for."""
    instants_missed: int
    """INT96 instants that are stored in another form than the one rounded down, and that the filter does not hold in that one."""
    estimated_fpp: float | None
    """Share of absent values that pass, from the bits that are set."""
    measured_fpp: float | None
    """The same share, measured with `absent_keys`."""
    absent_keys: int
    """Random keys of the column's width that the chunk does not hold."""
    unproven: str | None = None
    """Why the filter could not be asked."""
    dialect: str | None = None
    """Of a filter with a draft's header: the dialect that its values are found in, where one is."""

    wrong_statistics: tuple[str, ...] = ()
    """What the footer states of the chunk (min_value, max_value, null_count) and its values contradict: no fault of the filter."""

    @property
    def is_proven(self) -> bool:
        """The filter was asked, and knows every value that it owes."""
        return self.unproven is None and not self.missed and not self.intervals_missed


@dataclass(frozen=True)
class VerifyReport:
    file: str
    created_by: str | None
    filters: tuple[FilterProof, ...]
    findings: tuple[Finding, ...]
    """What contradicts the data or the format, or makes released readers lose rows or fail. Never whether a filter is worth its bytes."""
    unread: tuple[str, ...]
    """Chunks whose pages could not be decoded, so that nothing is proven of their filters: place and reason."""

    @property
    def is_sound(self) -> bool:
        """No finding is an error."""
        return not any(finding.severity == ERROR for finding in self.findings)


@dataclass(frozen=True)
class VerifyRow(FileRow):
    report: VerifyReport | None = None
