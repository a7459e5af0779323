"""The verdict on a column, `add`, `keep` or `no gain`, and its reason; both follow from the totals
of the surveys of all files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sbbf_tool.advice.queries import Query, QueryCounts
from sbbf_tool.advice.sample import EVERYWHERE
from sbbf_tool.advice.survey import FileSurvey
from sbbf_tool.advice.totals import Folds, Totals
from sbbf_tool.bloom import sizing
from sbbf_tool.display import redact
from sbbf_tool.errors import SbbfError, UnreadableError, UsageError
from sbbf_tool.numbers import format_number, format_percent
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.query_engines.uses import Use, list_warnings, use_of
from sbbf_tool.reports.engines import EngineVerdict
from sbbf_tool.rules.satisfaction import outweighs

ADD = "add"
KEEP = "keep"
LEFT_OUT = "left out"
NO_GAIN = "no gain"

# Limits for a column in which queried values are assumed to be present: fewer distinct values, and
# more occurrences of each.
FEW_DISTINCT = 100
_MANY_EACH = 10
NO_QUERY = "none of the given queries compares it with = or IN"
NDV_UNKNOWN = "its distinct values cannot be counted"
_SORTED = 1.5
"""A column counts as nearly sorted if min and max leave at most this many row groups on average."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Average numbers of row groups for a query for one value that is between min and max of at
    least one row group."""

    row_groups: int
    after_statistics: float
    """Row groups that remain after min and max."""
    row_groups_with_value: float
    """The remaining row groups that hold the value, if it is present."""

    def estimate_skipped(self, fpp: float, *, present: bool) -> float:
        """Estimate the row groups that a filter with this FPP skips."""
        without_value = self.after_statistics
        if present:
            without_value -= self.row_groups_with_value
        return max(0.0, without_value) * (1 - fpp)


def estimate_lookup(totals: Totals, share_after_statistics: float) -> Lookup:
    remaining = share_after_statistics * totals.row_groups
    others_with_value = max(0.0, remaining - 1) * (totals.repetition or 0.0)
    return Lookup(totals.row_groups, remaining, min(remaining, 1 + others_with_value))


def judge_without_data(
    totals: Totals, use: Use, remaining: float, *, has_queries: bool
) -> str | None:
    """Return why a filter on the column is not worthwhile, according to the footers and the table
    of engines; None if only the data can decide.

    `use` is what the engines make of filters on the column. `remaining` is the number of row groups
    that a query reads after min and max, on average over the given queries or, without
    `has_queries`, for a value between min and max of some row group.
    """
    column = totals.column
    if column.variant:
        return "it is a part of a VARIANT, whose other parts may hold the value in binary form"
    if column.physical == "BOOLEAN":
        return "BOOLEAN columns get no filter: nearly every row group holds both values"
    if totals.obstacle:
        return f"no filter can be added: {totals.obstacle}"
    if not totals.row_groups:
        return "it holds only nulls" if totals.has_nulls else "there are no rows"
    reason = _judge_by_engines(totals, use)
    if reason is None:
        reason = _judge_by_statistics(totals, remaining, has_queries=has_queries)
    return reason


def _judge_by_engines(totals: Totals, use: Use) -> str | None:
    """Return why the engines gain nothing by a filter on the column; None if one of them may."""
    if use.harm is not None:
        # After the semicolon, the sentence says how to avoid the harm.
        harm, _, _ = use.harm.partition(";")
        return f"a filter would be harmful: {harm}"
    if not use.users:
        type_name = totals.column.type_name
        return f"none of the engines uses a filter on this type ({type_name})"
    has_all_dictionaries = totals.dictionaries == totals.row_groups
    if has_all_dictionaries and use.users == use.dictionary_users:
        return (
            f"all its chunks are dictionary-encoded, and {_join_names(use.users, 'use')} "
            "the dictionary instead of a filter"
        )
    return None


def _judge_by_statistics(totals: Totals, remaining: float, *, has_queries: bool) -> str | None:
    """Return why a filter adds too little to min and max; None if they leave more than `_SORTED`
    row groups."""
    # A single row group is read whatever the order of the values, unless min and max exclude it
    # for some query.
    can_skip = totals.row_groups > 1 or remaining < 1
    if can_skip and remaining <= _SORTED:
        suffix = ": the column is sorted or nearly sorted"
        if has_queries:
            suffix = " for the given queries"
        return (
            f"min and max leave {format_number(remaining, exact=True)} of "
            f"{totals.row_groups:,} row groups to read{suffix}"
        )
    return None


def judge_with_data(totals: Totals, lookup: Lookup, fpp: float) -> str | None:
    """Return why a filter is not worthwhile, according to the sampled data; None if it is
    worthwhile."""
    cost = totals.estimate_cost(fpp)
    ndv = totals.ndv
    if cost is None or ndv is None:
        return NDV_UNKNOWN
    if (
        totals.repetition is not None
        and lookup.row_groups_with_value >= EVERYWHERE * lookup.after_statistics
    ):
        share = format_percent(lookup.row_groups_with_value / lookup.after_statistics)
        return (
            f"values repeat: a stored value is in {share} of the row groups that min and max leave"
        )
    if totals.repetition is None and ndv < FEW_DISTINCT and totals.most_values > _MANY_EACH * ndv:
        return (
            f"it has few distinct values ({ndv:,.0f}), so queries rarely look for an absent value"
        )
    if outweighs(cost.all_filters, totals.bytes):
        return (
            f"its filters would take {cost.all_filters:,} bytes, more than its data "
            f"({totals.bytes:,} bytes)"
        )
    return None


_RARELY_QUERIED_VALUES = {
    **dict.fromkeys(("FLOAT", "DOUBLE", "FLOAT16"), "floating-point values"),
    **dict.fromkeys(("TIMESTAMP", "TIME", "INT96"), "points in time"),
    "INTERVAL": "durations",
    **dict.fromkeys(("JSON", "BSON"), "whole documents"),
    **dict.fromkeys(("GEOMETRY", "GEOGRAPHY"), "shapes"),
}


_LARGE = 500
"""Average bytes of a value that is a text or an image rather than a key."""


def explain_rarity(totals: Totals) -> str | None:
    """Explain why queries seldom compare the values of this column by equality; None if they may do
    so often."""
    column = totals.column
    if totals.is_geometry:
        return "shapes are seldom queried by equality (the file's key geo names the column)"
    if (column.width or _LARGE) >= _LARGE and totals.value_bytes > _LARGE * totals.values:
        size = totals.value_bytes // max(1, totals.values)
        return (
            f"values of {size:,} bytes on average, such as images and prose, are seldom "
            "queried by equality"
        )
    kind = column.logical.kind if column.logical is not None else column.physical
    values = _RARELY_QUERIED_VALUES.get(kind)
    if kind == "DECIMAL" and column.logical and column.logical.scale:
        values = "decimal fractions"
    return None if values is None else f"{values} are seldom queried by equality"


def choose_verdict(
    totals: Totals,
    lookup: Lookup,
    reason: str | None,
    *,
    has_queries: bool,
    is_left_out: bool,
) -> tuple[str, str]:
    """Return the verdict and its reason; `reason` is the reason against a filter, or None."""
    if reason is not None:
        if is_left_out:
            return LEFT_OUT, reason
        if totals.filters and reason != NDV_UNKNOWN and not has_queries and not totals.obstacle:
            filters = "1 filter" if totals.filters == 1 else f"{totals.filters:,} filters"
            reason += f"; its {filters} ({totals.filter_bytes:,} bytes) can be removed"
        return NO_GAIN, reason
    if has_useful_filters(totals) and totals.mean_fpp is not None:
        fpp = format_percent(totals.mean_fpp)
        if totals.row_groups == 1:
            return KEEP, f"its only row group has a filter, whose FPP is {fpp}"
        return (
            KEEP,
            f"each of its {totals.row_groups:,} row groups has a filter; their mean FPP is {fpp}",
        )
    return ADD, explain_useless_filters(totals) or _explain_gain(totals, lookup)


def _explain_gain(totals: Totals, lookup: Lookup) -> str:
    """Return why filters are worthwhile on a column that lacks some."""
    if totals.filters:
        return (
            f"only {totals.filters:,} of {totals.row_groups:,} row groups have a filter; every "
            "query reads the others"
        )
    if totals.row_groups == 1:
        return (
            "queries for values between min and max read its only row group; with a filter, those "
            "for absent values skip it"
        )
    after_statistics = format_number(lookup.after_statistics, exact=True)
    remaining = f"min and max leave {after_statistics} of {totals.row_groups:,} row groups"
    if totals.repetition is None:
        return remaining
    return f"{remaining}; a value is in {format_number(lookup.row_groups_with_value, exact=True)}"


def explain_useless_filters(totals: Totals) -> str | None:
    """Return why existing filters should be rebuilt; None if all of them are useful."""
    if totals.unreadable_filters:
        return f"{totals.unreadable_filters:,} of its filters cannot be read; rebuild them"
    if totals.worst_fpp > sizing.SATURATED_FPP:
        return f"its filters have an FPP of up to {format_percent(totals.worst_fpp)}; rebuild them"
    return None


def has_useful_filters(totals: Totals) -> bool:
    """Return whether every row group has a useful filter."""
    return totals.filters == totals.row_groups > 0 and explain_useless_filters(totals) is None


def use_by_all(totals: Totals, names: tuple[str, ...]) -> Use:
    """Return what the named engines, or all, make of filters on this column.

    An engine that uses no filter on the column's type in ARROW:schema is excluded only if all files
    agree on that type.
    """
    schema_type = None
    if len(totals.arrow_types) == 1:
        (schema_type,) = totals.arrow_types
    return use_of(totals.column, names, arrow_type=schema_type)


def list_cautions(totals: Totals, use: Use, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to consider before a filter is added."""
    cautions = list_warnings(totals.column, names)
    if totals.dictionaries == totals.row_groups and use.dictionary_users:
        others = [verdict for verdict in use.users if verdict not in use.dictionary_users]
        reason = (
            "all chunks are dictionary-encoded: "
            f"{_join_names(use.dictionary_users, 'use')} the dictionary"
        )
        cautions.append(f"{reason}, so only {_join_names(others, 'benefit')} from a filter")
    return tuple(cautions)


