"""Which filters need no word, in numbers that a scan of many files compares (`parquet/_fit.h`).

The numbers are on the safe side: a filter that fits them is judged so by `efficiency` and
`satisfaction` too, and a filter that misses them is for these to judge.
"""

from __future__ import annotations

from math import ceil, expm1, log1p
from typing import TYPE_CHECKING, Any

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.file.scan_kinds import FilterDemand, KindJudgment, judge_filters
from sbbf_tool.query_engines.uses import depends_on_arrow, use_in
from sbbf_tool.rules.efficiency import MUCH_SMALLER
from sbbf_tool.rules.filter_spec import request_filters
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE, SIZE_TOLERANCE

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.rules.rule import Limits

_ALL_SET_PRODUCT = 32**8
_WORD_BITS = 32
_UNIT = 1 << 32


def judge_kind(file: ParquetFile, key: bytes, report: Any, limits: Limits) -> KindJudgment | None:
    """Judge the kind of a file without findings: which others have none either."""
    footer = file.footer
    requests = request_filters(file, limits.filters)
    demands = {}
    for _, index in footer.filter_places():
        column = footer.columns[index]
        use = use_in(footer, column, limits.engines)
        if use.users and use.users == use.dictionary_users:
            return judge_filters(file, key, report, None)
        if depends_on_arrow(footer, column, limits.engines):
            return judge_filters(file, key, report, None)
        demands[index] = demand_of_rules(limits.max_fpp)
    if not requests.required.issubset(demands):
        return judge_filters(file, key, report, None)
    return judge_filters(file, key, report, demands)


def demand_of_rules(max_fpp: float | None) -> FilterDemand:
    """Return what the rules of `efficiency` demand of a filter, and a limit on its FPP."""
    limit = max_fpp or 1
    fpp = min(DEFAULT_FPP, limit)
    smaller_fpp = fpp / FPP_TOLERANCE
    worst_fpp = min(limit, sizing.SATURATED_FPP)
    return FilterDemand(
        sizing.MIN_BYTES,
        sizing.MAX_BYTES,
        _product_of(worst_fpp),
        _fill_of(MUCH_SMALLER, fpp),
        _fill_of(2, smaller_fpp),
        from_bytes=MUCH_SMALLER * sizing.MIN_BYTES,
        from_bytes_if_large=2 * sizing.MIN_BYTES,
    )


def demand_of_request(target: Sizing, forms: int) -> FilterDemand:
    """Return what `satisfaction.judge_filter` demands of a filter of this size."""
    if target.is_stated:
        num_bytes = target.bytes_for(0, forms)
        return FilterDemand(num_bytes, num_bytes, _ALL_SET_PRODUCT)
    # Sizes are powers of two.
    share = 2 * SIZE_TOLERANCE
    most_bytes = min(target.max_bytes, sizing.MAX_BYTES)
    worst_fpp = FPP_TOLERANCE * target.fpp
    return FilterDemand(
        sizing.MIN_BYTES,
        most_bytes,
        _product_of(worst_fpp),
        _fill_of(share, target.fpp),
        from_bytes=share * sizing.MIN_BYTES,
    )


def _product_of(fpp: float) -> int:
    product = int(fpp * _ALL_SET_PRODUCT) - 1
    return max(0, min(_ALL_SET_PRODUCT, product))


def _fill_of(share: int, fpp: float) -> int:
    """Return the share of bits set, of each 2^32, with which a filter has more values than a
    filter of one `share` of its size keeps at this FPP.

    It is the largest for the smallest filter.
    """
    values = sizing.most_values(sizing.MIN_BYTES, fpp) + 1
    num_bytes = share * sizing.MIN_BYTES
    row_bits = num_bytes // BLOCK_BYTES * _WORD_BITS
    fill = -expm1(values * log1p(-1 / row_bits))
    return ceil(fill * _UNIT) + 1
