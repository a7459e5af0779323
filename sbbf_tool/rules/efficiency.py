"""Rules for the efficiency of correct filters: filters that skip nothing, or that cost more than
they can skip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import pairwise

from sbbf_tool.bloom import sizing
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_percent
from sbbf_tool.parquet.statistics import bounds
from sbbf_tool.query_engines.uses import harm_in, unused_in, use_in
from sbbf_tool.reports.findings import INFO, WARNING, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.file_facts import FileFacts, are_many
from sbbf_tool.rules.rule import REBUILD_ONLY, Limits, Rule, at_each_filter
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE, LARGE_SHARE, SATISFIED, outweighs

GROUP = "efficiency"
_warning = partial(Rule, group=GROUP, severity=WARNING)
_info = partial(Rule, group=GROUP, severity=INFO)

MUCH_SMALLER = 4
_HEADER_BYTES = 19


def _identical_blocks(chunk: ChunkFacts) -> str | None:
    """Return evidence of identical blocks, unless the filter is empty or full."""
    bits = chunk.bits
    if bits is None or chunk.stored is None or not bits.identical_blocks:
        return None
    if bits.empty or bits.ndv is None:
        return None
    num_blocks = chunk.stored.num_blocks
    return f"all {num_blocks:,} blocks are identical; estimated fpp {format_percent(bits.fpp)}"


def _saturated(chunk: ChunkFacts) -> str | None:
    if chunk.bits is None or chunk.bits.fpp <= sizing.SATURATED_FPP:
        return None
    return f"estimated fpp {format_percent(chunk.bits.fpp)}"


def _nearly_empty(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield evidence of filters far larger than their values need: at a quarter of their size they
    would still keep the target FPP."""
    fpp = fixes.target_fpp(column, limits)
    for chunk in column.filters:
        bits = chunk.bits
        num_bytes = _sufficient_bytes(chunk, fpp)
        if bits is None or bits.ndv is None or chunk.stored is None:
            continue
        if num_bytes is None or _is_as_declared(chunk):
            continue
        size = chunk.stored.header.num_bytes
        if size >= MUCH_SMALLER * num_bytes:
            ndv = max(0.0, bits.ndv)
            fact = f"{size:,} bytes for about {ndv:,.0f} distinct values; {num_bytes:,} suffice"
            yield Evidence(chunk.row_group, fact)


def _sufficient_bytes(chunk: ChunkFacts, fpp: float) -> int | None:
    """Return the bytes that the distinct values need at this FPP; None if the bits do not show the
    number of distinct values."""
    bits = chunk.bits
    if bits is None or bits.ndv is None:
        return None
    is_defective = bits.empty and chunk.values != 0
    shares_a_block = bits.identical_blocks and not bits.empty
    if is_defective or shares_a_block:
        return None
    return sizing.bytes_for(max(1.0, bits.ndv), fpp)


def _share(chunk: ChunkFacts) -> float:
    if chunk.stored is None or not chunk.chunk_bytes:
        return 0.0
    return chunk.stored.length / chunk.chunk_bytes


