"""What `advise` recommends for each column and query, and the change that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sbbf_tool.advice.queries import Query, QueryCounts
from sbbf_tool.advice.sample import describe_ndv_source
from sbbf_tool.advice.totals import FoldedSize, Totals
from sbbf_tool.advice.verdicts import ADD, KEEP, Lookup, Surveys, explain_useless_filters
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import Fix
from sbbf_tool.writers.writer import FilteredColumn, Request

ColumnKey = tuple[str, str]
"""A column's name and type."""


class ColumnAdvice(Frozen):
    """Advice on whether one column, over all files, deserves a filter."""

    column: str
    type: str
    verdict: str
    """`add`, `keep`, `left out` (its type is seldom queried by equality) or `no gain`."""
    reason: str
    cautions: tuple[str, ...]
    """What to consider before a filter is added."""
    row_groups: int
    """Row groups in which the column has values."""
    bytes: int
    """Compressed bytes of the chunks of the column."""
    row_group_bytes: int
    """Compressed bytes of all columns of these row groups."""
    ndv: float | None
    """Distinct values in the row group that has the most; None if they were not counted, because
    the verdict does not depend on them."""
    ndv_is_exact: bool
    ndv_source: str | None
    dictionary_encoded: int
    """Row groups in which all pages of the column are dictionary-encoded."""
    after_statistics: float
    """Row groups that remain after min and max, on average for the given queries or, without any,
    for a value in a row group's range."""
    row_groups_with_value: float | None
    """Number of these row groups that hold the value, if it is present; estimated from the
    samples."""
    filters: int
    filter_bytes: int
    mean_fpp: float | None
    bitset_bytes: int | None
    """The largest bitset that a row group needs."""
    cost_bytes: int | None
    """Bytes of all filters."""
    skipped_if_absent: int
    """Bytes of row groups that a query for one absent value skips on average with filters."""
    skipped_if_present: int | None
    """The same for a present value; None if the number of row groups that hold the value is
    unknown."""


class QueryAdvice(Frozen):
    """Row groups that a query reads."""

    query: str
    row_groups: int
    after_statistics: int
    after_dictionary: int
    """Row groups that remain after min, max and dictionaries, for query engines that use
    dictionaries."""
    after_filters: int
    """Row groups that remain after min, max and the existing filters."""
    after_advice: float
    """The same with the advised filters added, on average; row groups without a dictionary are
    assumed not to hold the values."""


class ColumnSizes(Frozen):
    """What the filters of one column take, and would take at smaller sizes."""

    column: str
    sizes: tuple[FoldedSize, ...]
    bytes_at_target: int
    """Bytes of the bitsets, each folded to the smallest size that meets the target false-positive
    rate, if any does."""


def list_sizes(all_totals: Iterable[Totals]) -> Iterator[ColumnSizes]:
    for totals in all_totals:
        sizes = tuple(totals.folds.sizes())
        if sizes:
            yield ColumnSizes(totals.column.name, sizes, totals.folds.bytes_at_target)


def build_request(
    patterns: tuple[str, ...],
    columns: Mapping[ColumnKey, ColumnAdvice],
    summary: Surveys,
    fpp: float,
) -> Request:
    """Return the filters that new files should get: those that are advised, and those that are
    kept."""
    filtered: dict[str, FilteredColumn] = {}
    for key, column in columns.items():
        if column.verdict not in (ADD, KEEP):
            continue
        name, _ = key
        ndv = column.ndv or 1.0
        if name not in filtered or filtered[name].ndv < ndv:
            totals = summary.totals[key]
            filtered[name] = FilteredColumn(totals.column, ndv, totals.most_values)
    return Request(tuple(filtered.values()), fpp, patterns, summary.most_row_groups)


def build_advice(
    totals: Totals, lookup: Lookup, verdict: str, reason: str, fpp: float, cautions: tuple[str, ...]
) -> ColumnAdvice:
    bitset_bytes = None
    cost_bytes = None
    cost = totals.estimate_cost(fpp)
    if cost is not None:
        bitset_bytes = cost.largest_bitset
        cost_bytes = cost.all_filters
    mean = 0.0
    if totals.row_groups:
        mean = totals.row_group_bytes / totals.row_groups
    expected_fpp = fpp
    if verdict != ADD and totals.mean_fpp is not None:
        expected_fpp = totals.mean_fpp
    ndv_source, is_exact = describe_ndv_source(totals)
    skipped_if_absent = round(lookup.estimate_skipped(expected_fpp, present=False) * mean)
    row_groups_with_value = None
    skipped_if_present = None
    if totals.repetition is not None:
        row_groups_with_value = lookup.row_groups_with_value
        skipped_if_present = round(lookup.estimate_skipped(expected_fpp, present=True) * mean)
    return ColumnAdvice(
        column=totals.column.name,
        type=totals.column.type_name,
        verdict=verdict,
        reason=reason,
        cautions=cautions if verdict == ADD else (),
        row_groups=totals.row_groups,
        bytes=totals.bytes,
        row_group_bytes=totals.row_group_bytes,
        ndv=totals.ndv,
        ndv_is_exact=is_exact,
        ndv_source=ndv_source,
        dictionary_encoded=totals.dictionaries,
        after_statistics=lookup.after_statistics,
        row_groups_with_value=row_groups_with_value,
        filters=totals.filters,
        filter_bytes=totals.filter_bytes,
        mean_fpp=totals.mean_fpp,
        bitset_bytes=bitset_bytes,
        cost_bytes=cost_bytes,
        skipped_if_absent=skipped_if_absent,
        skipped_if_present=skipped_if_present,
    )


def build_fix(
    names: tuple[str, ...],
    columns: Mapping[ColumnKey, ColumnAdvice],
    totals: Mapping[ColumnKey, Totals],
    fpp: float,
    keys: str | None,
) -> Fix | None:
    """Return the change that adds the advised filters; None if no filter is advised. `keys` is a
    path."""
    additions = {key: column.column for key, column in columns.items() if column.verdict == ADD}
    if not additions:
        return None
    # If row groups merely lack filters, sound filters are kept: a run over new files must not
    # rebuild the filters of all others.
    rebuilds = any(explain_useless_filters(totals[key]) is not None for key in additions)
    return Fix(
        "add_filters",
        names,
        tuple(dict.fromkeys(additions.values())),
        rebuild="all" if rebuilds else None,
        fpp=None if fpp == DEFAULT_FPP else fpp,
        keys=keys,
    )


def estimate_added(
    columns: Mapping[ColumnKey, ColumnAdvice], summary: Surveys, fpp: float, fix: Fix | None
) -> int:
    """Estimate the bytes that the change adds to all files."""
    rebuilds = fix is not None and fix.rebuild is not None
    filter_bytes = 0
    footer_bytes = 0
    for key, column in columns.items():
        if column.verdict != ADD:
            continue
        totals = summary.totals[key]
        footer_bytes = max(footer_bytes, totals.footer_bytes)
        cost = totals.estimate_cost(fpp)
        if cost is not None:
            filter_bytes += cost.all_filters if rebuilds else cost.missing_filters
    return footer_bytes + filter_bytes


def build_query_advice(
    query: Query, counts: QueryCounts, fix: Fix | None, fpp: float
) -> QueryAdvice:
    columns = () if fix is None else fix.columns
    return QueryAdvice(
        query=query.text,
        row_groups=counts.row_groups,
        after_statistics=counts.after_statistics,
        after_dictionary=counts.after_dictionary,
        after_filters=counts.after_filters,
        after_advice=counts.estimate_remaining(dict.fromkeys(columns, fpp)),
    )
