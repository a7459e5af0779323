"""The loop of every command over the rows of its files: print errors and reports, add up sums,
choose the exit code."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli import INTERRUPTED, render
from sbbf_tool.cli.files import NO_PARTITION, Files
from sbbf_tool.cli.formats import Item, Output, View
from sbbf_tool.cli.output import complain, stop_if_unread, terminal
from sbbf_tool.display import redact
from sbbf_tool.errors import NothingToDoError, SbbfError, UnreadableError, UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import (
    FAILED,
    HAS_EVERY_FILTER,
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
from sbbf_tool.running.named_columns import NamedColumns, lacks_columns, reason_of

if TYPE_CHECKING:
    from sbbf_tool.running.work import Work


_MOST_IN_MEMORY = 1000
_NOTHING_TO_DO = "nothing to do"
_UNCOMMITTED = "vanished"
_IN_SUMMARY = {
    OK: "done",
    SKIPPED: "skipped",
    NOT_APPLICABLE: "not_applicable",
    REFUSED: "refused",
    FAILED: "failed",
    LINK: "links",
}


def report_files(
    files: Files, work: Work[Any], view: View[Any], columns: tuple[str, ...] = ()
) -> int:
    """Work on all files and report each with `view`; return the exit code of the command.

    If one file is named as PATH, its full report is printed, and its error ends the command. Each
    of several files gets a line, a JSON document or rows, followed by a summary. It is a usage
    error if none of several files has one of the `columns` that the command names; other
    differences between the files are printed. A command that only reads stops when its output is
    closed.
    """
    view.row = view.row or work.row
    view.is_single = files.file is not None
    view.has_rows_of_files = work.changes
    error: BaseException | None = None
    code = 0
    with files.outputs.open(view) as outputs:
        loop = _Loop(files, work, view, outputs, columns)
        try:
            with closing(files.rows(work)) as rows:
                for row in rows:
                    loop.add(row)
            loop.ensure_usable()
        except (KeyboardInterrupt, SystemExit) as interrupt:
            if not work.changes or view.is_single:
                raise
            error = interrupt
            interrupt_code = INTERRUPTED
            if isinstance(interrupt, SystemExit) and isinstance(interrupt.code, int):
                interrupt_code = interrupt.code
            if not loop.end_early(interrupt_code):
                raise
        except SbbfError:
            loop.note_commits()
            raise
        else:
            error = loop.error
            code = loop.end()
    if error is not None:
        # Raised after the outputs have ended, because otherwise the report file would be dropped.
        raise error
    return code


class _Loop:
    """The rows so far: the number of files by status, the messages already printed, and the exit
    codes."""

    def __init__(
        self,
        files: Files,
        work: Work[Any],
        view: View[Any],
        outputs: Sequence[Output],
        columns: tuple[str, ...],
    ) -> None:
        self._files = files
        self._work = work
        self._view = view
        self._outputs = outputs
        self._is_single = files.file is not None
        self._roots = () if self._is_single else tuple(map(redact, files.roots))
        self._columns = NamedColumns(columns)
        self._has_columns = bool(columns)
        self._codes = set[int]()
        self._counts = Counter[str]()
        self._messages = Counter[tuple[str, str]]()
        self._unchanged = 0
        """Number of files whose outcome the state has."""
        self._last_path: str | None = None
        self._held: list[Row[Any]] | None = []
        """The rows so far while each of them has a usage error."""
        self.error: BaseException | None = None
        """The error of the only file."""

    def add(self, row: Row[Any]) -> None:
        """Take a row, unless all rows so far have a usage error: if each file has one,
        `ensure_usable` raises the first."""
        rows = [row]
        if self._held is not None:
            self._held.append(row)
            is_unusable = row.exit_code == UsageError.exit_code or lacks_columns(row)
            if is_unusable and len(self._held) <= _MOST_IN_MEMORY:
                return
            rows = self._held
            self._held = None
        for each in rows:
            with interrupts_later() if self._work.changes else nullcontext():
                self._take(each)
            if not self._work.changes:
                stop_if_unread(at_end=False)

    def ensure_usable(self) -> None:
        if not self._held:
            return
        index = self._files.index
        if index is None or not index.excluded:
            first = self._held[0]
            raise first.error or UsageError(reason_of(first), file=first.path)
        for row in self._held:
            self._take(row)

    def _take(self, raw_row: Row[Any]) -> None:
        view = self._view
        row = _prepare(raw_row, view)
        shown = _shorten(row, self._roots) if self._roots else row
        self._counts[self._outcome_of(raw_row)] += 1
        self._unchanged += row.is_unchanged
        self._columns.add(row)
        self.error = raw_row.error if self._is_single else None
        edit = self._work.given.edit
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
        self._last_path = raw_row.path

    def _outcome_of(self, row: Row[Any]) -> str:
        if row.reason in (LINK, *LEFT_OUT):
            return str(row.reason)
        if row.status != SKIPPED:
            return row.status
        if (row.reason or "").startswith(NOT_APPLICABLE):
            return NOT_APPLICABLE
        is_done = self._files.table_change is None or _has_nothing_to_do(row)
        return _NOTHING_TO_DO if is_done else SKIPPED

    def _report(self, row: Row[Any]) -> int:
        """Count a row, print its warnings and its error, and return its exit code."""
        report = row.report
        view = self._view
        reason = row.reason or ""
        if view.undo is not None:
            view.undo.add(row)
        # Other commands show the warnings of a report in their output.
        if self._work.changes:
            path = None if self._is_single else row.path
            for warning in getattr(report, "warnings", ()):
                self._say(path, warning, "warning")
        is_skipped = row.status == SKIPPED and report is None and not _has_nothing_to_do(row)
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
        counts = self._counts
        index = self._files.index  # apply has no selection of its own
        for reason in self._columns.unknown(0 if index is None else index.excluded):
            complain(f"sbbf: no file has the column: {reason}")
            codes.add(UsageError.exit_code)
        for line in self._columns.describe():
            render.note(f"sbbf: {line}")
        if not self._is_single:
            for (kind, message), files in self._messages.items():
                if files > 1:
                    complain(f"sbbf: {format_count(files - 1, 'more file')}: {message}", kind=kind)
            if not counts and self._files.where is not None:
                complain(f"sbbf: {NO_PARTITION}")
                codes.add(UnreadableError.exit_code)
        if view.commits is not None:
            view.commits.withdraw(view.total)
            counts.update({OK: -view.commits.vanished, _UNCOMMITTED: view.commits.vanished})
            codes.add(view.commits.exit_code)
        if self._files.state is not None:
            for warning in self._files.state.warnings:
                render.warn(warning)
        view.outcomes = counts
        code = view.answer(codes) if self.error is None else 0
        summary = None if self._is_single else self._summarize(code, has_sums=True)
        for output in self._outputs:
            output.end(summary, str(self))
        return code

    def _summarize(self, code: int, *, has_sums: bool) -> dict[str, Any]:
        """Return the document that sums up the files."""
        view = self._view
        counts = {name: self._counts[status] for status, name in _IN_SUMMARY.items()}
        counts["refused"] += self._counts[_UNCOMMITTED]
        counts["skipped"] += self._counts[_NOTHING_TO_DO]
        counts["skipped"] += sum(self._counts[reason] for reason in LEFT_OUT)
        summary: dict[str, Any] = {"command": view.schema, "files": self._counts.total(), **counts}
        if has_sums and self._files.state is not None:
            summary["unchanged"] = self._unchanged
        summary["exit_code"] = code
        if has_sums and self._has_columns:
            summary["columns"] = self._columns.documents()
        totals = view.totals()
        if has_sums and view.commits is not None:
            totals = {**totals, **view.commits.document()}
        summary["totals"] = totals
        return render.document("summary", summary)

    def end_early(self, code: int) -> bool:
        """Report how far a run came that changes files; end its report file, which is what undoes
        its changes, or return False."""
        view = self._view
        if view.commits is None:
            for row in self._files.rest:
                if row.path != self._last_path:
                    self._take(row)
            progress = f"so far {self}" if self._counts.total() else "no file is done yet"
            message = (
                f"{progress}; files in work may be changed too, changed files stay, and the same "
                "command continues"
            )
        else:
            message = (
                "copies that no commit contains are deleted unless a commit was under way; the "
                "same command continues"
            )
            if view.commits.may_leave_copies:
                message += (
                    "; workers of Spark that end later may leave copies: after five minutes, "
                    "delete them with sbbf repair --abandoned 5m"
                )
        complain(f"sbbf: interrupted; {message}", kind="note")
        self.note_commits()
        if self._files.outputs.report is None or view.commits is not None:
            return False
        complain(
            "sbbf: the report has the files so far; name another for the next run, which would "
            "replace it",
            kind="note",
        )
        self._outputs[-1].end(self._summarize(code, has_sums=False), str(self))
        return True

    def note_commits(self) -> None:
        """Print the commits that were made before an error, which ends the command."""
        if self._view.commits is not None:
            for line in self._view.commits.lines():
                render.note(f"sbbf: {line}")

    def __str__(self) -> str:
        """Return the counts, such as `1,000 files: 990 done, 10 failed`."""
        counts = self._counts
        words = {OK: self._view.done, _NOTHING_TO_DO: self._view.skipped}
        statuses = (OK, _NOTHING_TO_DO, NOT_APPLICABLE, SKIPPED, _UNCOMMITTED, REFUSED, FAILED)
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
        if self._unchanged and self._files.state is not None:
            shares.append(f"{self._unchanged:,} of them unchanged and not opened")
        return f"{format_count(counts.total(), 'file')}: {', '.join(shares) or 'nothing to do'}"


def _has_nothing_to_do(row: Row[Any]) -> bool:
    """Return whether that is why the file is skipped: files of a table are skipped for more
    reasons."""
    if row.reason == HAS_EVERY_FILTER or row.report is not None:
        return True
    return isinstance(row.error, NothingToDoError)


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
    """Handle a signal that arrives in this block when the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        # Python handles signals in the main thread only.
        yield
        return
    received: list[tuple[int, Any]] = []
    handlers: dict[signal.Signals, Callable[[int, Any], Any]] = {}
    for number in signal.valid_signals():
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
