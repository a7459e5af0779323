"""The verdict on a column, in one sentence, from its totals: `add`, `keep` or `no gain`."""

from __future__ import annotations

from dataclasses import dataclass

from sbbf_tool.advice.survey import Totals
from sbbf_tool.query_engines.terms import HARM, USED
from sbbf_tool.query_engines.verdicts import engine, verdicts_for, warnings_for
from sbbf_tool.reports.engines import EngineVerdict
from sbbf_tool.rules.rule import percent
from sbbf_tool.rules.worth import SATURATED_FPP

ADD, KEEP, NO_GAIN = "add", "keep", "no gain"

FEW_DISTINCT, _MANY_EACH = 100, 10
"""Fewer distinct values, each with more occurrences than that: a queried value is assumed to be present."""
UNASKED, UNCOUNTED = "no query given asks for it", "its distinct values could not be counted"
_SORTED = 1.5
"""The most row groups, on average, that min and max leave of a nearly sorted column."""
_EVERYWHERE = 0.9
"""Share of the remaining row groups that hold a present value; from here on a filter skips almost nothing."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """The average number of row groups that a query for one value reads, for a value in the range of some row group."""

    row_groups: int
    after_statistics: float
    """After min and max."""
    row_groups_with_value: float
    """Those among them that hold a present value."""

    def skipped(self, fpp: float, *, present: bool) -> float:
        """Return the row groups that a filter of this FPP skips."""
        return max(0.0, self.after_statistics - (self.row_groups_with_value if present else 0.0)) * (1 - fpp)


def lookup_of(totals: Totals, share_left: float) -> Lookup:
    left = share_left * totals.row_groups
    return Lookup(totals.row_groups, left, min(left, 1 + max(0.0, left - 1) * (totals.repetition or 0.0)))


def without_data(totals: Totals, users: list[EngineVerdict], harmed: list[EngineVerdict], left: float, *, queried: bool) -> str | None:
    """Return why a filter brings no gain, as far as footer and table of engines show; None where they leave it open."""
    column = totals.column
    if column.physical == "BOOLEAN":
        return "BOOLEAN columns get no filter: two values are in nearly every row group"
    if totals.obstacle:
        return f"no filter can be added: {totals.obstacle}"
    if not totals.row_groups:
        return "it holds no value but null"
    if not users:
        return f"none of the engines asked for uses a filter on it ({column.type_name})"
    if len(harmed) >= len(users):
        return f"a filter would do harm: {harmed[0].sentence.partition(';')[0]}"
    if totals.dictionaries == totals.row_groups and all(_asks_dictionary(verdict) for verdict in users):
        return f"it is dictionary-encoded throughout, and {_names(users)} ask{'s' if len(users) == 1 else ''} the dictionary instead"
    if left <= _SORTED and (totals.row_groups > 1 or left < 1):
        why = "to the queries given" if queried else "to read: the column is sorted, or nearly so"
        return f"min and max leave {left:.3g} of {totals.row_groups:,} row groups {why}"
    return None


def with_data(totals: Totals, lookup: Lookup, fpp: float) -> str | None:
    """Return the same, once the distinct values are known."""
    cost = totals.cost(fpp)
    ndv = totals.ndv
    if cost is None or ndv is None:
        return UNCOUNTED
    if totals.repetition is not None and lookup.row_groups_with_value >= _EVERYWHERE * lookup.after_statistics:
        share = percent(lookup.row_groups_with_value / lookup.after_statistics)
        return f"values repeat: a stored value is in {share} of the row groups that remain after min and max"
    if totals.repetition is None and ndv < FEW_DISTINCT and totals.most_values > _MANY_EACH * ndv:
        return f"few distinct values ({ndv:,.0f}), so hardly any query asks for one that is absent"
    if cost[1] > totals.bytes:
        return f"filters would take {cost[1]:,} bytes, more than the {totals.bytes:,} bytes of its data"
    return None


def verdict_of(totals: Totals, lookup: Lookup, reason: str | None, *, queried: bool) -> tuple[str, str]:
    """Return verdict and sentence, from the reason against a filter where there is one."""
    if reason is not None:
        is_known = reason != UNCOUNTED and not queried and not totals.obstacle
        worthless = f"; its filters ({totals.filters:,}, of {totals.filter_bytes:,} bytes) can go" if totals.filters and is_known else ""
        return NO_GAIN, reason + worthless
    if is_filtered(totals) and totals.mean_fpp is not None:
        return KEEP, f"all its {totals.row_groups:,} row groups have a filter, which {percent(totals.mean_fpp)} of absent values pass"
    if (useless := useless_filters(totals)) is not None:
        return ADD, useless
    if totals.filters:
        return ADD, f"only {totals.filters:,} of {totals.row_groups:,} row groups have a filter; those without are read by every query"
    if totals.row_groups == 1:
        return ADD, "its one row group is read for every value between min and max, and a filter skips it where the value is absent"
    left = f"min and max leave {lookup.after_statistics:.3g} of {totals.row_groups:,} row groups to read"
    return ADD, left if totals.repetition is None else f"{left}, and {lookup.row_groups_with_value:.3g} hold a value that is there"


def useless_filters(totals: Totals) -> str | None:
    """Return why existing filters are to be rebuilt; None where all are worth a query."""
    if totals.unreadable_filters:
        return f"{totals.unreadable_filters:,} of its filters cannot be read; rebuild them"
    if totals.worst_fpp > SATURATED_FPP:
        return f"its filters let up to {percent(totals.worst_fpp)} of absent values pass; rebuild them"
    return None


def is_filtered(totals: Totals) -> bool:
    """Return whether every row group has a filter that is worth a query."""
    return totals.filters == totals.row_groups > 0 and useless_filters(totals) is None


def engines_for(totals: Totals, names: tuple[str, ...]) -> tuple[list[EngineVerdict], list[EngineVerdict]]:
    """Return, for the named engines or all, those that use a filter on this column, and those that it harms.

    An engine that uses no filter on the column's type in ARROW:schema is left out only where all files agree.
    """
    known_as = next(iter(totals.arrow_types)) if len(totals.arrow_types) == 1 else None
    asked = {engine(name).id for name in names}
    verdicts = [verdict for verdict in verdicts_for(totals.column, arrow_type=known_as) if not asked or verdict.engine in asked]
    return [one for one in verdicts if one.verdict == USED], [one for one in verdicts if one.verdict == HARM]


def cautions_of(totals: Totals, users: list[EngineVerdict], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what to know before a filter is added."""
    said = warnings_for(totals.column) if not names else []
    if totals.dictionaries == totals.row_groups and (askers := [one for one in users if _asks_dictionary(one)]):
        others = [one for one in users if not _asks_dictionary(one)]
        said.append(f"dictionary-encoded throughout: {_names(askers)} ask the dictionary, so only {_names(others)} gain by a filter")
    return tuple(said)


def _asks_dictionary(verdict: EngineVerdict) -> bool:
    return engine(verdict.engine).dictionary_first


def _names(verdicts: list[EngineVerdict]) -> str:
    names = [verdict.name for verdict in verdicts]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
