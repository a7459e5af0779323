"""The loop of every command over the rows of its files: print errors and reports, add up sums, choose the exit code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.formats import Item, Outputs, Run
from sbbf_tool.cli.output import complain, limit_complaints, stop_if_unread
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.spelling import spell
from sbbf_tool.cli.terminal import terminal
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.hints import join
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import FAILED, LINK, OK, REFUSED, SKIPPED, FileRow

if TYPE_CHECKING:
    from sbbf_tool.cli.undo import Undo
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)
Report = TypeVar("Report")

_MOST_IN_MEMORY = 1000


class View(ABC, Generic[Report]):
    """How one command shows its reports; each report is added once, and then shown on each page."""

    schema: str
    """Name of the schema of a report's JSON document: `inspect` stands for `sbbf.inspect`."""
    command = ""
    """Name of the command in the summary document, if it is not `schema`."""
    skipped = "skipped"
    """Word for files with nothing to do."""
    lists_answers = False
    """Whether the lines about the files are the answer of the command, so that a pipe gets all of them."""
    sums: tuple[str, ...] = ()
    """Names, in the summary document, of the numbers that `add` counts in `total`."""
    not_undone = ""
    """Why no command undoes a change of this command, if none does."""
    undo: Undo | None = None
    """Set if the command changes files in place."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter(dict.fromkeys(self.sums, 0))

    def add(self, report: Report, row: FileRow) -> int:
        """Count one more report, print to standard error what failed in it, and return its exit code."""
        return 0

    def prepare(self, report: Report) -> Report:
        """Return the report as this command counts and shows it."""
        return report

    @abstractmethod
    def show(self, page: Page, report: Report) -> None:
        """Print the full report of the only file."""

    def show_line(self, page: Page, report: Report) -> None:
        """Print the important part of one of several reports: a line, or nothing."""

    def show_end(self, page: Page, files: str) -> None:
        """Print the results of all reports together, and a last line that begins with `files`, the counts of files by status."""
        page.say(files)

    def show_undo(self, page: Page) -> None:
        """Print how to undo the changes."""
        if self.undo is not None:
            self.undo.show(page)

    def totals(self) -> dict[str, Any]:
        """Return the sums for the summary document."""
        return dict(self.total)

    def answer(self, codes: set[int]) -> int:
        """Return the exit code of the command, given the exit codes of all files."""
        return max(codes, default=0)


class _Outcomes:
    """Number of files by status, and the warnings already printed."""

    def __init__(self, skipped: str) -> None:
        self.counts: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()
        self._words = {OK: "done", SKIPPED: skipped, REFUSED: "refused", FAILED: "failed"}

    def __str__(self) -> str:
        """Return the counts, such as `1,000 files: 990 done, 10 failed`."""
        shares = [f"{self.counts[status]:,} {word}" for status, word in self._words.items() if self.counts[status]]
        if links := self.counts[LINK]:
            shares.append(f"{format_count(links, 'link')} skipped")
        return f"{format_count(self.counts.total(), 'file')}: {', '.join(shares) or 'nothing to do'}"

    def warn(self, path: str | None, warnings: Iterable[str]) -> None:
        """Print the warnings about a file to standard error, with its path if it is one of several.

        A warning that recurs is printed for its first file; `warn_again` counts the others.
        """
        for warning in warnings:
            if warning not in self._warnings:
                render.warn(warning if path is None else join(f"{path}: ", warning))
            if len(self._warnings) < _MOST_IN_MEMORY or warning in self._warnings:
                self._warnings[warning] += 1

    def warn_again(self) -> None:
        """Print how many more files have the same warning."""
        for warning, files in self._warnings.items():
            if files > 1 and not terminal().quiet:
                complain(f"sbbf: {format_count(files - 1, 'more file')}: {spell(warning)}", kind="warning")

    def document(self) -> dict[str, int]:
        names = {OK: "done", SKIPPED: "skipped", REFUSED: "refused", FAILED: "failed", LINK: "links"}
        return {"files": self.counts.total(), **{name: self.counts[status] for status, name in names.items()}}


def report_files(files: Files, work: Work[Row], view: View[Any], outputs: Outputs) -> int:
    """Work on all files and report each with `view`; return the exit code of the command.

    If one file is named as PATH, its full report is printed, and its error ends the command. Each of several files gets a line, a JSON
    document or rows, followed by a summary. A command that only reads stops when its output is closed.
    """
    outcomes = _Outcomes(view.skipped)
    codes: set[int] = set()
    is_single = files.file is not None
    error: Exception | None = None
    run = Run(view, work.row, is_single, has_rows_of_files=work.changes, most_files=files.most_files)
    with outputs.open(run) as sinks, limit_complaints(files.most_files):
        try:
            with closing(files.rows(work)) as rows:
                for raw_row in _without_flood(rows):
                    row = _prepare(replace(raw_row, path=redact(raw_row.path)), view)
                    outcomes.counts[LINK if row.reason == LINK else row.status] += 1
                    error = raw_row.error if is_single else None
                    if error is None:
                        codes.add(_count(row, view, outcomes, work, is_single=is_single))
                    item = Item(view.schema, getattr(row, "report", None), row)
                    for output in sinks:
                        output.add(item)
                    if not work.changes:
                        stop_if_unread(at_end=False)
        except (KeyboardInterrupt, SystemExit):
            if work.changes and not is_single:
                message = f"so far {outcomes}; files in work may be changed too, changed files stay, and the same command continues"
                complain(f"sbbf: interrupted; {message}", kind="note")
            raise
        if not is_single:
            outcomes.warn_again()
        code = view.answer(codes) if error is None else 0
        counts = {"command": view.command or view.schema, **outcomes.document(), "exit_code": code}
        summary = None if is_single else render.document("summary", {**counts, "totals": view.totals()})
        for output in sinks:
            output.end(summary, str(outcomes))
    if error is not None:
        # Raised after the outputs have ended, because otherwise the report file would be dropped.
        raise error
    if not work.changes:
        stop_if_unread()
    return code


def _prepare(row: Row, view: View[Any]) -> Row:
    """Return the row with its report as the view prepares it."""
    report = getattr(row, "report", None)
    changes = {} if report is None else {"report": view.prepare(report)}
    return replace(row, **changes)


def _count(row: FileRow, view: View[Any], outcomes: _Outcomes, work: Work[Any], *, is_single: bool) -> int:
    """Count a row, print its warnings and its error, and return its exit code."""
    report = getattr(row, "report", None)
    if view.undo is not None:
        view.undo.add(row)
    # Other commands show the warnings of a report in their output.
    outcomes.warn(None if is_single else row.path, getattr(report, "warnings", ()) if work.changes else ())
    if row.status in (REFUSED, FAILED):
        complain(f"sbbf: {row.path}: {spell(row.reason or '')}")
    return max(row.exit_code, view.add(report, row)) if report is not None else row.exit_code


def _without_flood(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows, but hold back usage errors until a row without one. If every file has a usage error, raise only the first.

    If only some files have a usage error, such as a missing column, it is reported for those files.
    """
    remaining = iter(rows)
    held_rows: list[Row] = []
    for row in remaining:
        held_rows.append(row)
        if row.exit_code != UsageError.exit_code or len(held_rows) > _MOST_IN_MEMORY:
            break
    else:
        if held_rows:
            raise held_rows[0].error or UsageError(held_rows[0].reason or "", file=held_rows[0].path)
    yield from held_rows
    yield from remaining
