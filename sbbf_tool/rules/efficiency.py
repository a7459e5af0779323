"""Rules for the efficiency of sound filters: those that skip nothing, or that cost more than they can skip."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.hints import Fix
from sbbf_tool.parquet.statistics import bounds
from sbbf_tool.reports.findings import INFO, WARNING, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.rule import Limits, Rule, at_each_filter, percent

GROUP = "efficiency"
_warning = partial(Rule, group=GROUP, severity=WARNING)
_info = partial(Rule, group=GROUP, severity=INFO)

SATURATED_FPP = 0.1
"""A filter with a higher FPP, more than one absent value in ten, is called saturated."""
_MUCH_SMALLER = 4
LARGE_SHARE = 0.25


def _identical_blocks(chunk: ChunkFacts) -> str | None:
    """Return evidence of identical blocks, other than those of an empty or full filter."""
    if chunk.bits is None or chunk.stored is None or chunk.bits.empty or chunk.bits.ndv is None or not chunk.bits.identical_blocks:
        return None
    return f"all {chunk.stored.num_blocks:,} blocks are the same; {percent(chunk.bits.fpp)} of absent values pass"


def _saturated(chunk: ChunkFacts) -> str | None:
    if chunk.bits is None or chunk.bits.fpp <= SATURATED_FPP:
        return None
    return f"{percent(chunk.bits.fpp)} of absent values pass"


def _nearly_empty(chunk: ChunkFacts) -> str | None:
    """Return evidence of a filter far larger than its values need: a quarter of it would still keep the usual FPP."""
    needed = _needed(chunk)
    if chunk.bits is None or chunk.stored is None or chunk.bits.ndv is None or needed is None:
        return None
    size = chunk.stored.header.num_bytes
    if size < _MUCH_SMALLER * needed:
        return None
    return f"{size:,} bytes for some {max(0.0, chunk.bits.ndv):,.0f} distinct values; {needed:,} would do"


def _needed(chunk: ChunkFacts) -> int | None:
    """Return the bytes that its distinct values need at the usual FPP; None where the bits do not show their number."""
    if chunk.bits is None or chunk.bits.ndv is None:
        return None
    lies = chunk.bits.empty and chunk.values != 0
    shares_a_block = chunk.bits.identical_blocks and not chunk.bits.empty
    return None if lies or shares_a_block else sizing.bytes_for(max(1.0, chunk.bits.ndv), DEFAULT_FPP)


def _share(chunk: ChunkFacts) -> float:
    return chunk.stored.length / chunk.chunk_bytes if chunk.stored is not None and chunk.chunk_bytes else 0.0


def _larger_than_chunk(chunk: ChunkFacts) -> str | None:
    return _cost(chunk) if _share(chunk) > 1 else None


def _large_for_chunk(chunk: ChunkFacts) -> str | None:
    return _cost(chunk) if LARGE_SHARE < _share(chunk) <= 1 else None


def _cost(chunk: ChunkFacts) -> str:
    assert chunk.stored is not None
    return f"{chunk.stored.length:,} bytes of filter for {chunk.chunk_bytes:,} bytes of data"


def _shrink_or_remove(column: ColumnFacts, limits: Limits) -> Fix:
    """Return the fix that shrinks, where every filter then is smaller than its data; else the one that removes."""
    fits = all((needed := _needed(chunk)) is not None and needed < chunk.chunk_bytes for chunk in column.filters)
    return fixes.shrink(column, limits) if fits else fixes.remove(column, limits)


def _shrink_if_it_helps(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks; None where no filter is larger than its values need: then the data is small, which is no defect."""
    sizes = [(chunk.stored.header.num_bytes, _needed(chunk)) for chunk in column.filters if chunk.stored is not None]
    return fixes.shrink(column, limits) if any(needed is not None and needed < size for size, needed in sizes) else None