def _larger_than_chunk(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield the filters that are larger than their data, if those of the whole column are: this is
    the cost for which advice recommends none."""
    if not _outweighs_data(column, [_length(chunk) for chunk in column.filters]):
        return
    reason = ""
    if _shrink_below_data(column, limits) is None:
        fpp = fixes.target_fpp(column, limits)
        reason = f"; no smaller filters with an fpp of {fpp * 100:g} % take less than the data"
        if any(map(_is_as_declared, column.filters)):
            reason = "; it satisfies what is declared for the column"
    for chunk in column.filters:
        if _share(chunk) > 1:
            yield Evidence(chunk.row_group, f"{_cost(chunk)}{reason}")


def _outweighs_data(column: ColumnFacts, filter_sizes: Iterable[int]) -> bool:
    data_bytes = sum(chunk.chunk_bytes for chunk in column.filters if chunk.stored is not None)
    return data_bytes > 0 and outweighs(sum(filter_sizes), data_bytes)


def _length(chunk: ChunkFacts) -> int:
    """Return the bytes of a filter with its header; 0 if it cannot be read."""
    return 0 if chunk.stored is None else chunk.stored.length


def _shrink_below_data(column: ColumnFacts, limits: Limits) -> Fix | None:
    """Return the fix that shrinks the filters; None if they would still take more than the data:
    small data is not a defect."""
    fpp = fixes.target_fpp(column, limits)
    sizes = []
    for chunk in column.filters:
        size = _length(chunk)
        smaller = None if _is_as_declared(chunk) else _smaller_bytes(chunk, fpp)
        if smaller is not None:
            size = smaller + _HEADER_BYTES
        sizes.append(size)
    if _outweighs_data(column, sizes):
        return None
    return fixes.shrink(column, limits)


def _large_for_chunk(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield the filters larger than a quarter of their data of which half would do. Advice keeps
    and adds filters of the size that the target FPP needs."""
    fpp = fixes.target_fpp(column, limits)
    for chunk in column.filters:
        if not LARGE_SHARE < _share(chunk) <= 1 or _is_as_declared(chunk):
            continue
        smaller = _smaller_bytes(chunk, fpp)
        if smaller is not None:
            yield Evidence(chunk.row_group, f"{_cost(chunk)}; {smaller:,} bytes suffice")


def _smaller_bytes(chunk: ChunkFacts, fpp: float) -> int | None:
    """Return the size to which a filter can be halved at this FPP; None if it needs its own size.

    The FPP of the half is clearly below the target: by chance, the half of a filter of the right
    size can meet the target too.
    """
    bits = chunk.bits
    if bits is None or chunk.stored is None or bits.ndv is None:
        return None
    num_bytes = _sufficient_bytes(chunk, fpp / FPP_TOLERANCE)
    if num_bytes is None or chunk.stored.header.num_bytes < 2 * num_bytes:
        return None
    if chunk.stored.header.readings:
        return num_bytes
    sizes = [size for size, folded_fpp in bits.folds[1:] if folded_fpp <= fpp / FPP_TOLERANCE]
    return min(sizes, default=None)


def _cost(chunk: ChunkFacts) -> str:
    assert chunk.stored is not None
    return f"{chunk.stored.length:,} bytes of filter for {chunk.chunk_bytes:,} bytes of data"


def _is_as_declared(chunk: ChunkFacts) -> bool:
    return chunk.judgment is not None and chunk.judgment.outcome == SATISFIED


def _only_some_row_groups(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield row groups that have values but no filter. Skip those whose encrypted metadata cannot
    be read: they may have one.

    Of a required column, `missing-filter` finds them.
    """
    if not column.filters or column.is_required:
        return
    for chunk in column.chunks:
        has_no_filter = chunk.place is None and not chunk.meta.is_locked
        is_left_out = chunk.judgment is not None and chunk.judgment.is_limited
        if has_no_filter and chunk.values != 0 and not is_left_out:
            fact = "it has no filter"
            if chunk.meta.is_dictionary_encoded:
                fact += "; all its pages are dictionary-encoded"
            yield Evidence(chunk.row_group, fact)


def _sorted(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    """Yield evidence that at most one row group can hold a value, and that min and max identify
    this row group."""
    if not column.filters:
        return
    ranges = []
    for chunk in column.chunks:
        if chunk.values == 0:
            continue
        limits_of_chunk = bounds(column.footer, chunk.row_group, column.column)
        if limits_of_chunk is None:
            return
        ranges.append(limits_of_chunk)
    ranges.sort()
    if len(ranges) > 1 and all(lower.high < upper.low for lower, upper in pairwise(ranges)):
        fact = f"the ranges from min to max of its {len(ranges)} row groups do not overlap"
        yield Evidence(None, fact)


def _dictionary_encoded(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    encoded = [chunk for chunk in column.filters if chunk.meta.is_dictionary_encoded]
    if not encoded:
        return
    use = use_in(column.footer, column.column, limits.engines)
    if use.users and use.users == use.dictionary_users:
        for chunk in encoded:
            yield Evidence(chunk.row_group, "all its pages are dictionary-encoded")


def _has_own_rule(column: ColumnFacts) -> bool:
    return column.column.physical == "BOOLEAN"


def _unused(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if _has_own_rule(column) or not (column.filters or column.targets):
        return
    reason = unused_in(column.footer, column.column, limits.engines)
    if reason is not None:
        yield Evidence(None, reason)


def _harmful(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    if not column.filters or _has_own_rule(column):
        return
    harm = harm_in(column.footer, column.column, limits.engines)
    if harm is not None:
        yield Evidence(None, harm)


def _unreferenced_bytes(file: FileFacts) -> Iterator[Evidence]:
    total = 0
    sizes: dict[str, int] = {}
    for unused_range in file.unreferenced:
        total += unused_range.length
        sizes[unused_range.kind] = sizes.get(unused_range.kind, 0) + unused_range.length
    if not are_many(total, file.num_bytes):
        return
    share = format_percent(total / file.num_bytes)
    start = file.unreferenced[0].start
    contents = ", ".join(f"{kind} ({num_bytes:,})" for kind, num_bytes in sizes.items())
    fact = f"{total:,} bytes, {share} of the file, from byte {start:,}: {contents}"
    yield Evidence(None, fact)


RULES = (
    _warning(
        name="identical-blocks",
        message="All blocks of the filter are identical, so it is no more selective than one block "
        "and skips hardly anything.",
        why="parquetjs creates one block and uses it for every block of the filter.",
        look=at_each_filter(_identical_blocks),
        fix=fixes.rebuild,
        repairs=REBUILD_ONLY,
    ),
    _warning(
        name="saturated",
        message="The filter has so many bits set that it excludes fewer than half of the absent "
        "values.",
        why="The writer expected too few distinct values, or limits the size of filters too much.",
        look=at_each_filter(_saturated),
        fix=fixes.rebuild,
        repairs=REBUILD_ONLY,
    ),
    _info(
        name="nearly-empty",
        message="The filter is far larger than its values need: at a quarter of its size the "
        "false-positive rate would still be at most 1 %.",
        why="The writer expected too many distinct values. By default, parquet-java writes 1 MiB "
        "and pyarrow expects a million values.",
        look=_nearly_empty,
        fix=fixes.shrink,
    ),
    _info(
        name="larger-than-chunk",
        message="The filter is larger than the data that it can skip.",
        why="Small row groups, or data that compresses well: the filters of the column take more "
        "than its data. StarRocks ignores such a filter; other readers gain only where it lets "
        "them skip the other columns of the row group. There is a fix if smaller filters have an "
        "FPP of 1 %, or the required one.",
        look=_larger_than_chunk,
        fix=_shrink_below_data,
    ),
    _info(
        name="large-for-chunk",
        message="The filter is larger than a quarter of the data that it can skip, and half of it "
        "would do.",
        why="The size of the filter is a guess, or for more distinct values than the data has. A "
        "filter of the size that an FPP of 1 % needs, or the required one, is no finding: advice "
        "recommends that size.",
        look=_large_for_chunk,
        fix=fixes.shrink,
    ),
    _warning(
        name="only-some-row-groups",
        reads=Reads.FOOTER,
        message="Only some row groups have a filter for this column, so every query reads the "
        "others, and some readers use no filter at all.",
        why="parquet-java, DuckDB and Trino decide for each row group, depending on whether they "
        "kept a dictionary. Older versions of ClickHouse look only at the first row group.",
        look=_only_some_row_groups,
        fix=fixes.complete,
    ),
    _info(
        name="sorted-column",
        reads=Reads.FOOTER,
        message="The row groups are sorted by this column, so min and max already leave at most "
        "one row group of the file to read.",
        why="The filter can exclude only that row group. It may help over many files whose ranges "
        "overlap: advice on all of them tells.",
        look=_sorted,
    ),
    _info(
        name="dictionary-encoded",
        reads=Reads.FOOTER,
        message="Every value of the column chunk is in its dictionary, which all engines that read "
        "the files query instead of the filter.",
        why="parquet-java, and with it Spark and Iceberg, and Trino query the dictionary first; "
        "Impala does not read the filter. DuckDB and arrow-rs use filters of such chunks, so the "
        "rule applies only if `engines` names the engines that read the files. Remove the filters "
        "if advice on all files says that they can be removed.",
        look=_dictionary_encoded,
    ),
    _info(
        name="unused-by-engines",
        reads=Reads.FOOTER,
        message="No query engine that reads the file uses filters on this column, so they cost "
        "storage alone.",
        why="Engines use filters on the types in the table of engines, and few use those of values "
        "inside lists. The rule applies to the engines that `engines` names or, without it, to "
        "all.",
        look=_unused,
        fix=fixes.remove,
    ),
    _warning(
        name="harmful-to-engine",
        reads=Reads.FOOTER,
        message="A query engine that may read the file loses rows or fails where this column has a "
        "filter.",
        why="The filter is correct, but the engine queries it for other bytes, as DuckDB 2.0 does "
        "for FLOAT16. The rule applies to the engines that `engines` names, as an error, or, "
        "without it, where filters on this type harm as many engines as they help.",
        look=_harmful,
        error_with="engines",
        fix=fixes.remove,
    ),
    _info(
        name="unreferenced-bytes",
        message="At least 64 KiB and 1 % of the file are bytes to which nothing in the file "
        "refers, so they cost storage and transfer.",
        why="A program replaced footers or filters and left the old ones, an append was "
        "interrupted, or the writer aligned row groups with padding. Writing the file again with "
        "its writer removes them. What another program finds by a key-value entry is not counted.",
        look_at_file=_unreferenced_bytes,
    ),
)
