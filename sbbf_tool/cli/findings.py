"""Findings as text, on pages and in formats of CI systems: the place, the evidence and the fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sbbf_tool.cli.page import Page
from sbbf_tool.cli.render import group
from sbbf_tool.cli.spelling import command_of, quote_command
from sbbf_tool.frozen import replace
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count, format_row_groups, some_of
from sbbf_tool.reports.findings import NOT_RUN, SEVERITIES, CheckReport, Finding, RuleOutcome
from sbbf_tool.rules.catalog import RULES, PathPolicies, Policy

_MOST_LINES = 4
_MOST_FILES = 2


def show_findings(page: Page, findings: Iterable[Finding], table: str = "") -> None:
    """Print the findings of one file, or of `table`, by rule; `grep` on the first line of a group
    finds file, severity and rule."""
    for rule, of_rule in group((finding.rule, finding) for finding in findings).items():
        first = of_rule[0]
        page.say(f"{table or first.file}: {first.severity}: {rule}", first.severity)
        page.say(f"    {first.message}")
        for line in list_places(of_rule) if table else _evidence(of_rule):
            page.say(f"    {line}")
        for command in commands_of(of_rule):
            page.command(command, "    fix: ")
        unfixed = [finding.column or "" for finding in of_rule if finding.fix is None]
        if len(unfixed) < len(of_rule) and unfixed:
            page.say(f"    no fix for {_place(unfixed, ())}")


def count_findings(severities: Counter[str]) -> str:
    """Format numbers of findings by severity, such as `2 errors, 1 info`."""
    counts = [
        format_count(severities[severity], severity)
        for severity in SEVERITIES
        if severities[severity]
    ]
    return ", ".join(counts) or "no findings"


def list_gaps(columns: Sequence[str], unreadable: Sequence[str] = ()) -> str:
    """Return the end of a file's last line: how many column chunks could not be read, and the
    locked columns; empty without any."""
    text = ""
    if unreadable:
        text += f"; {format_count(len(unreadable), 'column chunk')} not read"
    if columns:
        text += f"; {describe_locked(columns)}"
    return text


def describe_locked(columns: Sequence[str]) -> str:
    """Return the text that names the locked columns of a file."""
    return f"locked columns not checked: {some_of(columns)}"


def count_gaps(files: Counter[str]) -> str:
    """Return the end of the last line for several files that counts those with `unread` chunks or
    `locked` columns; empty without any."""
    text = ""
    if files["unread"]:
        text += f"; column chunks not read in {format_count(files['unread'], 'file')}"
    if files["locked"]:
        text += f"; locked columns not checked in {format_count(files['locked'], 'file')}"
    return text


def reason_for_no_rule(outcomes: Sequence[RuleOutcome]) -> str:
    """Return the reason of most rules."""
    ((reason, _),) = Counter(outcome.reason for outcome in outcomes).most_common(1)
    return reason or ""


def sum_up(report: CheckReport) -> str:
    """Return the numbers of findings and of rules by outcome, for the last line of a report."""
    counts = Counter(outcome.outcome for outcome in report.rules)
    if counts[NOT_RUN] == len(report.rules):
        return f"no rule ran: {reason_for_no_rule(report.rules)}"
    words = ["passed", "noted", "failed", NOT_RUN]
    if counts["known"]:
        words.insert(1, "known")
    outcomes = ", ".join(f"{counts[word]} {word}" for word in words)
    if counts[NOT_RUN]:
        outcomes += f" ({_reasons_not_run(report.rules)})"
    findings = count_findings(Counter(finding.severity for finding in report.findings))
    gaps = list_gaps(report.locked_columns, report.unreadable)
    return f"{findings}; rules: {outcomes}{gaps}"


_UNDECLARED = "no limit or column to require is given"


def _is_undeclared(reason: str) -> bool:
    """Return whether a rule was not run because the user has not set what it compares with."""
    return reason.endswith(" is given") or reason == "the policy declares no filter"


def say_undeclared(policy: Policy | PathPolicies) -> str:
    """Return the end of the last line for several files, if the policy neither selects rules nor
    sets anything that rules compare with."""
    if not isinstance(policy, Policy) or policy.select:
        return ""
    reasons = [policy.why_not(rule) or "" for rule in RULES if rule.limit is not None]
    if not all(map(_is_undeclared, reasons)):
        return ""
    return f"; {format_count(len(reasons), 'rule')} not run ({_UNDECLARED})"


def _reasons_not_run(outcomes: Sequence[RuleOutcome]) -> str:
    """Return why rules were not run, most rules first; those of the user's limits together."""
    reasons = Counter[str]()
    for outcome in outcomes:
        if outcome.outcome == NOT_RUN:
            reason = outcome.reason or ""
            reasons[_UNDECLARED if _is_undeclared(reason) else reason] += 1
    if len(reasons) == 1:
        (reason,) = reasons
        return reason
    parts = []
    for reason, count in reasons.most_common():
        parts.append(f"{count}: {reason}")
    return ", ".join(parts)


