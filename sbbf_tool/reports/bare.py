"""What `inspect` and `verify` answer with for a filter that stands in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.reports.rows import FileRow


@dataclass(frozen=True)
class BareReport:
    """Header and bitset, and nothing that tells what column they are of."""

    file: str
    file_bytes: int
    header: str
    """Which form it has: today's, or a draft's."""
    header_bytes: int
    bitset_bytes: int
    blocks: int
    dialects: tuple[str, ...]
    """Those that the header fits."""
    fill_ratio: float
    estimated_fpp: float
    estimated_ndv: float | None
    """None where the filter is saturated."""
    oddities: tuple[str, ...] = ()


@dataclass(frozen=True)
class BareRow(FileRow):
    report: BareReport | None = None


@dataclass(frozen=True)
class BareProof:
    """A bare filter asked for values that it should hold."""

    file: str
    type: str
    dialects: tuple[str, ...]
    """Those that the header fits, or the one that was named."""
    dialect: str | None
    """Of these the one that holds the values, or the one that was named; None where no single one does."""
    values: int
    """Those that were asked for; of nulls and NaN nothing can be said, and they are not counted."""
    missed: int
    """All of them where no dialect is told."""
    examples: tuple[str, ...]
    """Some of the missed values, as they were written."""
    estimated_fpp: float

    @property
    def is_proven(self) -> bool:
        return self.dialect is not None and not self.missed
