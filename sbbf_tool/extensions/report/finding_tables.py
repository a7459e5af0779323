"""The findings on a page: how many there are, and what was found, of one file or of many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from sbbf_tool.extensions.report.contents import FileContents
from sbbf_tool.extensions.report.pictures.figure import FigureTable, count, table
from sbbf_tool.extensions.report.totals import LakeTotals
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count, format_row_groups
from sbbf_tool.reports.findings import ERROR, SEVERITIES, WARNING, Finding

_FINDINGS_HEAD = (
    "severity",
    "rule",
    "column",
    "row groups",
    "what is wrong",
    "evidence",
    "fix",
)
_RULES_HEAD = ("severity", "rule", "findings", "files", "what is wrong", "example")


def describe_findings(totals: LakeTotals, *, is_whole: bool) -> tuple[str, str]:
    """Return how many findings there are, and the class of the colour of this sentence; `is_whole`
    says that every file could be read."""
    counts: Counter[str] = Counter()
    for _, rule in totals.findings_by_rule():
        counts[rule.severity] += rule.findings
    if not counts:
        return _describe_no_findings(totals, is_whole=is_whole)
    numbers = []
    for severity in SEVERITIES:
        number = counts[severity]
        if number:
            numbers.append(format_count(number, severity))
    sentence = f"{', '.join(numbers)}."
    if counts[ERROR]:
        return sentence, "bad"
    return sentence, "doubtful" if counts[WARNING] else "neutral"


def _describe_no_findings(totals: LakeTotals, *, is_whole: bool) -> tuple[str, str]:
    if not totals.files:
        sentence = "No file could be read."
    elif not totals.filters:
        sentence = "No filters."
    else:
        sentence = "No findings."
    if not is_whole:
        return sentence, "doubtful"
    return sentence, "good" if totals.filters else "neutral"


def list_findings_by_rule(totals: LakeTotals) -> Iterator[FigureTable]:
    """Yield the table of the rules that found something in any number of files, if there is one."""
    if not totals.rules:
        return
    rows = []
    for name, rule in totals.findings_by_rule():
        numbers = (count(rule.findings), count(rule.files))
        rows.append((rule.severity, name, *numbers, rule.message, rule.example))
    yield table("Findings by rule", _RULES_HEAD, rows)


def list_findings_of_file(
    contents: FileContents, write_fix: Callable[[Fix], str]
) -> Iterator[FigureTable]:
    """Yield the tables of findings, of unreadable parts and of notes of a file, if it has any;
    `write_fix` writes the fixes."""
    check = contents.check
    if check.findings:
        rows = [_row_of_finding(finding, write_fix) for finding in check.findings]
        yield table("Findings", _FINDINGS_HEAD, rows)
    if check.unreadable:
        yield table("Parts that could not be read", ("place and reason",), zip(check.unreadable))
    notes = contents.inspect.notes
    if notes:
        yield table("Notes", ("note",), zip(notes))


def _row_of_finding(finding: Finding, write_fix: Callable[[Fix], str]) -> tuple[str | None, ...]:
    row_groups = finding.row_groups
    place = None
    if row_groups:
        place = format_row_groups(row_groups)
    fact = None
    if finding.evidence:
        first = finding.evidence[0]
        fact = first.fact
        if first.row_group is not None and len(row_groups) > 1:
            fact = f"{fact} (row group {first.row_group})"
    fix = None if finding.fix is None else write_fix(finding.fix)
    return finding.severity, finding.rule, finding.column, place, finding.message, fact, fix


def list_errors(contents: FileContents) -> dict[tuple[int, str], str]:
    """Return the rules that found an error, by row group and column."""
    errors: dict[tuple[int, str], str] = {}
    for finding in contents.check.findings:
        if finding.severity != ERROR or finding.column is None:
            continue
        for evidence in finding.evidence:
            if evidence.row_group is not None:
                errors.setdefault((evidence.row_group, finding.column), finding.rule)
    return errors
