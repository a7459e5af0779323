"""`sbbf check`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sbbf_tool.cli import policy, render
from sbbf_tool.cli.files import Files, over_files, page_limit_option, state_option, strict_option
from sbbf_tool.cli.findings import (
    count_findings,
    count_gaps,
    list_not_run,
    merge_fixes,
    reason_for_no_rule,
    say_undeclared,
    show_findings,
    sum_up,
)
from sbbf_tool.cli.formats import FINDING_FORMATS, TABLE, View
from sbbf_tool.cli.output import terminal
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.policy import POLICY_OPTIONS
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.findings import NOT_RUN, SEVERITIES
from sbbf_tool.reports.rows import OK, Row
from sbbf_tool.rules.baseline import Baseline, read_baseline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sbbf_tool.hints import Fix
    from sbbf_tool.reports.findings import CheckReport, Finding
    from sbbf_tool.rules.catalog import PathPolicies, Policy


@over_files(
    *POLICY_OPTIONS, strict_option, page_limit_option, state_option, formats=FINDING_FORMATS
)
def command(files: Files, baseline: str | None, **options: Any) -> int:
    """Check the filters of files against rules: for correctness, format, encryption and efficiency.

    \b
    $ sbbf check events.parquet --max-fpp 0.05
    $ sbbf check lake --require user_id --quick --fail-on warning

    The findings of several files are summed up by rule; --all prints those of each file. Exit code
    0: no finding is at or above the severity of --fail-on; 1: at least one is; 2: a rule, column or
    setting does not exist; 3: something could not be read.
    """
    from sbbf_tool.verbs.check import Check, ensure_columns

    context = click.get_current_context()
    wants_table = "declared" in options["select"]
    options["select"] = tuple(
        "policy" if name == "declared" else name for name in options["select"]
    )
    selection = files.request().select()
    chosen = policy.from_options(context, options, selection.table if wants_table else None)
    # The sums of many files need no more than the findings.
    has_sums = files.outputs.formats <= {TABLE, "markdown"} and not terminal().shows_all
    is_brief = has_sums and selection.file is None and files.state_path is None
    plan = files.plan(Check(chosen, is_brief), selection)
    # With a state, footers are not read for this alone: whether a file has the columns is known
    # when all rows are.
    if plan.table is None and plan.state is None:
        with show_progress("reading the first footers"):
            ensure_columns(plan.selection.file_names(), chosen, files.keys)
    reference = read_baseline(baseline) if baseline is not None else Baseline()
    code = report_files(files.outputs, plan, _CheckView(reference, chosen))
    if baseline is not None:
        render.warn_of_writers(baseline, "baseline", "the findings that are ignored")
        render.note(f"sbbf: {baseline} covers {format_count(reference.covered, 'finding')}")
    return code


_MOST_COLUMNS = 8
_MOST_EXAMPLES = 2
_MOST_FIXED = 8
"""Number of files, or tables, that the command of a fix names."""
_MOST_FIXES = 8


@dataclass
class _Total:
    """Files with findings of one rule, or on which no rule ran for one reason."""

    message: str
    fixes: dict[Fix, dict[str, int]] = field(default_factory=dict)
    """The first changes that resolve findings, each of no file, with the names by which files are
    changed, their own or that of their table, and the number of files of each name; later names are
    under `""`."""
    with_other_fixes: int = 0
    """Number of files with a later change."""
    findings: int = 0
    files: int = 0
    examples: list[str] = field(default_factory=list)
    columns: dict[str, None] = field(default_factory=dict)
    """The first columns with findings, in order; more than `_MOST_COLUMNS` only to show that there
    are more."""

    def add(self, file: str, findings: Sequence[Finding] = ()) -> None:
        self.findings += len(findings)
        self.files += 1
        if len(self.examples) < _MOST_EXAMPLES:
            self.examples.append(file)
        has_other = False
        for fix in merge_fixes(findings):
            of_no_file = replace(fix, files=())
            if of_no_file not in self.fixes and len(self.fixes) >= _MOST_FIXES:
                has_other = True
                continue
            names = self.fixes.setdefault(of_no_file, {})
            name = fix.files[0]
            if name not in names and len(names) >= _MOST_FIXED:
                name = ""
            names[name] = names.get(name, 0) + 1
        self.with_other_fixes += has_other
        for finding in findings:
            if finding.column is not None and len(self.columns) <= _MOST_COLUMNS:
                self.columns[finding.column] = None

    def commands(self) -> Iterator[_FixCommand]:
        """Yield the commands that make the changes."""
        for fix, names in self.fixes.items():
            count = sum(names.values())
            has_list = "" in names
            if has_list:
                words = command_of(fix, ("--files-from", _LIST))
            else:
                words = command_of(replace(fix, files=tuple(names)))
            files = ""
            if count != self.files or has_list:
                files = f" of {format_count(count, 'file')}"
            if has_list:
                files += f" in {_LIST}"
            yield _FixCommand(words, files)

    @property
    def places(self) -> str:
        examples = ", ".join(self.examples)
        if self.files > len(self.examples):
            examples += ", ..."
        return f"{format_count(self.files, 'file')} ({examples})"

    def __str__(self) -> str:
        text = f"{format_count(self.findings, 'finding')} in {self.places}"
        names = list(self.columns)
        if len(names) > _MOST_COLUMNS:
            names[_MOST_COLUMNS:] = ["..."]
        if not names:
            return text
        return f"{text}; {'columns' if len(names) > 1 else 'column'} {', '.join(names)}"


_LIST = "LIST"
"""Stands in a command for a file that lists files."""


class _FixCommand(NamedTuple):
    """A command that resolves the findings of a rule."""

    words: tuple[str, ...]
    files: str
    """How many files it changes, unless it changes all, such as ` of 2 files`."""


class _CheckView(View["CheckReport"]):
    sums = SEVERITIES

    def __init__(self, baseline: Baseline, policy: Policy | PathPolicies) -> None:
        super().__init__()
        self._baseline = baseline
        self._policy = policy
        self._rules: dict[tuple[str, str], _Total] = {}
        self._unchecked: dict[str, _Total] = {}
        """The files on which no rule ran, by the reason."""

    def prepare(self, report: CheckReport) -> CheckReport:
        return self._baseline.subtract(report)

    def add(self, report: CheckReport, row: Row[object]) -> int:
        by_rule = render.group(
            ((finding.severity, finding.rule), finding) for finding in report.findings
        )
        for (severity, rule), findings in by_rule.items():
            self.total[severity] += len(findings)
            total = self._rules.setdefault((severity, rule), _Total(findings[0].message))
            total.add(report.file, findings)
        if row.status == OK and all(outcome.outcome == NOT_RUN for outcome in report.rules):
            reason = reason_for_no_rule(report.rules)
            self._unchecked.setdefault(reason, _Total(reason)).add(report.file)
        unreadable = report.unreadable if row.status == OK else ()
        self.total.update(unread=bool(unreadable), locked=bool(report.locked_columns))
        error_code = render.say_unreadable([(row.path, None, place) for place in unreadable])
        return max(int(report.failed), error_code)

    def show(self, page: Page, report: CheckReport) -> None:
        show_findings(page, report.findings)
        if terminal().shows_all:
            page.say_all(list_not_run(report.rules))
        page.say(f"{report.file}: {sum_up(report)}")

    def show_line(self, page: Page, report: CheckReport) -> None:
        if terminal().shows_all and (report.findings or report.unreadable):
            self.show(page, report)

    def show_end(self, page: Page, files: str) -> None:
        refusal = self.plan.table and self.plan.table.why_unchangeable
        by_severity = sorted(self._rules.items(), key=lambda item: SEVERITIES.index(item[0][0]))
        for (severity, rule), total in by_severity:
            page.say(f"{severity}: {rule}: {total}")
            page.say(f"    {total.message}")
            if not refusal:
                _show_commands(page, total)
        if refusal and any(total.fixes for total in self._rules.values()):
            page.say(f"no command fixes them: {refusal}")
        page.say_all(
            f"no rule ran on {total.places}: {total.message}" for total in self._unchecked.values()
        )
        counts = count_findings(self.total)
        if self._unchecked:
            counts += f"; no rule ran on {format_count(self._num_unchecked(), 'file')}"
        counts += say_undeclared(self._policy)
        page.say(f"{files}; {counts}{count_gaps(self.total)}")

    def totals(self) -> dict[str, Any]:
        counts = {severity: self.total[severity] for severity in SEVERITIES}
        return {"findings": counts, "files_not_checked": self._num_unchecked()}

    def _num_unchecked(self) -> int:
        return sum(total.files for total in self._unchecked.values())


def _show_commands(page: Page, total: _Total) -> None:
    """Print the commands that resolve the findings of a rule."""
    commands = list(total.commands())
    for command in commands:
        page.command(command.words, f"    fix{command.files}: ")
    if commands and total.with_other_fixes:
        page.say(
            f"    other fixes of {format_count(total.with_other_fixes, 'file')}: "
            "--format csv prints each file with its fix"
        )
    if any(_LIST in command.words for command in commands):
        page.say(
            "    LIST: a file that names these files, one per line; --format csv prints each file "
            "with its fix"
        )
