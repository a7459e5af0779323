"""Requirements that the user sets. Each rule runs only if its limit is given; a violation is then
an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sbbf_tool.numbers import format_percent
from sbbf_tool.reports.findings import ERROR, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.filter_spec import has_no_value
from sbbf_tool.rules.rule import Limits, MakeFix, Rule
from sbbf_tool.rules.satisfaction import MISSING, NOT_MEASURED, SATISFIED, TOO_LARGE

GROUP = "policy"
_error = partial(Rule, group=GROUP, severity=ERROR)
MISSING_FILTER = "missing-filter"
DEVIATING_FILTER = "deviating-filter"


def _missing_filter(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if not column.is_required:
        return
    index = column.column.index
    for chunk in column.chunks:
        if chunk.place is None and not has_no_value(column.footer, chunk.row_group, index):
            yield Evidence(chunk.row_group, _why_missing(chunk))


def _why_missing(chunk: ChunkFacts) -> str:
    if chunk.meta.is_locked:
        return "its metadata is encrypted, and the key was not given"
    fact = "it has no filter"
    if chunk.meta.is_dictionary_encoded:
        fact += "; all its pages are dictionary-encoded, for which parquet-java writes none"
    return fact


def _deviating_filter(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield the chunks whose filter does not satisfy the declaration, unless its limits may leave
    no room for a useful filter."""
    if column.judge == "existence":
        return
    accepted = {SATISFIED, NOT_MEASURED}
    if column.judge == "fpp":
        # Where only the FPP counts, every chunk needs a filter, for which there is a rule, and a
        # larger filter satisfies.
        accepted |= {MISSING, TOO_LARGE}
    for chunk in column.chunks:
        judgment = chunk.judgment
        if judgment is None or judgment.outcome in accepted:
            continue
        if judgment.outcome == MISSING and judgment.is_limited:
            continue
        fact = _why_missing(chunk)
        if judgment.fact:
            fact = f"{judgment.outcome}: {judgment.fact}"
        yield Evidence(chunk.row_group, fact)


def _fpp(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if limits.max_fpp is None:
        return
    limit = f"the limit is {limits.max_fpp * 100:g} %"
    for chunk in column.filters:
        if chunk.bits is not None and chunk.bits.fpp > limits.max_fpp:
            rate = format_percent(chunk.bits.fpp)
            conflict = _conflict(column, limits, fixes.add)
            yield Evidence(chunk.row_group, f"estimated fpp {rate}; {limit}{conflict}")


def _bytes_share(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if limits.max_bytes_share is None:
        return
    filters = sum(chunk.stored.length for chunk in column.filters if chunk.stored is not None)
    data = sum(chunk.chunk_bytes for chunk in column.chunks)
    if filters <= limits.max_bytes_share * data:
        return
    share = f" ({format_percent(filters / data)})" if data else ""
    conflict = _conflict(column, limits, fixes.shrink_to_share)
    fact = f"{filters:,} bytes of filters for {data:,} bytes of data{share}{conflict}"
    yield Evidence(None, fact)


def _conflict(column: ColumnFacts, limits: Limits, make_fix: MakeFix) -> str:
    """Return that no filter meets the limits on FPP and size, if that is why there is no fix."""
    if limits.max_bytes_share is None or make_fix(column, limits) is not None:
        return ""
    share = limits.max_bytes_share * 100
    fpp = fixes.worst_fpp(column, limits) * 100
    return (
        f"; no filter has both at most {share:g} % of the bytes of the data and an fpp of "
        f"at most {fpp:g} %"
    )


def _ndv(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if limits.min_ndv is None:
        return
    limit = f"the limit is {limits.min_ndv:,}"
    for chunk in column.filters:
        if chunk.bits is None or chunk.bits.ndv is None:
            continue
        ndv = max(0.0, chunk.bits.ndv)
        if ndv < limits.min_ndv:
            yield Evidence(chunk.row_group, f"about {ndv:,.0f} distinct values; {limit}")


def _chunk_bytes(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if limits.min_chunk_bytes is None:
        return
    limit = f"the limit is {limits.min_chunk_bytes:,}"
    for chunk in column.filters:
        if not chunk.meta.is_locked and chunk.chunk_bytes < limits.min_chunk_bytes:
            yield Evidence(chunk.row_group, f"{chunk.chunk_bytes:,} bytes of data; {limit}")


RULES = (
    _error(
        name=MISSING_FILTER,
        reads=Reads.FOOTER,
        message="The policy requires a filter for this column, but there is none.",
        why="The rule runs only for the columns that `require` names, or, with `declared`, the "
        "properties of a table.",
        look=_missing_filter,
        fix=fixes.ensure,
        limit="required",
    ),
    _error(
        name=DEVIATING_FILTER,
        message="The filter is not as the policy declares it: it is missing, weaker, too large or "
        "broken.",
        why="The rule runs only if the configuration file has `[[filters]]`, or the policy "
        "`filters`, and for the files that these name.",
        look=_deviating_filter,
        fix=fixes.ensure,
        limit="judged",
    ),
    _error(
        name="fpp-above-limit",
        message="The false-positive rate of the filter is above the limit.",
        why="The rule runs only if a maximum FPP is given.",
        look=_fpp,
        fix=fixes.add,
        limit="max_fpp",
    ),
    _error(
        name="bytes-share-above-limit",
        message="The filters of the column take more bytes per byte of data than the limit allows.",
        why="The rule runs only if a maximum share of bytes is given.",
        look=_bytes_share,
        fix=fixes.shrink_to_share,
        limit="max_bytes_share",
    ),
    _error(
        name="too-few-values",
        message="The filter holds fewer distinct values than the limit requires.",
        why="The rule runs only if a minimum NDV is given.",
        look=_ndv,
        fix=fixes.remove,
        limit="min_ndv",
    ),
    _error(
        name="chunk-too-small",
        reads=Reads.FOOTER,
        message="The column chunk of the filter has fewer bytes than the limit requires.",
        why="The rule runs only if a minimum size is given.",
        look=_chunk_bytes,
        fix=fixes.remove,
        limit="min_chunk_bytes",
    ),
)
