"""`sbbf apply`."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.add_filter import say_without_values
from sbbf_tool.cli.changes import ChangedFiles, over_changed_files
from sbbf_tool.cli.files import page_limit_option, state_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, engines_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.policy import declare_filters
from sbbf_tool.cli.settings import used_config
from sbbf_tool.cli.tables import BYTES, COUNT, NAME, Heading
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.verbs.apply import ApplyReport, DeclaredColumn

_KINDS = {
    "missing": "missing",
    "weaker": "weaker",
    "too large": "too_large",
    "broken": "broken",
    "undeclared": "undeclared",
}
"""The fields of a column that count row groups whose filters are not as declared, by the words for
them."""
_COLUMNS = (
    Heading("column", NAME),
    Heading("satisfied", COUNT, 1),
    *(Heading(word, COUNT) for word in _KINDS),
    Heading("limited", COUNT, 2),
    Heading("built", COUNT),
    Heading("removed", COUNT),
    Heading("filters", BYTES, 2),
    Heading("to build, at most", BYTES, 2),
)
_COUNTS = ("satisfied", *_KINDS.values(), "limited")
_BYTES = ("bytes", "estimated_bytes")


@over_changed_files(
    (
        COLUMNS.flag(
            "--remove-undeclared", "Also remove filters that are not declared.", place=COMMAND_LINE
        ),
        engines_option,
    ),
    page_limit_option,
    state_option,
    metavar="[PATH]...",
    has_output=False,
)
def command(files: ChangedFiles, remove_undeclared: bool, engines: tuple[str, ...]) -> int:
    """Compare files with the filters that [[filters]] in sbbf.toml declares; with --in-place, make
    it so.

    \b
    $ sbbf apply
    $ sbbf apply lake --in-place

    Without PATH, all declared files are compared, else those of the PATHs that are declared. With
    --in-place, filters that are missing, weaker or larger than declared, or broken are built, so
    that a second run finds nothing to do. Filters that are not declared are counted and stay. Exit
    code 0: the files have the declared filters; 1: they do not; else the highest code of a file.
    """
    from sbbf_tool.verbs.apply import Apply

    declarations = declare_filters(used_config(click.get_current_context()))
    files.needs_paths = False
    files.keeps_outcomes = not files.dry_run
    files.dry_run |= not files.in_place
    view = _ApplyView(not files.dry_run, remove_undeclared, files.jobs or os.cpu_count() or 1)
    return files.change(Apply(declarations, remove_undeclared, engines), view)


class _ApplyView(View["ApplyReport"]):
    skipped = "as declared"
    not_undone = (
        "no command restores what sbbf had added before; sbbf remove-filter --ours "
        "gives the bytes from before its first change"
    )
    sums = (
        *_KINDS.values(),
        "limited",
        "filters",
        "removals",
        "data_bytes",
        "estimated_bytes",
        "bytes_added",
        "files_not_as_declared",
        "column_chunks_without_values",
    )

    def __init__(self, changes: bool, removes: bool, workers: int) -> None:
        super().__init__()
        self.done = "done" if changes else "not as declared"
        self._changes = changes
        self._removes = removes
        self._workers = workers
        self._columns: dict[str, Counter[str]] = defaultdict(Counter)
        """What is shown of each column: its filters now, after the change if there was one."""
        self._seconds = 0.0

    def add(self, report: ApplyReport, row: Row[object]) -> int:
        for column in report.columns:
            for name in (*_COUNTS, *_BYTES):
                if name in self.sums:
                    self.total[name] += getattr(column, name)
        later_report = report.repeat() if self._changes else report
        for column in later_report.columns:
            counts = self._columns[column.column]
            for name in (*_COUNTS, *_BYTES):
                counts[name] += getattr(column, name)
        if self._changes:
            for built in report.filters:
                self._columns[built.column]["built"] += 1
            for removed in report.removals:
                self._columns[removed.column]["removed"] += 1
        self._seconds += report.estimated_seconds
        self.total.update(
            filters=len(report.filters),
            removals=len(report.removals),
            data_bytes=report.data_bytes,
            column_chunks_without_values=report.without_values,
            bytes_added=report.new_bytes - report.old_bytes + report.planned_bytes,
            files_not_as_declared=not report.holds,
        )
        return int(not report.holds)

    def answer(self, codes: set[int]) -> int:
        from sbbf_tool.running.declared_files import no_declared_file

        if not codes:
            raise no_declared_file()
        return max(codes)

    def show_line(self, page: Page, report: ApplyReport) -> None:
        texts = [_describe(column, removes=self._removes) for column in report.columns]
        deviations = "; ".join(filter(None, texts))
        if not deviations:
            return
        if not self._changes:
            page.say(f"{report.output}: {deviations}")
            return
        changes = []
        if report.filters:
            changes.append(f"built {len(report.filters):,}")
        if report.removals:
            changes.append(f"removed {len(report.removals):,}")
        change = " and ".join(changes) or "unchanged"
        page.say(f"{report.output}: {change}, before: {deviations}")

    def show_end(self, page: Page, files: str) -> None:
        keys = (*_COUNTS, "built", "removed", *_BYTES)
        rows = []
        for name, counts in sorted(self._columns.items()):
            rows.append((name, *(counts[key] or None for key in keys)))
        page.table(_COLUMNS, rows)
        say_without_values(page, self.total["column_chunks_without_values"])
        if self.total["undeclared"] and not self._removes:
            page.say(
                f"undeclared: {format_count(self.total['undeclared'], 'filter')}; "
                "--remove-undeclared removes them"
            )
        if self._changes:
            filters = f"{format_count(self.total['filters'], 'filter')} built"
            if self.total["removals"]:
                filters += f", {self.total['removals']:,} removed"
            page.say(f"{files}; {filters}, {page.bytes(self.total['bytes_added'])}")
        elif self._seconds and not self.total["estimated_bytes"]:
            removals = format_count(self.total["removals"], "filter")
            page.say(f"{files}; --in-place removes {removals}")
        elif self._seconds:
            added = page.bytes(self.total["bytes_added"])
            data = page.bytes(self.total["data_bytes"])
            time = timedelta(seconds=ceil(self._seconds / self._workers))
            page.say(
                f"{files}; --in-place adds at most {added}, filters and footers, from {data} of "
                f"data, in about {time}"
            )
        else:
            page.say(files)

    def totals(self) -> dict[str, Any]:
        return {**self.total, "estimated_seconds": round(self._seconds / self._workers, 3)}


def _describe(column: DeclaredColumn, *, removes: bool) -> str:
    """Describe how a column deviates from its declaration; empty if it does not."""
    counts = []
    for word, name in _KINDS.items():
        count = getattr(column, name)
        if count and (removes or name != "undeclared"):
            counts.append(f"{count:,} {word}")
    if not counts:
        return ""
    text = f"{column.column} {', '.join(counts)}"
    return f"{text} ({column.fact})" if column.fact else text
