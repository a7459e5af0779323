"""Requirements that the user sets. Each rule runs only where its limit is given, and then a breach is an error."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from sbbf_tool.reports.findings import ERROR, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ColumnFacts, Reads
from sbbf_tool.rules.rule import Limits, Rule, percent

GROUP = "policy"
_error = partial(Rule, group=GROUP, severity=ERROR)

MISSING_FILTER = "missing-filter"


def _required(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if column.name in limits.require:
        for chunk in column.chunks:
            if chunk.place is None:
                yield Evidence(chunk.row_group, "it has no filter" if not chunk.meta.is_locked else "without the key none is to be seen")


def _fpp(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        if chunk.bits is not None and limits.max_fpp is not None and chunk.bits.fpp > limits.max_fpp:
            yield Evidence(chunk.row_group, f"{percent(chunk.bits.fpp)} of absent values pass, {percent(limits.max_fpp)} may")


def _bytes_share(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    filters = sum(chunk.stored.length for chunk in column.filters if chunk.stored is not None)
    data = sum(chunk.chunk_bytes for chunk in column.chunks)
    if limits.max_bytes_share is not None and filters > limits.max_bytes_share * data:
        yield Evidence(None, f"{filters:,} bytes of filters for {data:,} of data: {percent(filters / data) if data else 'all'} of it")


def _ndv(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        ndv = chunk.bits.ndv if chunk.bits is not None else None
        if ndv is not None and limits.min_ndv is not None and ndv < limits.min_ndv:
            yield Evidence(chunk.row_group, f"some {max(0.0, ndv):,.0f} distinct values, at least {limits.min_ndv:,} are asked for")


def _chunk_bytes(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.filters:
        if limits.min_chunk_bytes is not None and not chunk.meta.is_locked and chunk.chunk_bytes < limits.min_chunk_bytes:
            yield Evidence(chunk.row_group, f"{chunk.chunk_bytes:,} bytes of data, at least {limits.min_chunk_bytes:,} are asked for")


RULES = (
    _error(
        name=MISSING_FILTER,
        reads=Reads.FOOTER,
        message="A filter is required for this column and is not there.",
        why="Runs for the columns that `require` names.",
        look=_required,
        fix=fixes.add,
        limit="require",
    ),
    _error(
        name="fpp-above-limit",
        reads=Reads.FILTERS,
        message="The filter lets more absent values pass than was allowed.",
        why="Runs where `max_fpp` is given.",
        look=_fpp,
        fix=fixes.add,
        limit="max_fpp",
    ),
    _error(
        name="bytes-share-above-limit",
        reads=Reads.FILTERS,
        message="The column's filters take more bytes, compared with its data, than was allowed.",
        why="Runs where `max_bytes_share` is given.",
        look=_bytes_share,
        fix=fixes.shrink_to_share,
        limit="max_bytes_share",
    ),
    _error(
        name="too-few-values",
        reads=Reads.FILTERS,
        message="The filter holds fewer distinct values than a filter was said to be for.",
        why="Runs where `min_ndv` is given.",
        look=_ndv,
        fix=fixes.remove,
        limit="min_ndv",
    ),
    _error(
        name="chunk-too-small",
        reads=Reads.FOOTER,
        message="The filter is for less data than a filter was said to be for.",
        why="Runs where `min_chunk_bytes` is given.",
        look=_chunk_bytes,
        fix=fixes.remove,
        limit="min_chunk_bytes",
    ),
)
