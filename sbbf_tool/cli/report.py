"""The loop of every command over the rows of its files: print errors and reports, add up sums, choose the exit code."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.output import say, say_json, stop_if_unread
from sbbf_tool.cli.spelling import spell
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.reports.rows import FAILED, LINK, OK, REFUSED, SKIPPED, FileRow

if TYPE_CHECKING:
    from sbbf_tool.runner.save import Save
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)
Report = TypeVar("Report")

_MOST_IN_MEMORY = 1000


class View(ABC, Generic[Report]):
    """How one command shows its reports; each report is added, and then shown."""

    schema: str
    """Name of the schema of a report's JSON document: `inspect` stands for `sbbf.inspect`."""
    skipped = "skipped"
    """Word for files with nothing to do."""
    sums: tuple[str, ...] = ()
    """Names, in the summary document, of the numbers that `add` counts in `total`."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter(dict.fromkeys(self.sums, 0))

    def add(self, report: Report, row: FileRow) -> int:
        """Count one more report, print to standard error what failed in it, and return its exit code."""
        return 0

    @abstractmethod
    def show(self, report: Report) -> None:
        """Print the full report of the only file."""

    def show_line(self, report: Report) -> None:
        """Print the important part of one of several reports: a line, or nothing."""

    def show_sums(self) -> None:
        """Print the results of all reports together, before the count of files."""

    def summary(self, files: str) -> str | None:
        """Return the last line for several files, which begins with the counts of files by status; None for no line."""
        return files

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
        self._warned: set[str] = set()
        self._words = {OK: "done", SKIPPED: skipped, REFUSED: "refused", FAILED: "failed", LINK: "skipped as links"}

    def __str__(self) -> str:
        """Return the counts, such as `1,000 files: 990 done, 10 failed`."""
        shares = [f"{self.counts[status]:,} {word}" for status, word in self._words.items() if self.counts[status]]
        return f"{render.format_count(self.counts.total(), 'file')}: {', '.join(shares) or 'nothing to do'}"

    def warn(self, warnings: Iterable[str]) -> None:
        """Print warnings to standard error; a warning about a table is printed once, not for each of its files."""
        for warning in warnings:
            if warning not in self._warned:
                render.warn(warning)
            if len(self._warned) < _MOST_IN_MEMORY:
                self._warned.add(warning)

    def document(self) -> dict[str, int]:
        names = {OK: "done", SKIPPED: "skipped", REFUSED: "refused", FAILED: "failed", LINK: "links"}
        return {"files": self.counts.total(), **{name: self.counts[status] for status, name in names.items()}}


def report_files(
    files: Files, work: Work[Row], view: View[Any], *, as_json: bool, report_writer: AbstractContextManager[Save] | None = None
) -> int:
    """Work on all files and report each with `view`; return the exit code of the command.

    If one file is named as PATH, its full report is printed, and its error ends the command. Each of several files gets a line or a JSON
    document, followed by a summary. `report_writer` saves each row and its document. A command that only reads stops when its output is
    closed.
    """
    outcomes = _Outcomes(view.skipped)
    codes: set[int] = set()
    is_single = files.file is not None
    error: Exception | None = None
    with report_writer or nullcontext() as save, _progress(files) as (progress, count):
        try:
            for raw_row in _without_flood(files.rows(work, progress)):
                row = replace(raw_row, path=redact(raw_row.path))
                outcomes.counts[LINK if row.reason == LINK else row.status] += 1
                document = _document(row, view) if as_json or save is not None else {}
                if save is not None:
                    save(row, document)
                error = raw_row.error if is_single else None
                if error is None:
                    # Other commands show the warnings of a report in their output.
                    outcomes.warn(getattr(getattr(row, "report", None), "warnings", ()) if work.changes else ())
                    codes.add(_report_row(row, view, document, is_single=is_single, as_json=as_json))
                count()
                if not work.changes:
                    stop_if_unread(at_end=False)
        except (KeyboardInterrupt, SystemExit):
            if work.changes and not is_single:
                say(f"sbbf: interrupted; so far {outcomes}; changed files stay changed, and the same command continues the work", err=True)
            raise
        if error is None:
            code = view.answer(codes)
            counts = {"command": view.schema, **outcomes.document(), "exit_code": code}
            summary = render.document("summary", {**counts, "totals": view.totals()})
            if save is not None and not is_single:
                save(None, summary)
    if error is not None:
        # The error is raised after `report_writer` has ended, because `report_writer` would otherwise drop the report.
        if as_json:
            say_json(document)
        raise error
    if as_json and not is_single:
        say_json(summary)
    elif not is_single:
        view.show_sums()
        if (last := view.summary(str(outcomes))) is not None:
            say(last)
    if not work.changes:
        stop_if_unread()
    return code


def _document(row: FileRow, view: View[Any]) -> dict[str, Any]:
    report = getattr(row, "report", None)
    if report is not None:
        return render.document(view.schema, report)
    return render.document("file", {"file": row.path, "status": row.status, "reason": row.reason, "exit_code": row.exit_code})


def _report_row(row: FileRow, view: View[Any], document: dict[str, Any], *, is_single: bool, as_json: bool) -> int:
    report = getattr(row, "report", None)
    if row.status in (REFUSED, FAILED):
        say(f"sbbf: {row.path}: {spell(row.reason or '')}", err=True)
    code = max(row.exit_code, view.add(report, row)) if report is not None else row.exit_code
    if as_json:
        say_json(document)
    elif report is not None:
        view.show(report) if is_single else view.show_line(report)
    return code


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


@contextmanager
def _progress(files: Files) -> Iterator[tuple[Any, Callable[[], None]]]:
    """Show, if stderr is a terminal, how many bytes of a single file, or how many of several files, are processed."""
    if files.file is not None:
        with render.progress_bar() as progress:
            yield progress, lambda: None
        return
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None, lambda: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("files"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("files", total=None)
        yield None, lambda: bar.advance(task)
