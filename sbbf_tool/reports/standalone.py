"""Results of `inspect` and `verify` for a standalone filter."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True, repr=False)
class StandaloneReport(Tabular):
    """Standalone filter: header and bitset, without the column that they belong to."""

    file: str
    file_bytes: int
    header: str
    """Form of the header: the released one, or the one of a draft."""
    header_bytes: int
    bitset_bytes: int
    blocks: int
    dialects: tuple[str, ...]
    """Dialects that the header fits."""
    fill_ratio: float
    estimated_fpp: float
    estimated_ndv: float | None
    """None if the filter is saturated."""
    warnings: tuple[str, ...] = ()

    def _summary(self) -> str:
        return f"{self.file}: 1 filter"


@dataclass(frozen=True)
class StandaloneRow(FileRow):
    report: StandaloneReport | None = None


@dataclass(frozen=True, repr=False)
class StandaloneVerification(Tabular):
    """Membership check of a standalone filter."""

    file: str
    type: str
    dialects: tuple[str, ...]
    """Dialects that the header fits, or the given one."""
    dialect: str | None
    """The one of these dialects in which the filter holds the values, or the given one; None if there is none or several."""
    verified_values: int
    """Number of values that were checked; nulls and NaN cannot be checked and do not count."""
    false_negatives: int
    """Number of false negatives; all values count if `dialect` is None."""
    examples: tuple[str, ...]
    """Some of the false negatives, as given."""
    estimated_fpp: float

    @property
    def is_verified(self) -> bool:
        return self.dialect is not None and not self.false_negatives

    def _summary(self) -> str:
        return f"{self.file}: {format_count(self.verified_values, 'value')}, {format_count(self.false_negatives, 'false negative')}"
