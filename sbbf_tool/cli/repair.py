"""`sbbf repair`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import ChangedFiles, over_changed_files
from sbbf_tool.cli.choice import chosen_verb
from sbbf_tool.cli.files import columns_option, page_limit_option, strict_option
from sbbf_tool.cli.findings import count_gaps, list_gaps, show_findings
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, VIEW, WEAK_FILTERS
from sbbf_tool.cli.page import Page, say_not_cross_checked
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, WORD, Heading
from sbbf_tool.errors import UnreadableError
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.verbs.repair import RepairReport

_COLUMNS = (
    Heading("row group", COUNT),
    Heading("column", NAME),
    Heading("fix", WORD),
    Heading("reason", SENTENCE, of=lambda step: "; ".join(step.facts)),
)


@over_changed_files(
    (
        columns_option("Only this column's filters"),
        COLUMNS.option(
            "--rebuild",
            "Drop broken filters instead of building them. The others stay.",
            place=COMMAND_LINE,
            type=click.Choice(("none",)),
        ),
        VIEW.flag("--quick", "Do not verify filters against the data first."),
    ),
    strict_option,
    page_limit_option,
    risks=(WEAK_FILTERS,),
)
def command(files: ChangedFiles, columns: tuple[str, ...], rebuild: str | None, quick: bool) -> int:
    """Fix defective filters: build broken ones again, and correct lengths and offsets.

    \b
    $ sbbf repair events.parquet --dry-run
    $ sbbf repair lake --in-place

    Filters are built again that cannot be read, have false negatives, are saturated or are refused
    by some readers; a broken filter whose data cannot be read is dropped. Missing lengths are set,
    wrong ones corrected, invalid offsets dropped, and an interrupted append is undone. Exit code 0:
    no defect, or all were fixed; 1: with --dry-run, there is something to fix; otherwise, an error
    remains; 3: something could not be read; 4: refused.
    """
    choice = chosen_verb()
    if choice is not None:
        return choice.carry(files, columns)
    from sbbf_tool.verbs.repair import Repair

    return files.change(Repair(columns, rebuild is not None, quick), _RepairView())


class _RepairView(View["RepairReport"]):
    skipped = "had nothing to repair"
    not_undone = "no command restores what was repaired"
    sums = ("filters", "dropped", "findings_remaining")

    def __init__(self) -> None:
        super().__init__()
        self._gaps = Counter[str]()
        self._is_dry_run = False

    def add(self, report: RepairReport, row: Row[object]) -> int:
        self.total.update(
            filters=len(report.steps),
            dropped=_count_dropped(report),
            findings_remaining=len(report.remaining),
        )
        self._gaps.update(unread=bool(report.unreadable), locked=bool(report.locked_columns))
        self._is_dry_run = report.dry_run
        for message in report.unreadable:
            render.warn(f"{row.path}: {message}")
        if report.unreadable:
            return UnreadableError.exit_code
        is_done = report.is_clean if report.dry_run else report.is_sound
        return int(not is_done)

    def show(self, page: Page, report: RepairReport) -> None:
        page.table(_COLUMNS, report.steps)
        show_findings(page, report.remaining)
        line = f"{report.output}: {_describe_outcome(page, report)}"
        if report.needs_rebuild:
            names = page.join_names(report.needs_rebuild)
            line += f"; without --rebuild none, the command repairs {names}"
        page.say(line + list_gaps(report.locked_columns, report.unreadable))
        say_not_cross_checked(page, report.not_cross_checked)

    def show_line(self, page: Page, report: RepairReport) -> None:
        if report.remaining or not report.is_clean:
            self.show(page, report)

    def show_end(self, page: Page, files: str) -> None:
        filters, dropped, findings = (self.total[name] for name in self.sums)
        would_be = "would be " if self._is_dry_run else ""
        done = _describe(filters, dropped, would_be)
        remaining = f"{format_count(findings, 'finding')} remaining"
        page.say(f"{files}; {done}, {remaining}{count_gaps(self._gaps)}")


def _describe_outcome(page: Page, report: RepairReport) -> str:
    """Return what has changed in a file, or would change."""
    would_be = "would be " if report.dry_run else ""
    changes = []
    if report.truncated_to is not None:
        changes.append(
            f"{would_be}truncated to {report.truncated_to:,} bytes, its length before an "
            "interrupted append"
        )
    if report.steps:
        steps = _describe(len(report.steps), _count_dropped(report), would_be)
        if not report.dry_run:
            growth = report.new_bytes - report.old_bytes
            steps += f", {page.bytes(abs(growth))} {'added' if growth >= 0 else 'removed'}"
        changes.append(steps)
    if changes:
        return "; ".join(changes)
    if report.remaining or report.unreadable:
        return "nothing repaired"
    return "nothing to repair"


def _count_dropped(report: RepairReport) -> int:
    return sum(step.fix == "drop" for step in report.steps)


def _describe(filters: int, dropped: int, would_be: str) -> str:
    """Describe what is done to this number of filters, of which some are dropped."""
    if filters == dropped > 0:
        return f"{format_count(dropped, 'filter')} {would_be}dropped"
    text = f"{format_count(filters - dropped, 'filter')} {would_be}repaired"
    return f"{text}, {dropped:,} {would_be}dropped" if dropped else text
