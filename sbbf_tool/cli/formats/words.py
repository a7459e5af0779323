"""What the formats say alike: where a finding is, what was seen, what cures it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from sbbf_tool.reports import Finding

_MOST_FACTS = 4


def place(finding: Finding) -> str:
    """Such as `column user_id, row groups 0-2, 5`."""
    row_groups = [seen.row_group for seen in finding.evidence if seen.row_group is not None]
    return ", ".join([f"column {finding.column}", *([_row_groups(row_groups)] if row_groups else [])])


def evidence(finding: Finding) -> Iterator[str]:
    """One line for each different fact, with the row groups it is true of; not more than a few."""
    by_fact: dict[str, list[int]] = {}
    for seen in finding.evidence:
        by_fact.setdefault(seen.fact, []).extend([] if seen.row_group is None else [seen.row_group])
    for fact, row_groups in list(by_fact.items())[:_MOST_FACTS]:
        yield f"{_row_groups(row_groups)}: {fact}" if row_groups else fact
    left = sum(len(row_groups) for row_groups in list(by_fact.values())[_MOST_FACTS:])
    if left:
        yield f"and {left} more row groups"


def cure(finding: Finding) -> str | None:
    """The command as a shell takes it."""
    return shlex.join(finding.cure) if finding.cure else None


def in_full(finding: Finding) -> str:
    """Several lines: the sentence, the evidence, the cure."""
    command = cure(finding)
    return "\n".join([finding.message, *evidence(finding), *([f"cure: {command}"] if command else [])])


def _row_groups(numbers: Iterable[int]) -> str:
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    shown = ", ".join(f"{first}-{last}" if last > first else f"{first}" for first, last in spans)
    return f"row groups {shown}" if len(spans) > 1 or spans[0][0] != spans[0][1] else f"row group {shown}"
