"""Text that the formats share: the place, the evidence and the fix of a finding."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sbbf_tool.cli import render
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.hints import Fix
from sbbf_tool.reports.findings import Finding

_MOST_LINES = 4
_MOST_COLUMNS = 12


def in_full(findings: Sequence[Finding]) -> list[str]:
    """Return the lines for findings of one rule and file: message, evidence, and the commands that fix them."""
    return [findings[0].message, *_evidence(findings), *(f"fix: {command}" for command in _commands(findings))]


def _evidence(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each distinct fact, with its columns and row groups, but no more than a few lines."""
    lines: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for finding in findings:
        facts: dict[str, list[int]] = {}
        for evidence in finding.evidence:
            facts.setdefault(evidence.fact, []).extend([] if evidence.row_group is None else [evidence.row_group])
        for fact, numbers in facts.items():
            lines.setdefault((fact, tuple(numbers)), []).append(finding.column or "")
    for (fact, row_groups), columns in list(lines.items())[:_MOST_LINES]:
        yield f"{_place(columns, row_groups)}: {fact}"
    if len(lines) > _MOST_LINES:
        yield f"and {len(lines) - _MOST_LINES:,} more"


def _commands(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the commands in shell syntax; commands that differ only in their column are merged into one."""
    columns: dict[Fix, list[str]] = {}
    for finding in findings:
        if finding.fix is not None:
            columns.setdefault(replace(finding.fix, columns=()), []).extend(finding.fix.columns)
    for fix, names in columns.items():
        yield shlex.join(command_of(replace(fix, columns=tuple(names))))


def _place(columns: Sequence[str], row_groups: Sequence[int]) -> str:
    """Return a place, such as `column user_id, row groups 0-2, 5`."""
    more = f" and {len(columns) - _MOST_COLUMNS} more" if len(columns) > _MOST_COLUMNS else ""
    text = f"{'columns' if len(columns) > 1 else 'column'} {', '.join(columns[:_MOST_COLUMNS])}{more}"
    return f"{text}, {render.row_groups(row_groups)}" if row_groups else text
