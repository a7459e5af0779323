"""Requirements that the user sets. Each rule runs only if its limit is given; a violation is then an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sbbf_tool.numbers import format_percent
from sbbf_tool.reports.findings import ERROR, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ColumnFacts, Reads
from sbbf_tool.rules.rule import Limits, Rule

GROUP = "policy"
_error = partial(Rule, group=GROUP, severity=ERROR)

MISSING_FILTER = "missing-filter"


def _missing_filter(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if column.name in limits.require:
        for chunk in column.chunks:
            if chunk.place is None:
                reason = "its metadata is encrypted, and the key was not given" if chunk.meta.is_locked else "it has no filter"
                yield Evidence(chunk.row_group, reason)


def _fpp(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        if chunk.bits is not None and limits.max_fpp is not None and chunk.bits.fpp > limits.max_fpp:
            yield Evidence(chunk.row_group, f"estimated fpp {format_percent(chunk.bits.fpp)}; the limit is {limits.max_fpp * 100:g} %")


def _bytes_share(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    filters = sum(chunk.stored.length for chunk in column.filters if chunk.stored is not None)
    data = sum(chunk.chunk_bytes for chunk in column.chunks)
    if limits.max_bytes_share is not None and filters > limits.max_bytes_share * data:
        yield Evidence(
            None, f"{filters:,} bytes of filters for {data:,} bytes of data" + (f" ({format_percent(filters / data)})" if data else "")
        )


def _ndv(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        ndv = chunk.bits.ndv if chunk.bits is not None else None
        if ndv is not None and limits.min_ndv is not None and ndv < limits.min_ndv:
            yield Evidence(chunk.row_group, f"about {max(0.0, ndv):,.0f} distinct values; the limit is {limits.min_ndv:,}")


def _chunk_bytes(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        if limits.min_chunk_bytes is not None and not chunk.meta.is_locked and chunk.chunk_bytes < limits.min_chunk_bytes:
            yield Evidence(chunk.row_group, f"{chunk.chunk_bytes:,} bytes of data; the limit is {limits.min_chunk_bytes:,}")


RULES = (
    _error(
        name=MISSING_FILTER,
        reads=Reads.FOOTER,
        message="The policy requires a filter for this column, but there is none.",
        why="The rule runs only for the columns that `require` names.",
        look=_missing_filter,
        fix=fixes.add,
        limit="require",
    ),
    _error(
        name="fpp-above-limit",
        reads=Reads.FILTERS,
        message="The false-positive rate of the filter is above the limit.",
        why="The rule runs only if `max_fpp` is given.",
        look=_fpp,
        fix=fixes.add,
        limit="max_fpp",
    ),
    _error(
        name="bytes-share-above-limit",
        reads=Reads.FILTERS,
        message="The filters of the column take more bytes per byte of data than the limit allows.",
        why="The rule runs only if `max_bytes_share` is given.",
        look=_bytes_share,
        fix=fixes.shrink_to_share,
        limit="max_bytes_share",
    ),
    _error(
        name="too-few-values",
        reads=Reads.FILTERS,
        message="The filter holds fewer distinct values than the limit requires.",
        why="The rule runs only if `min_ndv` is given.",
        look=_ndv,
        fix=fixes.remove,
        limit="min_ndv",
    ),
    _error(
        name="chunk-too-small",
        reads=Reads.FOOTER,
        message="The column chunk of the filter has fewer bytes than the limit requires.",
        why="The rule runs only if `min_chunk_bytes` is given.",
        look=_chunk_bytes,
        fix=fixes.remove,
        limit="min_chunk_bytes",
    ),
)
