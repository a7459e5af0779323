"""Whether an existing filter satisfies a request for filters, judged from its bits.

A filter satisfies a request if its measured FPP is at most 1.25 x the target, and its bitset at
most 4 x what its values need. The measured FPP and number of values are those of the bits that are
set. A filter as large as the request allows, or of the size that it states, satisfies it too:
building it again gives no better one. For the same reason, a filter is too large only if it can be
folded without missing the target.
"""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.numbers import format_percent

SATISFIED = "satisfied"
MISSING = "missing"
WEAKER = "weaker"
TOO_LARGE = "too large"
BROKEN = "broken"
NOT_MEASURED = "not measured"

FPP_TOLERANCE = 1.25
"""Greatest measured FPP of a filter that satisfies a request, as a multiple of the target."""
LARGE_SHARE = 0.25
"""Share of the bytes of its data above which a filter is not larger than it must be."""
SIZE_TOLERANCE = 4
"""Greatest size of a filter that satisfies a request, as a multiple of the size that its values
need."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """How one column chunk and its filter compare with a request."""

    outcome: str
    """`SATISFIED`, `MISSING`, `WEAKER`, `TOO_LARGE`, `BROKEN` or `NOT_MEASURED`."""
    fact: str = ""
    """The numbers or the defect behind the outcome, for people."""
    is_limited: bool = False
    """Whether a limit on the size keeps the filter, which satisfies the request, from the target
    FPP. Of a missing filter: whether the limit may leave room only for one that is not worth
    writing.
    """

    @property
    def needs_rebuild(self) -> bool:
        """Whether a new filter would satisfy the request, in place of the existing one."""
        return self.outcome in (WEAKER, TOO_LARGE, BROKEN)


def judge_filter(
    bloom: BloomFilter, target: Sizing, values: int | None, forms: int = 1
) -> Judgment:
    """Judge a filter in today's format, of a chunk with `values` non-null values (None if unknown),
    each inserted in `forms` forms."""
    if not bloom.bits_set and values:
        return Judgment(BROKEN, f"no bit is set, but the chunk has {values:,} values")
    size = bloom.num_bytes
    stated_bytes = target.bytes_for(0, forms) if target.is_stated else None
    if size == stated_bytes:
        return Judgment(SATISFIED, is_limited=_is_weak(bloom, target))
    most = min(target.max_bytes, sizing.MAX_BYTES)
    if size > most:
        return Judgment(TOO_LARGE, f"{size:,} bytes; the limit is {most:,}")
    if _is_weak(bloom, target):
        rate = f"fpp {format_percent(bloom.fpp)} for a target of {target.fpp * 100:g} %"
        enough = target.largest if stated_bytes is None else stated_bytes
        if size >= enough:
            return Judgment(SATISFIED, rate, is_limited=True)
        return Judgment(WEAKER, rate)
    ndv = bloom.estimated_ndv
    sufficient_bytes = stated_bytes
    if sufficient_bytes is None:
        sufficient_bytes = sizing.bytes_for(max(1.0, ndv), target.fpp)
    if size > SIZE_TOLERANCE * sufficient_bytes and _can_shrink(bloom, target):
        fact = f"{size:,} bytes for about {ndv:,.0f} values; {sufficient_bytes:,} suffice"
        return Judgment(TOO_LARGE, fact)
    return Judgment(SATISFIED)


def _is_weak(bloom: BloomFilter, target: Sizing) -> bool:
    return bloom.fpp > FPP_TOLERANCE * target.fpp


def _can_shrink(bloom: BloomFilter, target: Sizing) -> bool:
    """Return whether a filter built for the target would be smaller: a fold is, bit for bit, the
    filter of its size."""
    is_power_of_two = not bloom.num_bytes & (bloom.num_bytes - 1)
    return not is_power_of_two or bloom.fold_to_fpp(target.fpp).num_bytes < bloom.num_bytes


def outweighs(filter_bytes: int, data_bytes: int) -> bool:
    """Return whether the filters of a column cost more than reading its data; advice then
    recommends none, and rules find them."""
    return filter_bytes > data_bytes


def may_be_saturated(target: Sizing, most_values: int) -> bool:
    """Return whether the largest filter that `target` allows may exclude too few values to be
    written, for at most `most_values` values."""
    return sizing.fpp_of(most_values, target.bytes_for(most_values)) > target.worst_fpp
