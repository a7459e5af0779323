"""Rules for the place and layout of a filter: offset, length, header and size, as the footer states and readers expect them.

A contradiction to the format is an error; a legal form that released readers refuse or misread is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.reports.findings import ERROR, WARNING, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.rule import Limits, Look, Rule, at_each_filter

GROUP = "format"
_error = partial(Rule, group=GROUP, severity=ERROR)
_warning = partial(Rule, group=GROUP, severity=WARNING)


def _at_each_header(see: Callable[[StoredFilter], str | None]) -> Look:
    return at_each_filter(lambda chunk: see(chunk.stored) if chunk.stored is not None else None)


def _unknown(stored: StoredFilter) -> str | None:
    return stored.header.beyond_us if not stored.header.readings else None


def _draft(chunk: ChunkFacts) -> str | None:
    if chunk.stored is None or not chunk.stored.header.readings:
        return None
    verification, fact = chunk.verification, chunk.stored.header.beyond_us or ""
    if verification is None or verification.problem or not verification.verified_values:
        return fact
    if verification.dialect is None:
        told = "as today's format hashes them" if not verification.false_negatives else "in none of these"
        return f"{fact}; its values are found {told}"
    missed = f", but for {verification.false_negatives:,} of {verification.verified_values:,}" if verification.false_negatives else ""
    return f"{fact}; its values are found in {verification.dialect}{missed}"


def _unreadable(chunk: ChunkFacts) -> str | None:
    return f"at byte {chunk.place.offset:,}: {chunk.unreadable}" if chunk.place is not None and chunk.unreadable else None


def _oversized(chunk: ChunkFacts) -> str | None:
    return chunk.oversized


def _overlapping(chunk: ChunkFacts) -> str | None:
    if not chunk.overlaps:
        return None
    more = f" and {len(chunk.overlaps) - 1} more" if len(chunk.overlaps) > 1 else ""
    return f"its bytes are also those of {chunk.overlaps[0].words}{more}"


def _missing_length(chunk: ChunkFacts) -> str | None:
    return "there is no bloom_filter_length" if chunk.place is not None and chunk.place.length is None else None


def _wrong_length(stored: StoredFilter) -> str | None:
    if stored.place.length in (None, stored.length):
        return None
    return f"bloom_filter_length is {stored.place.length:,}, header and bitset take {stored.length:,} bytes"


def _ragged(stored: StoredFilter) -> str | None:
    rest = stored.header.num_bytes % BLOCK_BYTES
    return f"of {stored.header.num_bytes:,} bytes the last {rest} are no whole block" if rest else None


def _not_power_of_two(stored: StoredFilter) -> str | None:
    size = stored.header.num_bytes
    return f"its bitset has {size:,} bytes" if size & (size - 1) else None


def _under_64_bytes(stored: StoredFilter) -> str | None:
    return f"its bitset has {stored.header.num_bytes} bytes" if stored.header.num_bytes < sizing.MIN_BYTES else None


def _over_128_mib(stored: StoredFilter) -> str | None:
    return f"its bitset has {stored.header.num_bytes:,} bytes" if stored.header.num_bytes > sizing.MAX_BYTES else None


def _offset_means_none(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.chunks:
        offset, _ = chunk.meta.stated_filter
        if offset is not None and offset <= 0:
            yield Evidence(chunk.row_group, f"bloom_filter_offset is {offset}")


RULES = (
    _error(
        name="unreadable-filter",
        reads=Reads.FILTERS,
        message="The footer names a place for a filter where no filter is, so some readers fail and none skips anything.",
        why="Tools that rewrite a file and keep the old offsets, and files that were cut or overwritten. Iceberg, ClickHouse and "
        "parquet-go fail the query or the opening of the file; others read on without a filter.",
        look=at_each_filter(_unreadable),
        fix=fixes.repair,
    ),
    _error(
        name="overlapping-filter",
        reads=Reads.FILTERS,
        message="The filter lies in bytes that belong to something else, so one of the two is damaged.",
        why="Tools that move pages and keep the old offsets. Readers take the bits for what the footer says they are, and lose rows.",
        look=at_each_filter(_overlapping),
        fix=fixes.rebuild,
    ),
    _error(
        name="oversized-page",
        reads=Reads.DATA,
        message="A page states that it decompresses to more bytes than the limit allows, so it was not read and its filter not checked.",
        why="A file made to exhaust the memory of its readers, or a damaged page header. Readers allocate what the header states. A writer "
        "that is trusted may make such pages too: then raise the limit.",
        look=at_each_filter(_oversized),
    ),
    _error(
        name="unknown-header",
        reads=Reads.FILTERS,
        message="The filter's header does not say that it is of split blocks, XXH64 and uncompressed, so nobody knows what its bits mean.",
        why="parquetjs leaves algorithm, hash and compression empty; parquet-go may compress with GZIP, which the format does not have. "
        "Some readers ignore the filter, some fail the query, some read it all the same.",
        look=_at_each_header(_unknown),
        fix=fixes.rebuild,
    ),
    _error(
        name="draft-dialect",
        reads=Reads.FILTERS,
        message="The filter is of a draft of the format that was never released, so no reader gains by it and some fail.",
        why="Builds of parquet-mr's branch from 2019 and 2020, and tools written after the text of that time. Its header does not tell how "
        "it hashes; the values do. ClickHouse and DuckDB fail the query, DataFusion and parquet-java ignore the filter.",
        look=at_each_filter(_draft),
        fix=fixes.rebuild,
    ),
    _warning(
        name="missing-length",
        reads=Reads.FOOTER,
        message="The footer does not say how long the filter is, and some readers then lose rows or ignore it.",
        why="Written by Trino, Impala, parquetjs and parquet-java before 1.14. parquet-java 1.14.0 to 1.15.2, and with it Iceberg 1.8 and "
        "1.9, may read too few bytes of it from an object store and lose rows; hyparquet ignores it; others must guess.",
        look=at_each_filter(_missing_length),
        fix=fixes.repair,
    ),
    _error(
        name="wrong-length",
        reads=Reads.FILTERS,
        message="The footer states another length for the filter than its header does, so readers disagree about what its bits are.",
        why="arrow-rs up to 59 then looks in the wrong blocks and loses rows, parquet-java fills up with zeros, Arrow C++ fails, DuckDB "
        "ignores the filter.",
        look=_at_each_header(_wrong_length),
        fix=fixes.repair,
    ),
    _error(
        name="partial-block",
        reads=Reads.FILTERS,
        message="The filter is not made of whole blocks of 32 bytes, as the format has it, so some readers refuse it.",
        why="parquet-java writes the size that `parquet.bloom.filter.max.bytes` was set to, whatever it is. ClickHouse fails the query, "
        "DuckDB, Doris and hyparquet ignore the filter.",
        look=_at_each_header(_ragged),
        fix=fixes.add,
    ),
    _warning(
        name="not-power-of-two",
        reads=Reads.FILTERS,
        message="The filter's size is not a power of two, which the format allows and some readers refuse or misread.",
        why="Written by parquet-go, parquetjs, and parquet-java where a maximum was set. Arrow C++ and Velox refuse it, Impala looks in "
        "the wrong blocks and may lose rows.",
        look=_at_each_header(_not_power_of_two),
        fix=fixes.add,
    ),
    _warning(
        name="under-64-bytes",
        reads=Reads.FILTERS,
        message="The filter has a single block, which the format allows and Impala reads as two.",
        why="Written by DuckDB, arrow-rs and parquet-java for few distinct values. Impala looks past its end and may lose rows.",
        look=_at_each_header(_under_64_bytes),
        fix=fixes.add,
    ),
    _warning(
        name="over-128-mib",
        reads=Reads.FILTERS,
        message="The filter is larger than 128 MiB, which the format allows and most readers refuse.",
        why="Follows from a guess of very many distinct values. Trino fails the query; parquet-java, Arrow C++, Velox and Impala ignore "
        "it or fail.",
        look=_at_each_header(_over_128_mib),
        fix=fixes.shrink_to_portable,
    ),
    _warning(
        name="placeholder-offset",
        reads=Reads.FOOTER,
        message="The footer gives an offset of 0 or below where it means that there is no filter, and not every reader knows.",
        why="Builds of parquet-java before 1.12 wrote 0 or -1. Readers that take it at its word look for a filter in the wrong place.",
        look=_offset_means_none,
        fix=fixes.repair,
    ),
)