def _only_some_row_groups(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield row groups without a filter. One without values needs none, and a locked one does not show whether it has one."""
    if column.filters:
        for chunk in column.chunks:
            if chunk.place is None and not chunk.meta.is_locked and chunk.values != 0:
                why = "; all its pages are dictionary-encoded" if chunk.meta.is_dictionary_encoded else ""
                yield Evidence(chunk.row_group, f"it has no filter{why}")


def _sorted(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield evidence that at most one row group can hold a value, and that min and max identify it."""
    filled = [chunk for chunk in column.chunks if chunk.values != 0]
    known = [found for chunk in filled if (found := bounds(column.footer, chunk.row_group, column.column)) is not None]
    if column.filters and len(known) == len(filled) > 1 and all(one.high < other.low for one, other in pairwise(sorted(known))):
        yield Evidence(None, f"min and max of its {len(filled)} row groups do not overlap")


def _dictionary_encoded(chunk: ChunkFacts) -> str | None:
    return "all its pages are dictionary-encoded" if chunk.meta.is_dictionary_encoded else None


RULES = (
    _warning(
        name="identical-blocks",
        reads=Reads.FILTERS,
        message="All blocks of the filter are the same, so it knows no more than one of them would and skips hardly anything.",
        why="parquetjs makes one block and refers to it from every place.",
        look=at_each_filter(_identical_blocks),
        fix=fixes.rebuild,
    ),
    _warning(
        name="saturated",
        reads=Reads.FILTERS,
        message="The filter is so full that it lets many absent values pass, so it is read and seldom skips anything.",
        why="Any writer that was told too few distinct values, or too small a maximum size.",
        look=at_each_filter(_saturated),
        fix=fixes.rebuild,
    ),
    _info(
        name="nearly-empty",
        reads=Reads.FILTERS,
        message="The filter is far larger than its values need: a quarter of it would let no more than one absent value in a hundred pass.",
        why="Any writer that was told too many distinct values; unless told otherwise, parquet-java takes 1 MiB and pyarrow a million.",
        look=at_each_filter(_nearly_empty),
        fix=fixes.shrink,
    ),
    _warning(
        name="larger-than-chunk",
        reads=Reads.FILTERS,
        message="The filter is larger than the data it could save reading.",
        why="Small row groups with a filter sized by default. StarRocks skips it; everybody else reads more than without it.",
        look=at_each_filter(_larger_than_chunk),
        fix=_shrink_or_remove,
    ),
    _info(
        name="large-for-chunk",
        reads=Reads.FILTERS,
        message="The filter is larger than a quarter of the data it could save reading.",
        why="Numbers that compress well, or a filter sized by a guess. It pays only where most lookups are for values that are not there.",
        look=at_each_filter(_large_for_chunk),
        fix=_shrink_if_it_helps,
    ),
    _warning(
        name="only-some-row-groups",
        reads=Reads.FOOTER,
        message="Only some row groups have a filter for this column, so the others are read by every query, and some readers use none.",
        why="parquet-java, DuckDB and Trino decide row group by row group, by whether a dictionary was kept. ClickHouse in older versions "
        "looks at the first row group only.",
        look=_only_some_row_groups,
        fix=fixes.add,
    ),
    _info(
        name="sorted-column",
        reads=Reads.FOOTER,
        message="Row groups are sorted by this column, so min and max already leave at most one row group to read.",
        why="A filter then only tells whether that one has the value.",
        look=_sorted,
        fix=fixes.remove,
    ),
    _info(
        name="dictionary-encoded",
        reads=Reads.FOOTER,
        message="Every value of the column chunk is in its dictionary, which parquet-java and Impala ask instead of the filter.",
        why="DuckDB and arrow-rs write filters for such chunks, and use them; Spark, Iceberg and Trino look into the dictionary first, "
        "Impala does not look at the filter at all.",
        look=at_each_filter(_dictionary_encoded),
        fix=fixes.remove,
    ),
)
