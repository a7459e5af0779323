"""The loop of every command over the rows of its files: print errors and reports, add up sums, choose the exit code."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli import INTERRUPTED, render
from sbbf_tool.cli.files import NO_PARTITION, Files
from sbbf_tool.cli.formats import Item, Output, Run, View
from sbbf_tool.cli.output import complain, limit_complaints, stop_if_unread
from sbbf_tool.cli.terminal import terminal
from sbbf_tool.display import redact
from sbbf_tool.errors import NothingToDoError, SbbfError, UnreadableError, UsageError
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
    UNFINISHED,
    VANISHED,
    Row,
)
from sbbf_tool.running.named_columns import NamedColumns, lacks_columns, reason_of

if TYPE_CHECKING:
    from sbbf_tool.running.work import Work


_MOST_IN_MEMORY = 1000
_NOTHING_TO_DO = "nothing to do"
_UNCOMMITTED = "vanished"
"""Words for files that were not opened, by the key of the summary document."""


class _Outcomes:
    """Number of files by status, and the warnings already printed."""

    def __init__(self, done: str, nothing_to_do: str, *, is_of_table: bool, names_each: bool) -> None:
        self.counts: Counter[str] = Counter()
        self._is_of_table = is_of_table
        self.unchanged = 0
        """Number of files whose outcome the state has."""
        self._has_state = False
        self._warnings: Counter[str] = Counter()
        self._names_each, self._refusals = names_each, Counter[tuple[str, str]]()
        self._words = {
            OK: done,
            _NOTHING_TO_DO: nothing_to_do,
            NOT_APPLICABLE: NOT_APPLICABLE,
            SKIPPED: "skipped",
            _UNCOMMITTED: _UNCOMMITTED,
            REFUSED: "refused",
            FAILED: "failed",
        }

    def add(self, row: Row[Any]) -> None:
        """Count a row."""
        outcome = row.reason if row.reason in (LINK, *LEFT_OUT) else row.status
        if outcome == SKIPPED and (row.reason or "").startswith(NOT_APPLICABLE):
            outcome = NOT_APPLICABLE
        elif outcome == SKIPPED and (not self._is_of_table or _has_nothing_to_do(row)):
            outcome = _NOTHING_TO_DO
        self.counts[outcome] += 1

    def withdraw(self, vanished: int) -> None:
        """Count so many files not as done but as vanished."""
        self.counts[OK] -= vanished
        self.counts[_UNCOMMITTED] += vanished

    def __str__(self) -> str:
        """Return the counts, such as `1,000 files: 990 done, 10 failed`."""
        shares = [f"{self.counts[status]:,} {word}" for status, word in self._words.items() if self.counts[status]]
        if links := self.counts[LINK]:
            shares.append(f"{format_count(links, 'link')} skipped")
        shares += [f"{self.counts[reason]:,} left out ({reason})" for reason in LEFT_OUT if self.counts[reason]]
        if self._has_state and self.unchanged:
            shares.append(f"{self.unchanged:,} of them unchanged and not opened")
        return f"{format_count(self.counts.total(), 'file')}: {', '.join(shares) or 'nothing to do'}"

    def warn(self, path: str | None, warnings: Iterable[str]) -> None:
        """Print the warnings about a file to standard error, with its path if it is one of several.

        A warning that recurs is printed for its first file; `warn_again` counts the others.
        """
        for warning in warnings:
            if warning not in self._warnings:
                render.warn(warning if path is None else f"{path}: {warning}")
            if len(self._warnings) < _MOST_IN_MEMORY or warning in self._warnings:
                self._warnings[warning] += 1

    def refuse(self, path: str, reason: str, kind: str = "error") -> None:
        """Print why a file was refused or skipped, once for all files with the same reason, such as those of one table."""
        refusal = kind, reason
        if refusal not in self._refusals:
            complain(f"sbbf: {path}: {reason}", kind=kind)
        if not self._names_each and (refusal in self._refusals or len(self._refusals) < _MOST_IN_MEMORY):
            self._refusals[refusal] += 1

    def say_again(self) -> None:
        """Print how many more files have the same warning, or were refused for the same reason."""
        for warning, files in self._warnings.items():
            if files > 1 and not terminal().quiet:
                complain(f"sbbf: {format_count(files - 1, 'more file')}: {warning}", kind="warning")
        for (kind, reason), files in self._refusals.items():
            if files > 1:
                complain(f"sbbf: {format_count(files - 1, 'more file')}: {reason}", kind=kind)

    def note_state(self, files: Files) -> None:
        """Count the files that were not opened, and print what of the state could not be read."""
        if files.state is not None:
            self._has_state = True
            for warning in files.state.warnings:
                render.warn(warning)

    def document(self) -> dict[str, int]:
        names = {OK: "done", SKIPPED: "skipped", NOT_APPLICABLE: "not_applicable", REFUSED: "refused", FAILED: "failed", LINK: "links"}
        counts = {name: self.counts[status] for status, name in names.items()}
        counts["refused"] += self.counts[_UNCOMMITTED]
        counts["skipped"] += self.counts[_NOTHING_TO_DO] + sum(self.counts[reason] for reason in LEFT_OUT)
        return {"files": self.counts.total(), **counts, **({"unchanged": self.unchanged} if self._has_state else {})}


def _has_nothing_to_do(row: Row[Any]) -> bool:
    """Return whether that is why the file is skipped: files of a table are skipped for more reasons."""
    return row.reason == HAS_EVERY_FILTER or row.report is not None or isinstance(row.error, NothingToDoError)


def report_files(files: Files, work: Work[Any], view: View[Any], columns: tuple[str, ...] = ()) -> int:
    """Work on all files and report each with `view`; return the exit code of the command.

    If one file is named as PATH, its full report is printed, and its error ends the command. Each of several files gets a line, a JSON
    document or rows, followed by a summary. It is a usage error if none of several files has one of the `columns` that the command names;
    other differences between the files are printed. A command that only reads stops when its output is closed.
    """
    outcomes = _Outcomes(view.done, view.skipped, is_of_table=files.table_change is not None, names_each=terminal().shows_all)
    codes: set[int] = set()
    is_single = files.file is not None
    named_columns, code = NamedColumns(columns), 0
    error: BaseException | None = None
    last_path: str | None = None
    roots = () if is_single or view.has_full_names else tuple(map(redact, files.roots))
    run = Run(view, view.row or work.row, is_single, has_rows_of_files=work.changes, most_files=files.most_files)
    with files.outputs.open(run) as sinks, limit_complaints(files.most_files):

        def take(raw_row: Row[Any]) -> None:
            nonlocal error, last_path
            row = _prepare(raw_row, view)
            shown = _shorten(row, roots) if roots else row
            outcomes.add(raw_row)
            outcomes.unchanged += row.is_unchanged
            named_columns.add(row)
            error = raw_row.error if is_single else None
            if isinstance(error, NothingToDoError) and work.given.edit is not None and work.given.edit.output is None:
                render.note(f"sbbf: {error}")
                error = None
            if error is None:
                before = Counter(view.total) if view.commits is not None else view.total
                code_of_row = _count(shown, view, outcomes, work, is_single=is_single)
                codes.update({code_of_row} if row.reason != VANISHED else ())
                if view.commits is not None:
                    view.commits.add(raw_row.path, {name: number - before[name] for name, number in view.total.items()})
            item = Item(view.schema, row.report, row, shown=shown.report)
            for output in sinks:
                output.add(item)
            last_path = raw_row.path

        try:
            with closing(files.rows(work)) as rows:
                held: list[Row[Any]] | None = []
                for raw_row in rows:
                    if held is not None and _may_be_flood(raw_row, held):
                        held.append(raw_row)
                        continue
                    for each in (*(held or ()), raw_row):
                        with interrupts_later() if work.changes else nullcontext():
                            take(each)
                        if not work.changes:
                            stop_if_unread(at_end=False)
                    held = None
            if held:
                raise held[0].error or UsageError(reason_of(held[0]), file=held[0].path)
        except (KeyboardInterrupt, SystemExit) as interrupt:
            if not work.changes or is_single:
                raise
            for raw_row in files.rest if view.commits is None else ():
                if raw_row.path != last_path:
                    take(raw_row)
            report = sinks[-1] if files.outputs.report is not None and view.commits is None else None
            code = interrupt.code if isinstance(interrupt, SystemExit) and isinstance(interrupt.code, int) else INTERRUPTED
            _end_early(view, outcomes, report, code)
            if report is None:
                raise
            error = interrupt
        except SbbfError:
            _note_commits(view)
            raise
        else:
            answers = error is None
            code = _end(files, view, outcomes, sinks, codes, named_columns if columns else None, is_single=is_single, answers=answers)
    if error is not None:
        # Raised after the outputs have ended, because otherwise the report file would be dropped.
        raise error
    if not work.changes:
        stop_if_unread()
    return code


def _end(
    files: Files,
    view: View[Any],
    outcomes: _Outcomes,
    sinks: Sequence[Output],
    codes: set[int],
    named_columns: NamedColumns | None,
    *,
    is_single: bool,
    answers: bool,
) -> int:
    """End the outputs of a complete run; return the exit code of the command, which is 0 unless `answers` is set."""
    codes.update(() if named_columns is None else _report_columns(named_columns))
    if not is_single:
        outcomes.say_again()
        if not outcomes.counts and files.where is not None:
            complain(f"sbbf: {NO_PARTITION}")
            codes.add(UnreadableError.exit_code)
    if view.commits is not None:
        view.commits.withdraw(view.total)
        outcomes.withdraw(view.commits.vanished)
        codes.add(view.commits.exit_code)
    outcomes.note_state(files)
    view.failures, view.links = outcomes.counts[FAILED] + outcomes.counts[REFUSED], outcomes.counts[LINK]
    view.unfinished, view.vanished = outcomes.counts[UNFINISHED], outcomes.counts[VANISHED]
    view.left_out = sum(outcomes.counts[reason] for reason in NOT_QUERIED) - view.unfinished
    code = view.answer(codes) if answers else 0
    commits = {} if view.commits is None else view.commits.document()
    column_counts = {} if named_columns is None else {"columns": named_columns.documents()}
    summary = None if is_single else _summarize(view, outcomes, code, column_counts, commits)
    for output in sinks:
        output.end(summary, str(outcomes))
    return code


def _summarize(view: View[Any], outcomes: _Outcomes, code: int, columns: Mapping[str, Any], totals: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that sums up the files."""
    counts = {"command": view.schema, **outcomes.document(), "exit_code": code}
    return render.document("summary", {**counts, **columns, "totals": {**view.totals(), **totals}})


