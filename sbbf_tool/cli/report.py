"""What every command prints of the rows of its run: errors and reports, and the sums at the end."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli import render
from sbbf_tool.cli.formats import Conclusion, Item, Output, Outputs, View
from sbbf_tool.cli.output import complain, stop_if_unread, terminal
from sbbf_tool.display import redact
from sbbf_tool.errors import (
    INTERRUPTED,
    NothingToDoError,
    SbbfError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import (
    FAILED,
    LEFT_OUT,
    LINK,
    NOT_APPLICABLE,
    NOT_QUERIED,
    OK,
    REFUSED,
    SKIPPED,
    VANISHED,
    Row,
)
from sbbf_tool.running.outcome import NOTHING_TO_DO, has_nothing_to_do
from sbbf_tool.storage.interrupts import SIGNALS

if TYPE_CHECKING:
    from sbbf_tool.running.plan import Plan, Rows

NO_PARTITION = "no file is in the partitions that --where selects"
_MOST_IN_MEMORY = 1000
_UNCOMMITTED = "vanished"
_IN_SUMMARY = {
    OK: "done",
    SKIPPED: "skipped",
    NOT_APPLICABLE: "not_applicable",
    REFUSED: "refused",
    FAILED: "failed",
    LINK: "links",
}


def report_files(outputs: Outputs, plan: Plan, view: View[Any]) -> int:
    """Carry out a plan and report each row with `view`; return the exit code of the command.

    If one file is named as PATH, its full report is printed, and its error ends the command. Each
    of several files gets a line, a JSON document or rows, followed by a summary. It is a usage
    error if none of several files has one of the columns that the command names; other differences
    between the files are printed. A command that only reads stops when its output is closed.
    """
    view.plan = plan
    view.schema = plan.verb.name
    changes = plan.verb.changes
    view.row = view.row or plan.parts[0].work.row
    view.is_single = plan.file is not None
    view.has_rows_of_files = changes
    error: BaseException | None = None
    code = 0
    rows = plan.rows(holds_back=True)
    with outputs.open(view) as opened:
        printer = _Printer(rows, view, opened)
        try:
            with rows:
                for row in rows:
                    with interrupts_later() if changes else nullcontext():
                        printer.add(row)
                    if not changes:
                        stop_if_unread(at_end=False)
        except (KeyboardInterrupt, SystemExit) as interrupt:
            if not changes or view.is_single:
                raise
            error = interrupt
            interrupt_code = INTERRUPTED
            if isinstance(interrupt, SystemExit) and isinstance(interrupt.code, int):
                interrupt_code = interrupt.code
            if view.commits is None:
                for row in rows.left_over(printer.last_path):
                    printer.add(row)
            printer.explain(interrupt)
            if not printer.end_early(interrupt_code, has_report=outputs.report is not None):
                raise
        except SbbfError:
            printer.note_commits()
            raise
        else:
            error = printer.error
            code = printer.end()
    if error is not None:
        # Raised after the outputs have ended, because otherwise the report file would be dropped.
        raise error
    return code


class _Printer:
    """What is printed of the rows of a run: each report, messages once for all files that have
    them, and at the end the sums."""

    def __init__(self, rows: Rows[Any], view: View[Any], outputs: Sequence[Output]) -> None:
        self._plan = view.plan
        self._rows = rows
        self._outcome = rows.outcome
        self._view = view
        self._outputs = outputs
        self._is_single = view.is_single
        self._roots = () if self._is_single else tuple(map(redact, self._plan.roots))
        self._codes = set[int]()
        self._messages = Counter[tuple[str, str]]()
        self.last_path: str | None = None
        """The path of the last row that was printed."""
        self.error: BaseException | None = None
        """The error of the only file."""

    def add(self, raw_row: Row[Any]) -> None:
        """Print a row, and add it to the outputs."""
        view = self._view
        row = _prepare(raw_row, view)
        shown = _shorten(row, self._roots) if self._roots else row
        self.error = raw_row.error if self._is_single else None
        edit = self._plan.parts[0].work.edit
        if isinstance(self.error, NothingToDoError) and edit is not None and edit.output is None:
            render.note(f"sbbf: {self.error}")
            self.error = None
        if self.error is None:
            before = Counter(view.total) if view.commits is not None else view.total
            code = self._report(shown)
            if row.reason != VANISHED:
                self._codes.add(code)
            if view.commits is not None:
                sums = {name: number - before[name] for name, number in view.total.items()}
                view.commits.add(raw_row.path, sums)
        item = Item(view.schema, row.report, row, shown=shown.report)
        for output in self._outputs:
            output.add(item)
        self.last_path = raw_row.path

    def _report(self, row: Row[Any]) -> int:
        """Print the warnings and the error of a row, and return its exit code."""
        report = row.report
        view = self._view
        reason = row.reason or ""
        if view.undo is not None:
            view.undo.add(row)
        # Other commands show the warnings of a report in their output.
        if self._plan.verb.changes:
            path = None if self._is_single else row.path
            for warning in getattr(report, "warnings", ()):
                self._say(path, warning, "warning")
        is_skipped = row.status == SKIPPED and report is None and not has_nothing_to_do(row)
        if is_skipped and view.commits is not None:
            self._say(row.path, f"skipped: {reason}", "note")
        if reason in NOT_QUERIED or (reason == LINK and view.lists_answers):
            self._say(row.path, reason, "warning")
        if row.status == REFUSED:
            self._say(row.path, reason)
        elif row.status == FAILED:
            complain(f"sbbf: {row.path}: {reason}")
        if report is None:
            return row.exit_code
        return max(row.exit_code, view.add(report, row))

    def _say(self, path: str | None, message: str, kind: str = "error") -> None:
        """Print a message about a file, once for all files that have it, such as those of one
        table."""
        if terminal().quiet and kind != "error":
            return
        if (kind, message) not in self._messages:
            label = "warning: " if kind == "warning" else ""
            place = "" if path is None else f"{path}: "
            complain(f"sbbf: {label}{place}{message}", kind=kind)
        if kind != "warning" and terminal().shows_all:
            return
        if len(self._messages) < _MOST_IN_MEMORY or (kind, message) in self._messages:
            self._messages[kind, message] += 1

    def end(self) -> int:
        """End the outputs of a complete run; return the exit code of the command."""
        view = self._view
        codes = self._codes
        outcome = self._outcome
        for path, _ in outcome.unmatched:
            complain(f"sbbf: no file matches the declared path {path!r}", kind="warning")
        for reason in self._rows.unknown_columns:
            complain(f"sbbf: no file has the column: {reason}")
            codes.add(UsageError.exit_code)
        for line in outcome.columns.describe():
            render.note(f"sbbf: {line}")
        if not self._is_single:
            for (kind, message), files in self._messages.items():
                if files > 1:
                    complain(f"sbbf: {format_count(files - 1, 'more file')}: {message}", kind=kind)
            if not outcome.counts and self._plan.where is not None:
                complain(f"sbbf: {NO_PARTITION}")
                codes.add(UnreadableError.exit_code)
        if view.commits is not None:
            view.commits.withdraw(view.total)
            codes.add(view.commits.exit_code)
        if self._plan.state is not None:
            for warning in self._plan.state.warnings:
                render.warn(warning)
        view.outcomes = self._counts()
        code = view.answer(codes) if self.error is None else 0
        summary = None if self._is_single else self._summarize(code, has_sums=True)
        for output in self._outputs:
            output.end(Conclusion(summary, str(self)))
        return code

    def _counts(self) -> Counter[str]:
        """Return the number of files by outcome; those that vanished before a commit are not
        done."""
        counts = Counter(self._outcome.counts)
        if self._view.commits is not None:
            vanished = self._view.commits.vanished
            counts.update({OK: -vanished, _UNCOMMITTED: vanished})
        return counts

    def _summarize(self, code: int, *, has_sums: bool) -> dict[str, Any]:
        """Return the document that sums up the files."""
        view = self._view
        outcomes = self._counts() if has_sums else self._outcome.counts
        counts = {name: outcomes[status] for status, name in _IN_SUMMARY.items()}
        counts["refused"] += outcomes[_UNCOMMITTED]
        counts["skipped"] += outcomes[NOTHING_TO_DO]
        counts["skipped"] += sum(outcomes[reason] for reason in LEFT_OUT)
        summary: dict[str, Any] = {"command": view.schema, "files": outcomes.total(), **counts}
        if has_sums and self._plan.state is not None:
            summary["unchanged"] = self._outcome.unchanged
        summary["exit_code"] = code
        if has_sums and self._plan.columns:
            summary["columns"] = self._outcome.columns.documents()
        totals = view.totals()
        if has_sums and view.commits is not None:
            totals = {**totals, **view.commits.document()}
        summary["totals"] = totals
        return render.document("summary", summary)

    def explain(self, interrupt: BaseException) -> None:
        """Note at an interrupt how far a run came that changes files, and what undoes it."""
        interrupt.add_note(f"interrupted; {self._describe_progress()}")
        if self._view.undo is not None:
            for line in self._view.undo.lines_so_far():
                interrupt.add_note(line)

    def _describe_progress(self) -> str:
        commits = self._view.commits
        if commits is None:
            progress = f"so far {self}" if self._outcome.counts.total() else "no file is done yet"
            edit = self._plan.parts[0].work.edit
            if edit is not None and edit.output is not None:
                return (
                    f"{progress}; new files stay, and the same command refuses them: name another "
                    "output, or remove them"
                )
            return (
                f"{progress}; files in work may be changed too, changed files stay, and the same "
                "command continues"
            )
        message = (
            "copies that no commit contains are deleted unless a commit was under way; the same "
            "command continues"
        )
        if commits.may_leave_copies:
            message += (
                "; workers of Spark that end later may leave copies: after five minutes, delete "
                "them with sbbf repair --abandoned 5m"
            )
        return message

    def end_early(self, code: int, *, has_report: bool) -> bool:
        """End the report file of an interrupted run, which is what undoes its changes, or return
        False."""
        view = self._view
        self.note_commits()
        if not has_report or view.commits is not None:
            return False
        complain(
            "sbbf: the report has the files so far; name another for the next run, which would "
            "replace it",
            kind="note",
        )
        self._outputs[-1].end(Conclusion(self._summarize(code, has_sums=False), str(self)))
        return True

    def note_commits(self) -> None:
        """Print the commits that were made before an error, which ends the command."""
        if self._view.commits is not None:
            for line in self._view.commits.lines():
                render.note(f"sbbf: {line}")

    def __str__(self) -> str:
        """Return the counts, such as `1,000 files: 990 done, 10 failed`."""
        counts = self._counts()
        words = {OK: self._view.done, NOTHING_TO_DO: self._view.skipped}
        statuses = (OK, NOTHING_TO_DO, NOT_APPLICABLE, SKIPPED, _UNCOMMITTED, REFUSED, FAILED)
        shares = [
            f"{counts[status]:,} {words.get(status, status)}"
            for status in statuses
            if counts[status]
        ]
        if counts[LINK]:
            shares.append(f"{format_count(counts[LINK], 'link')} skipped")
        shares += [
            f"{counts[reason]:,} left out ({reason})" for reason in LEFT_OUT if counts[reason]
        ]
        if self._outcome.unchanged and self._plan.state is not None:
            shares.append(f"{self._outcome.unchanged:,} of them unchanged and not opened")
        return f"{format_count(counts.total(), 'file')}: {', '.join(shares) or 'nothing to do'}"


def _prepare(row: Row[Any], view: View[Any]) -> Row[Any]:
    """Return the row without the secrets in its path, and with its report as the view prepares
    it."""
    report = row.report
    path = redact(row.path)
    prepared_report = None if report is None else view.prepare(report)
    # Most rows stay as they are, and a copy of each would take a tenth of the time of a run over
    # small files.
    if prepared_report is report and path == row.path:
        return row
    return replace(row, path=path, report=prepared_report)


def _shorten(row: Row[Any], roots: tuple[str, ...]) -> Row[Any]:
    """Return the row of a file of a table with names relative to the root of the table."""
    root = next(filter(row.path.startswith, roots), "")
    report: Any = row.report
    if report is not None:
        names = {}
        for name in ("file", "output"):
            if hasattr(report, name):
                names[name] = getattr(report, name).removeprefix(root)
        report = replace(report, **names)
    return replace(row, path=row.path.removeprefix(root), report=report)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Handle an interrupt that arrives in this block when the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        # Python handles signals in the main thread only.
        yield
        return
    received: list[tuple[int, Any]] = []
    handlers: dict[signal.Signals, Callable[[int, Any], Any]] = {}
    for number in SIGNALS:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
    for number in handlers:
        signal.signal(number, lambda *number_and_frame: received.append(number_and_frame))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for signal_number, frame in received:
        handlers[signal.Signals(signal_number)](signal_number, frame)
