"""Rules for the place and layout of a filter: offset, length, header and size, as the footer states
and readers expect them.

A violation of the format is an error; a valid form that released readers reject or misread is a
warning. The filters of encrypted columns must be encrypted too (parquet-format Encryption.md),
which is checked completely only with the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.buffers import BLOCK_BYTES
from sbbf_tool.hints import Fix
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.reports.findings import ERROR, WARNING, Evidence
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import PLAINTEXT, ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.rule import (
    DROP,
    DROP_OR_REBUILD,
    REBUILD_ONLY,
    SET_LENGTH,
    Limits,
    Look,
    Rule,
    at_each_filter,
)

GROUP = "format"
_error = partial(Rule, group=GROUP, severity=ERROR)
_warning = partial(Rule, group=GROUP, severity=WARNING)


def _at_each_header(examine: Callable[[StoredFilter], str | None]) -> Look:
    """Build the `look` function of a rule about filters that have a header."""

    def look(chunk: ChunkFacts) -> str | None:
        if chunk.stored is None:
            return None
        return examine(chunk.stored)

    return at_each_filter(look)


def _unknown_header(stored: StoredFilter) -> str | None:
    if stored.header.readings:
        return None
    return stored.header.unsupported_reason


def _draft_dialect(chunk: ChunkFacts) -> str | None:
    if chunk.stored is None or not chunk.stored.header.readings:
        return None
    fact = chunk.stored.header.unsupported_reason or ""
    verification = chunk.verification
    if verification is None or verification.problem or not verification.verified_values:
        return fact
    num_missing = verification.false_negatives
    if verification.dialect is None:
        dialect = "none of these" if num_missing else "the released format"
        return f"{fact}; the values match {dialect}"
    match = f"the values match {verification.dialect}"
    if num_missing:
        match += f", except {num_missing:,} of {verification.verified_values:,}"
    return f"{fact}; {match}"


def _unreadable(chunk: ChunkFacts) -> str | None:
    if chunk.place is None or not chunk.unreadable:
        return None
    return f"at byte {chunk.place.offset:,}: {chunk.unreadable}"


def _overlap(chunk: ChunkFacts) -> str | None:
    if not chunk.overlaps:
        return None
    first, *others = chunk.overlaps
    more = f" and {len(others)} more" if others else ""
    return f"it shares bytes with {first.words}{more}"


def _missing_length(chunk: ChunkFacts) -> str | None:
    if chunk.place is None or chunk.place.length is not None:
        return None
    return "bloom_filter_length is missing"


def _wrong_length(stored: StoredFilter) -> str | None:
    if stored.place.length in (None, stored.length):
        return None
    return (
        f"bloom_filter_length is {stored.place.length:,}, but header and bitset take "
        f"{stored.length:,} bytes"
    )


def _partial_block(stored: StoredFilter) -> str | None:
    num_bytes = stored.header.num_bytes
    remainder = num_bytes % BLOCK_BYTES
    if not remainder:
        return None
    return f"its bitset has {num_bytes:,} bytes, and the last {remainder} are not a whole block"


def _at_each_size(is_wrong: Callable[[int], bool]) -> Look:
    """Build the `look` function of a rule about the bytes of bitsets."""

    def look(stored: StoredFilter) -> str | None:
        num_bytes = stored.header.num_bytes
        if not is_wrong(num_bytes):
            return None
        return f"its bitset has {num_bytes:,} bytes"

    return _at_each_header(look)


def _placeholder_offset(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
    for chunk in column.chunks:
        offset, _ = chunk.meta.stated_filter
        if offset is not None and offset <= 0:
            yield Evidence(chunk.row_group, f"bloom_filter_offset is {offset}")


RULES = (
    _error(
        name="unreadable-filter",
        message="The footer refers to a filter, but there is none at its offset, so some readers "
        "fail and no reader skips anything.",
        why="A tool rewrote the file and kept the old offsets, or the file was truncated or "
        "overwritten. Iceberg, ClickHouse and parquet-go fail the query or cannot open the file; "
        "other readers continue without a filter.",
        look=at_each_filter(_unreadable),
        fix=fixes.repair,
        repairs=DROP_OR_REBUILD,
    ),
    _error(
        name="overlapping-filter",
        message="The filter shares bytes with other contents of the file, so one of the two is "
        "damaged.",
        why="A tool moved pages and kept the old offsets. Readers interpret the bytes as the "
        "footer states, and lose rows.",
        look=at_each_filter(_overlap),
        fix=fixes.rebuild,
        repairs=REBUILD_ONLY,
    ),
    _error(
        name="oversized-page",
        reads=Reads.DATA,
        message="A page header states more uncompressed bytes than the limit allows, so its column "
        "chunk was not read, and the filter not verified.",
        why="The file was made to exhaust the memory of its readers, or a page header is damaged: "
        "readers allocate what the header states. If the writer is trusted, raise the limit.",
        look=at_each_filter(attrgetter("oversized_page")),
    ),
    _error(
        name="unknown-header",
        message="The filter's header states another algorithm, hash or compression than the format "
        "defines, so its bits cannot be interpreted.",
        why="parquetjs leaves algorithm, hash and compression empty; parquet-go may compress with "
        "GZIP, which the format does not define for filters. Some readers ignore the filter, some "
        "fail the query, and some use it anyway.",
        look=_at_each_header(_unknown_header),
        fix=fixes.rebuild,
        repairs=DROP_OR_REBUILD,
    ),
    _error(
        name="draft-dialect",
        message="The filter follows an unreleased draft of the format, so no reader uses it and "
        "some fail.",
        why="Such filters were written by builds of parquet-mr's Bloom filter branch in 2019 and "
        "2020, and by tools that follow the drafts of that time. The header does not show the hash "
        "function; only queries for stored values do. ClickHouse and DuckDB fail the query; "
        "DataFusion and parquet-java ignore the filter.",
        look=at_each_filter(_draft_dialect),
        fix=fixes.rebuild,
        repairs=DROP_OR_REBUILD,
    ),
    _warning(
        name="missing-length",
        reads=Reads.FOOTER,
        message="The footer does not state the length of the filter, so some readers lose rows or "
        "ignore the filter.",
        why="Written by Trino, Impala, parquetjs and parquet-java before 1.14. parquet-java 1.14.0 "
        "to 1.15.2, and with it Iceberg 1.8 and 1.9, may read too few bytes of the filter from an "
        "object store and lose rows; hyparquet ignores the filter; other readers guess its length.",
        look=at_each_filter(_missing_length),
        fix=fixes.repair,
        repairs=SET_LENGTH,
    ),
    _error(
        name="wrong-length",
        message="The footer and the header state different lengths of the filter, so readers "
        "disagree about its bits.",
        why="arrow-rs up to 59 reads the wrong blocks and loses rows, parquet-java pads the bitset "
        "with zeros, Arrow C++ fails, DuckDB ignores the filter.",
        look=_at_each_header(_wrong_length),
        fix=fixes.repair,
        repairs=SET_LENGTH,
    ),
    _error(
        name="partial-block",
        message="The filter does not consist of whole blocks of 32 bytes, as the format requires, "
        "so some readers refuse it.",
        why="parquet-java writes a filter of any size that `parquet.bloom.filter.max.bytes` "
        "states. ClickHouse fails the query; DuckDB, Doris and hyparquet ignore the filter.",
        look=_at_each_header(_partial_block),
        fix=fixes.add,
        repairs=REBUILD_ONLY,
    ),
    _warning(
        name="not-power-of-two",
        message="The size of the filter is not a power of two, which the format allows but some "
        "readers refuse or misread.",
        why="Written by parquet-go, parquetjs, and parquet-java with a maximum size. Arrow C++ and "
        "Velox refuse the filter; Impala reads the wrong blocks and may lose rows.",
        look=_at_each_size(lambda size: size & (size - 1) != 0),
        fix=fixes.add,
        repairs=REBUILD_ONLY,
    ),
    _warning(
        name="under-64-bytes",
        message="The filter has a single block, which the format allows but Impala reads as two.",
        why="Written by DuckDB, arrow-rs and parquet-java for few distinct values. Impala reads "
        "past the end of the filter and may lose rows.",
        look=_at_each_size(lambda size: size < sizing.MIN_BYTES),
        fix=fixes.add,
        repairs=REBUILD_ONLY,
    ),
    _warning(
        name="over-128-mib",
        message="The filter is larger than 128 MiB, which the format allows but most readers "
        "refuse.",
        why="The writer expected very many distinct values. Trino fails the query; parquet-java, "
        "Arrow C++, Velox and Impala ignore the filter or fail.",
        look=_at_each_size(lambda size: size > sizing.MAX_BYTES),
        fix=fixes.shrink_to_portable,
        repairs=REBUILD_ONLY,
    ),
    _warning(
        name="placeholder-offset",
        reads=Reads.FOOTER,
        message="The footer states an offset of 0 or less to mean that there is no filter, which "
        "some readers do not recognise.",
        why="Builds of parquet-java before 1.12 wrote 0 or -1. Readers that use the offset look "
        "for a filter in the wrong place.",
        look=_placeholder_offset,
        fix=fixes.repair,
        repairs=DROP,
    ),
)

ENCRYPTION = "encryption"
_encryption_error = partial(Rule, group=ENCRYPTION, severity=ERROR)


def _plaintext(chunk: ChunkFacts) -> str | None:
    if chunk.module_defect != PLAINTEXT:
        return None
    return "header and bitset can be read without the key"


def _module_defect(chunk: ChunkFacts) -> str | None:
    if chunk.module_defect == PLAINTEXT:
        return None
    return chunk.module_defect


def _rebuild_if_decrypted(column: ColumnFacts, limits: Limits) -> Fix | None:
    if any(chunk.encryption for chunk in column.filters):
        return None
    return fixes.rebuild(column, limits)


ENCRYPTION_RULES = (
    _encryption_error(
        name="plaintext-filter-on-encrypted-column",
        message="The column is encrypted but its filter is not, so anyone can test which values "
        "the column holds.",
        why="arrow-rs writes plaintext filters into encrypted files. They disclose data, and "
        "readers with the key expect ciphertext and fail.",
        look=at_each_filter(_plaintext),
        fix=fixes.remove_bytes_too,
    ),
    _encryption_error(
        name="damaged-encrypted-filter",
        message="The filter of this encrypted column does not consist of two valid encrypted "
        "modules, so readers with the key fail.",
        why="The filter was truncated, overwritten, moved or exchanged, or was not encrypted as "
        "modules 8 and 9 (parquet-go uses 6 and 7). Without the key only the lengths of header and "
        "bitset are checked; with it, every bit.",
        look=at_each_filter(_module_defect),
        fix=_rebuild_if_decrypted,
        repairs=DROP_OR_REBUILD,
    ),
)