def list_not_run(outcomes: Sequence[RuleOutcome]) -> Iterator[str]:
    """Yield a line for each reason why rules were not run, with their names."""
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        if outcome.outcome == NOT_RUN:
            by_reason.setdefault(outcome.reason or "", []).append(outcome.rule)
    for reason, rules in by_reason.items():
        yield f"not run, {reason}: {', '.join(rules)}"


def in_full(findings: Sequence[Finding]) -> list[str]:
    """Return the lines for findings of one rule and file: message, evidence and fixing commands."""
    return [
        findings[0].message,
        *_evidence(findings),
        *(f"fix: {quote_command(command)}" for command in commands_of(findings)),
    ]


def _evidence(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each distinct fact, with its columns and row groups; only the first few."""
    if len({finding.file for finding in findings}) > 1:
        yield from list_places(findings)
        return
    lines: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for finding in findings:
        facts: dict[str, list[int]] = {}
        for evidence in finding.evidence:
            row_groups = facts.setdefault(evidence.fact, [])
            if evidence.row_group is not None:
                row_groups.append(evidence.row_group)
        for fact, row_groups in facts.items():
            lines.setdefault((fact, tuple(row_groups)), []).append(finding.column or "")
    for (fact, numbers), columns in list(lines.items())[:_MOST_LINES]:
        yield f"{_place(columns, numbers)}: {fact}" if any(columns) else fact
    if len(lines) > _MOST_LINES:
        yield f"and {len(lines) - _MOST_LINES:,} more"


def list_places(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each distinct fact about the data files of a table, with its column and
    files, but no more than a few lines."""
    files: dict[tuple[str | None, str], list[str]] = {}
    for finding in findings:
        name = finding.file.rpartition("/")[2]
        for evidence in finding.evidence:
            files.setdefault((finding.column, evidence.fact), []).append(name)
    for (column, fact), names in list(files.items())[:_MOST_LINES]:
        place = ", ".join(names[:_MOST_FILES])
        if column is not None:
            place = f"column {column}, {place}"
        if len(names) > _MOST_FILES:
            place += f" and {format_count(len(names) - _MOST_FILES, 'more data file')}"
        yield f"{place}: {fact}"
    if len(files) > _MOST_LINES:
        yield f"and {len(files) - _MOST_LINES:,} more"


def commands_of(findings: Sequence[Finding]) -> Iterator[tuple[str, ...]]:
    """Yield the commands of the merged fixes."""
    return map(command_of, merge_fixes(findings))


def merge_fixes(findings: Sequence[Finding]) -> Iterator[Fix]:
    """Yield the fixes; those that differ only in their columns are merged into one."""
    columns: dict[Fix, list[str]] = {}
    for finding in findings:
        if finding.fix is not None:
            columns.setdefault(replace(finding.fix, columns=()), []).extend(finding.fix.columns)
    for fix, names in columns.items():
        yield replace(fix, columns=tuple(dict.fromkeys(names)))


def _place(columns: Sequence[str], row_groups: Sequence[int]) -> str:
    """Return a place, such as `column user_id, row groups 0-2, 5`."""
    noun = "columns" if len(columns) > 1 else "column"
    text = f"{noun} {some_of(columns)}"
    if row_groups:
        text += f", {format_row_groups(row_groups)}"
    return text