def _end_early(view: View[Any], outcomes: _Outcomes, report: Output | None, code: int) -> None:
    """Report how far a run came that changes files, and end its report file, which is what undoes its changes."""
    progress = f"so far {outcomes}" if outcomes.counts.total() else "no file is done yet"
    message = f"{progress}; files in work may be changed too, changed files stay, and the same command continues"
    if view.commits is not None:
        message = "copies that no commit contains are deleted unless a commit was under way; the same command continues"
        if view.commits.may_leave_copies:
            message += "; workers of Spark that end later may leave copies: after five minutes, delete them with sbbf repair --abandoned"
    complain(f"sbbf: interrupted; {message}", kind="note")
    _note_commits(view)
    if report is not None:
        complain("sbbf: the report has the files so far; name another for the next run, which would replace it", kind="note")
        report.end(_summarize(view, outcomes, code, {}, {}), str(outcomes))


def _report_columns(named_columns: NamedColumns) -> Iterator[int]:
    """Print the columns that no file has, and those that differ between files; yield the exit code of an error."""
    for reason in named_columns.unknown():
        complain(f"sbbf: no file has the column: {reason}")
        yield UsageError.exit_code
    for line in named_columns.describe():
        render.note(f"sbbf: {line}")


def _note_commits(view: View[Any]) -> None:
    """Print the commits that were made before an error, which ends the command."""
    for line in view.commits.lines() if view.commits is not None else ():
        render.note(f"sbbf: {line}")