def _join_names(verdicts: list[EngineVerdict], verb: str) -> str:
    """Return the names of the engines and a verb, such as `Spark uses` or `Spark and DuckDB
    use`."""
    names = [verdict.name for verdict in verdicts]
    if len(names) == 1:
        return f"{names[0]} {verb}s"
    return f"{', '.join(names[:-1])} and {names[-1]} {verb}"


class Surveys:
    """Totals of the files, by column and by query; `fpp` is the target. Raises UnreadableError if
    no file can be read."""

    def __init__(
        self,
        names: tuple[str, ...],
        surveys: Iterable[tuple[str, FileSurvey | SbbfError]],
        queries: Sequence[Query],
        fpp: float,
    ) -> None:
        self._fpp = fpp
        self.totals: dict[tuple[str, str], Totals] = {}
        self.counts = [QueryCounts() for _ in queries]
        self.unreadable: list[SbbfError] = []
        self.files = 0
        self.row_groups = 0
        self.bytes = 0
        self.most_row_groups = 0
        """Row groups of the file that has the most."""
        for path, survey in surveys:
            if isinstance(survey, SbbfError):
                if isinstance(survey, UsageError) or names == (path,):
                    raise survey
                self.unreadable.append(survey)
                continue
            self._add(path, survey)
        if self.unreadable and not self.files:
            raise UnreadableError(
                "no file can be read",
                file=", ".join(map(redact, names)),
                hint=str(self.unreadable[0]),
            )
        for query, counts in zip(queries, self.counts, strict=True):
            for column in counts.missing:
                self._refuse_missing_column(query, column)

    def _add(self, path: str, survey: FileSurvey) -> None:
        for column in survey.columns:
            key = column.column.name, column.column.type_name
            totals = self.totals.setdefault(key, Totals(column.column, Folds(self._fpp)))
            totals.add(path, column, survey.footer_bytes)
        for counts, file_counts in zip(self.counts, survey.queries, strict=True):
            counts.add(file_counts, first=not self.files)
        self.files += 1
        self.row_groups += survey.row_groups
        self.most_row_groups = max(self.most_row_groups, survey.row_groups)
        self.bytes += survey.bytes

    def _refuse_missing_column(self, query: Query, column: str) -> None:
        """Raise a UsageError that suggests similar names, because no file has the column."""
        columns = [totals.column for totals in self.totals.values()]
        try:
            find_column(columns, column)
        except UsageError as error:
            raise error.at(place=f"query {query.text!r}") from None

    def estimate_share(self, totals: Totals) -> float:
        """Estimate the share of row groups that min and max leave: for its queries or, without any,
        for a value in a row group's range."""
        name = totals.column.name
        shares = []
        for counts in self.counts:
            if name in counts.row_groups_by_column:
                remaining = counts.after_statistics_by_column[name]
                shares.append(remaining / counts.row_groups_by_column[name])
        if not shares:
            return totals.share_after_statistics
        return sum(shares) / len(shares)

    def judge(self, totals: Totals, use: Use) -> str | None:
        """Call `judge_without_data` for a column that any query uses, or if there are no queries;
        return why it is useless otherwise."""
        name = totals.column.name
        has_queries = bool(self.counts)
        if has_queries and not any(name in counts.row_groups_by_column for counts in self.counts):
            return NO_QUERY
        remaining = self.estimate_share(totals) * totals.row_groups
        return judge_without_data(totals, use, remaining, has_queries=has_queries)
