"""`size`: compute the size of a filter, its number of distinct values or its false-positive rate
from the other two."""

from __future__ import annotations

from collections.abc import Iterator

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.dialects import DIALECTS, RAW_12, RAW_16
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.filters import build_draft_header, build_header
from sbbf_tool.reports.tabular import Tabular


class SizeChoice(Frozen):
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
    """The largest number of distinct values with which this size has at most the target
    false-positive rate."""


class DialectSize(Frozen):
    """The bytes of the filter in one dialect: the released format, or a draft."""

    dialect: str
    header_bytes: int
    bytes: int
    """Bytes of header and bitset."""
    rules: str
    """The hash, and how it chooses a block."""


class SizeReport(Tabular):
    """The size of a filter, its number of distinct values and its false-positive rate."""

    _row = SizeChoice

    ndv: int
    """Number of distinct values, as given, or as many as the size holds at `fpp`."""
    fpp: float
    """Target false-positive rate, or the one that the given number of values and size result in."""
    bitset_bytes: int
    sizes: tuple[SizeChoice, ...]
    """The next smaller power of two, the chosen size, and the next larger power of two, from 64
    bytes to 128 MiB."""
    bits_per_value: float
    """Bits per value that a filter needs for `fpp`, if its size need not be a power of two."""
    formula_bits_per_value: float
    """The same by the closed formula of the first draft, `-8 / log(1 - fpp^(1/8))`, which some
    writers still use."""
    formula_fpp: float
    """False-positive rate of a filter with that many bits per value."""
    formula_bytes: int
    """Bytes of the bitset that a writer chooses by that formula: a power of two."""
    dialects: tuple[DialectSize, ...]
    """The filter in the released format and in each draft, all with the same bitset size and
    false-positive rate. Drafts without Thrift had only powers of two.
    """

    def _summary(self) -> str:
        return f"{format_count(self.ndv, 'value')}: {format_count(self.bitset_bytes, 'byte')}"


CHOSEN = "chosen"
SMALLER = "next smaller"
LARGER = "next larger"


def size_filter(
    *, ndv: int | None = None, fpp: float | None = None, max_bytes: int | None = None
) -> SizeReport:
    """Compute the size of a filter for `ndv` distinct values at the false-positive rate `fpp`, or
    what a size of `max_bytes` gives.

    ndv              the smallest power of two from 64 bytes to 128 MiB whose rate is at most `fpp`,
                     0.01 if None
    max_bytes        the number of distinct values that a bitset of this size holds at `fpp`
    ndv, max_bytes   the rate of a bitset of this size with `ndv` values

    The report also has the next smaller and the next larger size, the bytes in each draft of the
    format, and the size by the closed formula of the first draft. Raises UsageError for other
    combinations, and for numbers that no filter has.
    """
    _ensure_two_given(ndv, fpp, max_bytes)
    target = DEFAULT_FPP if fpp is None else fpp
    sizing.ensure_fpp(target)
    target = min(target, _MOST_FPP)
    num_bytes = max_bytes
    if num_bytes is None:
        assert ndv is not None
        num_bytes = sizing.bytes_for(ndv, target)
    elif ndv is not None:
        target = sizing.fpp_of(ndv, num_bytes)
    else:
        ndv = sizing.most_values(num_bytes, target)
        if not ndv:
            message = f"a bitset of {num_bytes:,} bytes holds no value at {target:g}"
            raise UsageError(message, hint=f"one value has {sizing.fpp_of(1, num_bytes):.2g}")
    # Rates that round to 0 or 1 have no bits per value.
    rate = min(max(target, sizing.LEAST_FPP), _MOST_FPP)
    formula_bits = sizing.formula_bits_per_value(rate)
    return SizeReport(
        ndv=ndv,
        fpp=target,
        bitset_bytes=num_bytes,
        sizes=tuple(_choice(name, size, ndv, rate) for name, size in _neighbours(num_bytes)),
        bits_per_value=sizing.bits_per_value(rate),
        formula_bits_per_value=formula_bits,
        formula_fpp=sizing.fpp_of_bits(formula_bits),
        formula_bytes=sizing.formula_bytes(ndv, rate),
        dialects=tuple(_size_by_dialect(num_bytes)),
    )


_MOST_FPP = 1 - 2**-40


def _size_by_dialect(num_bytes: int) -> Iterator[DialectSize]:
    """Yield the bytes of a filter in each dialect that has bitsets of this size."""
    is_power_of_two = num_bytes.bit_count() == 1
    for dialect in DIALECTS:
        if is_power_of_two or dialect.header not in (RAW_12, RAW_16):
            header = len(build_draft_header(dialect, num_bytes))
            yield DialectSize(dialect.name, header, header + num_bytes, dialect.sentence)


def _ensure_two_given(ndv: int | None, fpp: float | None, num_bytes: int | None) -> None:
    """Raise UsageError unless the numbers determine a filter."""
    if ndv is None and num_bytes is None:
        raise UsageError("give ndv, a size in bytes, or both")
    if None not in (ndv, fpp, num_bytes):
        raise UsageError("ndv and size determine fpp: give two of them")
    if ndv is not None and not 1 <= ndv <= sizing.MOST_VALUES:
        raise UsageError(f"ndv must be from 1 to {sizing.MOST_VALUES}, not {ndv}")
    if num_bytes is not None and not BLOCK_BYTES <= num_bytes <= sizing.MAX_BYTES:
        raise UsageError(
            f"the size must be from {BLOCK_BYTES} to {sizing.MAX_BYTES} bytes, not {num_bytes}"
        )


def _neighbours(num_bytes: int) -> list[tuple[str, int]]:
    """Return the size between the powers of two next to it, as far as filters of those sizes may be
    written."""
    smaller = 1 << (num_bytes - 1).bit_length() - 1
    larger = 1 << num_bytes.bit_length()
    sizes = [(CHOSEN, num_bytes)]
    if smaller >= sizing.MIN_BYTES:
        sizes.insert(0, (SMALLER, smaller))
    if larger <= sizing.MAX_BYTES:
        sizes.append((LARGER, larger))
    return sizes


def _choice(name: str, num_bytes: int, ndv: int, target: float) -> SizeChoice:
    return SizeChoice(
        choice=name,
        bitset_bytes=num_bytes,
        header_bytes=len(build_header(num_bytes)),
        blocks=num_bytes // BLOCK_BYTES,
        fpp=sizing.fpp_of(ndv, num_bytes),
        bits_per_value=num_bytes * 8 / ndv,
        most_values=sizing.most_values(num_bytes, target),
    )
