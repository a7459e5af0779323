"""What a query for a value skips: the answers for each row group, and the steps of each engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.notation import ABSENT, MAYBE
from sbbf_tool.query_engines.steps import (
    DICTIONARY,
    FILTER,
    STATISTICS,
    WRONG_FILTER,
    RowGroupView,
    choose_step,
    explain_steps,
    harm_of,
)
from sbbf_tool.query_engines.terms import HARM, UNUSED
from sbbf_tool.reports.engines import EngineReport, EngineVerdict


class RowGroupExplanation(Frozen):
    """Answers of statistics, dictionary and filter for a query in one row group: `absent`,
    `maybe`, or `cannot say` with the reason."""

    row_group: int
    rows: int
    bytes: int
    """Compressed bytes of the pages of all column chunks."""
    column_bytes: int
    """Compressed bytes of the pages of the queried column."""
    min_value: str | None = None
    """Minimum and maximum, in the form that `probe` accepts; None if the footer has no reliable
    ones."""
    max_value: str | None = None
    statistics: str = MAYBE
    statistics_reason: str | None = None
    dictionary: str | None = None
    """None if the dictionary does not hold all values of the chunk."""
    dictionary_reason: str | None = None
    filter: str = MAYBE
    """`absent`, `maybe`, `cannot say` or `no filter`."""
    filter_reason: str | None = None
    excluded_by: str | None = None
    """The part of a condition that no row satisfies."""

    @property
    def is_absent(self) -> bool:
        if ABSENT in (self.statistics, self.dictionary):
            return True
        return self.filter == ABSENT and self.filter_reason != WRONG_FILTER


class EngineExplanation(Frozen):
    """Row groups of a file that one query engine skips and reads."""

    engine: str
    name: str
    steps: tuple[str, ...]
    """Per row group: `statistics`, `dictionary` or `filter` if that skips it; `read`; or `harm` if
    rows are lost or the query fails."""
    skipped_by_statistics: int
    skipped_by_dictionary: int
    skipped_by_filter: int
    row_groups_read: int
    bytes_skipped: int
    """Compressed bytes of the skipped row groups."""
    share_skipped: float
    share_of_column_skipped: float
    explanation: str
    """Why the engine uses filters of this column, or does not."""
    harm: str | None = None
    """Effect of a filter that harms the query: `loses rows` or `fails`."""


def explain_engine(
    engine: EngineReport,
    column_verdict: EngineVerdict,
    views: Sequence[RowGroupView],
    count: Callable[[tuple[str, ...]], dict[str, Any]],
    is_comparable: bool,
) -> EngineExplanation:
    """Explain what one engine skips, by its verdict on the column and on each filter, and why it
    does or does not use the filters."""
    uses_dictionary = engine.dictionary_first and column_verdict.verdict != UNUSED
    choose = partial(choose_step, uses_dictionary=uses_dictionary, is_comparable=is_comparable)
    steps = tuple(map(choose, views))
    harm = None
    if HARM in steps:
        harm, _ = harm_of(engine, views[steps.index(HARM)])
    return EngineExplanation(
        engine=engine.id,
        name=engine.name,
        steps=steps,
        explanation=explain_steps(engine, column_verdict, views, steps),
        harm=harm,
        **count(steps),
    )


def count_steps(
    row_groups: Sequence[RowGroupExplanation], steps: tuple[str, ...]
) -> dict[str, Any]:
    """Return the fields of an `EngineExplanation` that count row groups and bytes."""
    num_skipped = 0
    num_bytes = 0
    column_bytes = 0
    bytes_skipped = 0
    column_bytes_skipped = 0
    for row_group, step in zip(row_groups, steps, strict=True):
        num_bytes += row_group.bytes
        column_bytes += row_group.column_bytes
        if step in (STATISTICS, DICTIONARY, FILTER):
            num_skipped += 1
            bytes_skipped += row_group.bytes
            column_bytes_skipped += row_group.column_bytes
    return {
        "skipped_by_statistics": steps.count(STATISTICS),
        "skipped_by_dictionary": steps.count(DICTIONARY),
        "skipped_by_filter": steps.count(FILTER),
        "row_groups_read": len(steps) - num_skipped,
        "bytes_skipped": bytes_skipped,
        "share_skipped": bytes_skipped / num_bytes if num_bytes else 0.0,
        "share_of_column_skipped": column_bytes_skipped / column_bytes if column_bytes else 0.0,
    }
