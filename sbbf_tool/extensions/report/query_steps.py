"""What excludes each row group in a query of several conditions or values, from the reports of `explain` for each value.

A row group is excluded if one condition excludes it; a condition excludes it if every one of its values is excluded. Engines query min and
max first, then dictionaries, then filters.
"""

from __future__ import annotations

from collections.abc import Sequence

from sbbf_tool.advice.queries import Query
from sbbf_tool.extensions.report.contents import EngineSteps, QuerySteps
from sbbf_tool.query_engines.verdicts import load_table
from sbbf_tool.verbs.explain import ExplainReport

_STATISTICS, _FILTER, _READ, _HARM = "statistics", "filter", "read", "harm"
_ORDER = (_STATISTICS, "dictionary", _FILTER, _READ)


def combine_steps(query: Query, conditions: Sequence[Sequence[ExplainReport]]) -> QuerySteps:
    """Return the steps of a query; `conditions` has the reports of the values of each condition, all of one file."""
    row_groups = len(conditions[0][0].row_groups)
    names = [engine.name for engine in load_table().engines]
    by_engine = {name: _steps_of(name, conditions, row_groups) for name in names}
    engines_by_steps: dict[tuple[str, ...], list[str]] = {}
    for name, steps in by_engine.items():
        engines_by_steps.setdefault(steps, []).append(name)
    without_filters = tuple(_without_filters(number, conditions) for number in range(row_groups))
    return QuerySteps(
        query=query.text,
        row_groups=row_groups,
        engines=(EngineSteps((), without_filters), *(EngineSteps(tuple(engines), steps) for steps, engines in engines_by_steps.items())),
    )


def _steps_of(engine: str, conditions: Sequence[Sequence[ExplainReport]], row_groups: int) -> tuple[str, ...]:
    # Each report has its engines in the order of the table; one about a column that the file lacks has none.
    steps_of_engine = [
        [next((each.steps for each in report.engines if each.name == engine), None) for report in reports] for reports in conditions
    ]
    return tuple(
        _first_of_all(
            [
                _last_of_any(
                    [_answer(report, number) if steps is None else steps[number] for report, steps in zip(reports, all_steps, strict=True)]
                )
                for reports, all_steps in zip(conditions, steps_of_engine, strict=True)
            ]
        )
        for number in range(row_groups)
    )


def _without_filters(number: int, conditions: Sequence[Sequence[ExplainReport]]) -> str:
    return _first_of_all([_last_of_any([_answer(report, number) for report in reports]) for reports in conditions])


def _answer(report: ExplainReport, number: int) -> str:
    """Return what excludes a row group without filters, in engines that query dictionaries."""
    row_group = report.row_groups[number]
    return _STATISTICS if row_group.statistics == "absent" else "dictionary" if row_group.dictionary == "absent" else _READ


def _last_of_any(steps: Sequence[str]) -> str:
    """Return the step of a condition: its values are excluded one by one."""
    return _HARM if _HARM in steps else max(steps, key=_ORDER.index)


def _first_of_all(steps: Sequence[str]) -> str:
    """Return the step of a query: one condition is enough, and min and max come before a filter that does harm."""
    if _HARM in steps and _STATISTICS not in steps:
        return _HARM
    return min((step for step in steps if step != _HARM), key=_ORDER.index)