def _prepare(row: Row[Any], view: View[Any]) -> Row[Any]:
    """Return the row without the secrets in its path, and with its report as the view prepares it."""
    report, path = row.report, redact(row.path)
    prepared_report = None if report is None else view.prepare(report)
    # Most rows stay as they are, and a copy of each would take a tenth of the time of a run over small files.
    if prepared_report is report and path == row.path:
        return row
    return replace(row, path=path, report=prepared_report)


def _shorten(row: Row[Any], roots: tuple[str, ...]) -> Row[Any]:
    """Return the row of a file of a table with names relative to the root of the table."""
    root = next(filter(row.path.startswith, roots), "")
    report: Any = row.report
    if report is not None:
        report = replace(report, **{name: getattr(report, name).removeprefix(root) for name in ("file", "output") if hasattr(report, name)})
    return replace(row, path=row.path.removeprefix(root), report=report)


def _count(row: Row[Any], view: View[Any], outcomes: _Outcomes, work: Work[Any], *, is_single: bool) -> int:
    """Count a row, print its warnings and its error, and return its exit code."""
    report = row.report
    if view.undo is not None:
        view.undo.add(row)
    # Other commands show the warnings of a report in their output.
    outcomes.warn(None if is_single else row.path, getattr(report, "warnings", ()) if work.changes else ())
    if view.commits is not None and row.status == SKIPPED and report is None and not (_has_nothing_to_do(row) or terminal().quiet):
        outcomes.refuse(row.path, f"skipped: {row.reason or ''}", "note")
    if row.reason in NOT_QUERIED:
        outcomes.warn(row.path, (row.reason,))
    if row.status == REFUSED:
        outcomes.refuse(row.path, row.reason or "")
    elif row.status == FAILED:
        complain(f"sbbf: {row.path}: {row.reason or ''}")
    return max(row.exit_code, view.add(report, row)) if report is not None else row.exit_code


def _may_be_flood(row: Row[Any], held: Sequence[Row[Any]]) -> bool:
    """Return whether every file so far has a usage error, of which only the first is printed if all files have one.

    If no file has the columns that the command names, this is a usage error too. If only some files have a usage error, such as a value
    that the column cannot hold, it is reported for those files.
    """
    return (row.exit_code == UsageError.exit_code or lacks_columns(row)) and len(held) < _MOST_IN_MEMORY


_ENDING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupts_later() -> Iterator[None]:
    """Handle a signal that arrives in this block when the block has ended."""
    if threading.current_thread() is not threading.main_thread():
        # Python handles signals in the main thread only.
        yield
        return
    received: list[tuple[int, Any]] = []
    handlers = {number: signal.getsignal(number) for number in _ENDING}
    for number, handler in handlers.items():
        if callable(handler):
            signal.signal(number, lambda number, frame: received.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            if callable(handler):
                signal.signal(number, handler)
    for signal_number, frame in received:
        handler = handlers[signal.Signals(signal_number)]
        if callable(handler):
            handler(signal_number, frame)
