"""Rules for false negatives: a filter that excludes stored values loses rows in every reader that
trusts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sbbf_tool.file import misses
from sbbf_tool.parquet.idl.ttypes import Type
from sbbf_tool.parquet.statistics import NO_ROW_LOST
from sbbf_tool.reports.findings import ERROR, INFO, WARNING, Evidence, FilterVerification
from sbbf_tool.rules import fixes
from sbbf_tool.rules.facts import ChunkFacts, ColumnFacts, Reads
from sbbf_tool.rules.rule import (
    DROP,
    DROP_OR_REBUILD,
    REBUILD_ONLY,
    Limits,
    Look,
    Rule,
    at_each_filter,
)

GROUP = "correctness"
_error = partial(Rule, group=GROUP, severity=ERROR, reads=Reads.DATA)
_warning = partial(Rule, group=GROUP, severity=WARNING, reads=Reads.DATA)
_info = partial(Rule, group=GROUP, severity=INFO, reads=Reads.DATA)
_loses_rows = partial(_error, fix=fixes.rebuild, repairs=DROP_OR_REBUILD)

_ZEROS = {"0.0": "-0.0", "-0.0": "0.0"}
_NAN = "nan"


def _empty(chunk: ChunkFacts, *, boolean: bool) -> str | None:
    if (chunk.meta.type == Type.BOOLEAN) != boolean:
        return None
    if chunk.bits is None or not chunk.bits.empty or not chunk.values:
        return None
    return f"no bit is set, but the chunk has {chunk.values:,} values"


def _at_each_verification(examine: Callable[[FilterVerification], str | None]) -> Look:
    """Build the `look` function of a rule about verifications, which mean nothing where the bits of
    a filter cannot be interpreted."""

    def look(chunk: ChunkFacts) -> str | None:
        if chunk.verification is None or chunk.is_uninterpreted:
            return None
        return examine(chunk.verification)

    return at_each_filter(look)


def _with_cause(cause: str | None) -> Look:
    def examine(verification: FilterVerification) -> str | None:
        if verification.cause != cause:
            return None
        return _false_negatives(verification)

    return _at_each_verification(examine)


def _false_negatives(verification: FilterVerification) -> str | None:
    if not verification.false_negatives:
        return None
    examples = ", ".join(verification.examples)
    fact = (
        f"{verification.false_negatives:,} of {verification.verified_values:,} values are "
        f"false negatives, such as {examples}"
    )
    if verification.explanation:
        fact += f"; {verification.explanation}"
    return fact


def _excluded_intervals(verification: FilterVerification) -> str | None:
    if not verification.excluded_intervals:
        return None
    return (
        f"{verification.excluded_intervals:,} of {verification.verified_values:,} values "
        "are excluded in their normalised form"
    )


def _excluded_instants(verification: FilterVerification) -> str | None:
    if not verification.excluded_instants:
        return None
    return (
        f"{verification.excluded_instants:,} of {verification.verified_values:,} values "
        "are excluded in the form that is rounded down"
    )


def _excluded_zero(verification: FilterVerification) -> str | None:
    excluded = [zero for zero in _ZEROS if zero in verification.excluded_forms]
    if len(excluded) != 1:
        return None
    (zero,) = excluded
    return f"the chunk holds {_ZEROS[zero]}, but the filter excludes {zero}"


def _excluded_nans(verification: FilterVerification) -> str | None:
    facts = []
    if verification.excluded_nans:
        facts.append(f"{verification.excluded_nans:,} stored NaNs are excluded")
    if _NAN in verification.excluded_forms:
        facts.append("a canonical form of NaN is excluded")
    return " and ".join(facts) or None


def _wrong_statistics(*, harmless: bool) -> Look:
    """Build the `look` function of a rule about statistics, which chunks without a filter have
    too."""

    def look(column: ColumnFacts, limits: Limits) -> Iterator[Evidence]:
        for chunk in column.chunks:
            facts = [
                fact for fact in chunk.wrong_statistics if fact.endswith(NO_ROW_LOST) == harmless
            ]
            if facts:
                yield Evidence(chunk.row_group, "; ".join(facts))

    return look


RULES = (
    _loses_rows(
        name="false-negatives",
        message="The filter has false negatives of unknown cause, so queries lose rows.",
        why="Possible causes: a damaged bitset, the filter of another column or row group, a "
        "filter that was built before all values were added (arrow-go 18.4.0), or a hash that sbbf "
        "does not know.",
        look=_with_cause(None),
    ),
    _loses_rows(
        name="hashed-as-text",
        message="The filter holds the values as text instead of as bytes, so every reader that "
        "follows the format loses rows.",
        why="parquetjs hashes the result of `toString()`, which is right for strings and wrong for "
        "numbers.",
        look=_with_cause(misses.TEXT),
    ),
    _loses_rows(
        name="hashed-at-wrong-width",
        message="The filter holds the values with a width or byte order that differs from that of "
        "the file, so readers lose rows.",
        why="Some libraries hash their own representation of a value: small integers in 1 or 2 "
        "bytes, decimals in 16, integers in 8 instead of 4.",
        look=_with_cause(misses.WIDTH),
    ),
    _loses_rows(
        name="wrong-block",
        message="The filter holds the values in blocks other than those that the format assigns to "
        "them, so readers lose rows.",
        why="Drafts of the format chose the block by a remainder, and some readers and writers "
        "still do; or the header states more bytes than the filter was built with.",
        look=_with_cause(misses.BLOCK),
    ),
    _loses_rows(
        name="hashed-as-draft",
        message="The filter holds hashes of a draft of the format but has a header of the released "
        "format, so readers lose rows.",
        why="The writer follows a draft of 2018 or 2019 (MurmurHash3), or behaves like builds of "
        "parquet-mr's Bloom filter branch (which hash every number as the empty string), but "
        "writes the header of the released format.",
        look=_with_cause(misses.DRAFT),
    ),
    _loses_rows(
        name="empty-filter",
        reads=Reads.FILTERS,
        message="The filter is empty although the column chunk has values, so readers find none of "
        "them.",
        why="arrow-go 18.4.0 writes adaptive filters without their values; other writers reserve "
        "space for a filter and fail before they fill it.",
        look=at_each_filter(lambda chunk: _empty(chunk, boolean=False)),
    ),
    _error(
        name="empty-boolean-filter",
        reads=Reads.FILTERS,
        message="The filter of this BOOLEAN column is empty, as parquet-java writes it, so readers "
        "that use it find no rows.",
        why="parquet-java since 1.12, and Spark with it, writes such a filter on request and "
        "ignores it when reading. DataFusion and other readers use it and find no rows.",
        look=at_each_filter(lambda chunk: _empty(chunk, boolean=True)),
        fix=fixes.remove,
        repairs=DROP,
    ),
    _loses_rows(
        name="interval-not-normalised",
        message="The file states that its INTERVAL filters hold normalised values, but this one "
        "does not, so DuckDB loses rows.",
        why="DuckDB 2.0 queries only the normalised form where the key "
        "duckdb.interval_bloom_filter is set. A tool that writes filters of another form must "
        "remove the key.",
        look=_at_each_verification(_excluded_intervals),
    ),
    _warning(
        name="int96-form-missing",
        message="The filter excludes the usual form of INT96 timestamps that are stored in another "
        "form, so readers that query the usual form lose rows.",
        why="Arrow C++ up to 22.0 stores an instant before 1970 as the following day with a "
        "negative time of day (apache/arrow issue 48246). Readers convert it to the form of other "
        "writers, with the day rounded down, and query the filter for that form.",
        look=_at_each_verification(_excluded_instants),
        fix=fixes.rebuild,
        repairs=REBUILD_ONLY,
    ),
    _error(
        name="wrong-statistics",
        message="The statistics of the column chunk exclude values that it holds, so readers that "
        "prune by them lose rows.",
        why="Bounds and null_count come from the writer, and query engines skip row groups by them "
        "before they read a filter. No filter helps: rewrite the file. If this rule is selected by "
        "name, chunks without a filter are read too.",
        look=_wrong_statistics(harmless=False),
    ),
    _info(
        name="wrong-null-count",
        message="The number of nulls in the footer is wrong, but no reader loses a row by it.",
        why="parquet-java counts nulls in a REQUIRED column if it writes without validation. "
        "Readers skip a row group only if the count is 0 or that of all values; numbers of nulls "
        "or values that they take from the footer are wrong.",
        look=_wrong_statistics(harmless=True),
    ),
    _warning(
        name="zero-form-missing",
        message="The column holds a zero, but the filter holds only one of 0.0 and -0.0, so "
        "readers that query the other form lose rows.",
        why="The format does not specify which form is hashed (apache/parquet-format issue 407), "
        "and most writers hash the stored bits. SQL treats both zeros as equal; DataFusion and "
        "parquet-java query only the form in the query.",
        look=_at_each_verification(_excluded_zero),
        fix=fixes.add,
        repairs=REBUILD_ONLY,
    ),
    _info(
        name="nan-forms-missing",
        message="The column holds NaN, but the filter does not hold every form of NaN, so a query "
        "for NaN may find no rows.",
        why="NaN has many bit patterns, and SQL engines disagree on whether they are equal. "
        "parquet-java up to 1.17 stores one form and hashes another. The filter is correct: "
        "readers should not query it for NaN.",
        look=_at_each_verification(_excluded_nans),
        fix=fixes.add,
    ),
)
