"""What a query engine does with each row group of a query, by the answers of statistics, dictionary
and filter, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sbbf_tool.file.filter_answers import EMPTY_FILTER
from sbbf_tool.parquet.notation import MAYBE
from sbbf_tool.query_engines.terms import HARM, LOSES_ROWS, USED
from sbbf_tool.reports.engines import EngineReport, EngineVerdict
from sbbf_tool.reports.probe import RowGroupAnswer

# What an engine does with a row group. There is also `HARM`: with this filter, the query loses rows
# or fails.
STATISTICS = "statistics"
DICTIONARY = "dictionary"
FILTER = "filter"
READ = "read"
WRONG_FILTER = (
    "the dictionary holds the value, but the filter excludes it: engines that "
    "query the filter lose its rows"
)


class Means(NamedTuple):
    """What the three means say of the values of a query."""

    statistics: RowGroupAnswer
    dictionary: RowGroupAnswer | None
    filter: RowGroupAnswer

    @property
    def filter_reason(self) -> str | None:
        if self.filter.is_absent and self.dictionary and self.dictionary.answer == MAYBE:
            return WRONG_FILTER
        return self.filter.reason


def merge_means(
    statistics: Sequence[RowGroupAnswer],
    dictionary: Sequence[RowGroupAnswer] | None,
    filters: Sequence[RowGroupAnswer],
) -> Means:
    """Merge the answers of each means for the values that the means before it leave; if these leave
    none, it gets all."""
    remaining = _list_remaining(statistics, range(len(statistics)))
    merged_dictionary = None
    if dictionary is not None:
        merged_dictionary = merge_answers([dictionary[at] for at in remaining])
        remaining = _list_remaining(dictionary, remaining)
    merged_filters = merge_answers([filters[at] for at in remaining])
    return Means(merge_answers(statistics), merged_dictionary, merged_filters)


def _list_remaining(answers: Sequence[RowGroupAnswer], remaining: Sequence[int]) -> list[int]:
    """List the values that the answers leave of those that remained; all if they leave none."""
    left = [at for at in remaining if not answers[at].is_absent]
    return left or list(range(len(answers)))


def merge_answers(answers: Sequence[RowGroupAnswer]) -> RowGroupAnswer:
    """Return the answer for several values together: `absent` if all are, `maybe` if one is."""
    merged = answers[0]
    for answer in answers:
        if answer.answer == MAYBE:
            return answer
        if merged.is_absent:
            merged = answer
    return merged


class RowGroupView(NamedTuple):
    """One row group as one engine sees it."""

    means: Means
    """With the min and max that this engine trusts."""
    verdict: EngineVerdict
    """On the row group's filter or, without a filter, on one that could be added."""
    has_filter: bool


def choose_step(view: RowGroupView, *, uses_dictionary: bool, is_comparable: bool) -> str:
    """Return what the engine does with a row group. It is read for a value that the column cannot
    store: the conversion is unknown."""
    means = view.means
    verdict = view.verdict.verdict
    if means.statistics.is_absent:
        return STATISTICS
    if not is_comparable:
        return READ
    if uses_dictionary and means.dictionary is not None:
        if means.dictionary.is_absent:
            return DICTIONARY
        return READ
    if view.has_filter and verdict == HARM:
        return HARM
    if not view.has_filter or verdict != USED:
        return READ
    if means.filter_reason in (WRONG_FILTER, EMPTY_FILTER):
        return HARM
    if means.filter.is_absent:
        return FILTER
    return READ


def harm_of(engine: EngineReport, view: RowGroupView) -> tuple[str | None, str]:
    """Return the effect of a filter that harms the query, and its explanation."""
    if view.verdict.verdict == HARM:
        return view.verdict.effect, view.verdict.sentence.removeprefix(f"{engine.name}: ")
    return LOSES_ROWS, view.means.filter_reason or ""


def explain_steps(
    engine: EngineReport,
    column_verdict: EngineVerdict,
    views: Sequence[RowGroupView],
    steps: Sequence[str],
) -> str:
    """Explain the harm if there is any, otherwise how the engine uses the first filter or, without
    filters, a filter on this type."""
    if HARM in steps:
        return harm_of(engine, views[steps.index(HARM)])[1]
    if FILTER in steps:
        return views[steps.index(FILTER)].verdict.explanation
    if DICTIONARY in steps:
        return "The chunk's dictionary is queried first, and its answer is exact."
    for view in views:
        if view.has_filter:
            return view.verdict.explanation
    return column_verdict.explanation
