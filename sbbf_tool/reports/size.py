"""Result of `size_filter`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular


@dataclass(frozen=True)
class SizeChoice:
    """One size of a filter, and what it gives."""

    choice: str
    """`chosen`, `next smaller` or `next larger`."""
    bitset_bytes: int
    header_bytes: int
    blocks: int
    fpp: float
    """False-positive rate with `ndv` values."""
    bits_per_value: float
    most_values: int
    """The largest number of distinct values with which this size has at most the target false-positive rate."""


@dataclass(frozen=True)
class DialectSize:
    """The bytes of the filter in one dialect: the released format, or a draft."""

    dialect: str
    header_bytes: int
    bytes: int
    """Bytes of header and bitset."""
    rules: str
    """The hash, and how it chooses a block."""


@dataclass(frozen=True, repr=False)
class SizeReport(Tabular):
    """The size of a filter, its number of distinct values and its false-positive rate."""

    _row = SizeChoice

    ndv: int
    """Number of distinct values, as given, or as many as the size holds at `fpp`."""
    fpp: float
    """Target false-positive rate, or the one that the given number of values and size result in."""
    bitset_bytes: int
    sizes: tuple[SizeChoice, ...]
    """The next smaller power of two, the chosen size, and the next larger power of two, from 64 bytes to 128 MiB."""
    bits_per_value: float
    """Bits per value that a filter needs for `fpp`, if its size need not be a power of two."""
    formula_bits_per_value: float
    """The same by the closed formula of the first draft, `-8 / log(1 - fpp^(1/8))`, which some writers still use."""
    formula_fpp: float
    """False-positive rate of a filter with that many bits per value."""
    formula_bytes: int
    """Bytes of the bitset that a writer chooses by that formula: a power of two."""
    dialects: tuple[DialectSize, ...]
    """The filter in the released format and in each draft, all with the same bitset size and false-positive rate. Drafts without Thrift
    had only powers of two.
    """

    def _rows(self) -> Iterable[object]:
        return self.sizes

    def _summary(self) -> str:
        return f"{format_count(self.ndv, 'value')}: {format_count(self.bitset_bytes, 'byte')}"
