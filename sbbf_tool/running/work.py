"""A verb on its way to files: what a run gives it, and the row of each file. It can be sent to
other processes.

An error in one file is its row, and the run continues with the other files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from sbbf_tool.display import redact
from sbbf_tool.errors import (
    LockedError,
    MissingError,
    NoColumnError,
    NotApplicableError,
    NothingToDoError,
    RefusedError,
    SbbfError,
    UsageError,
    describe_unexpected,
    exit_code_of,
)
from sbbf_tool.file.table_file import FileName, TableFile, TableFiles
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import FAILED, REFUSED, SKIPPED, VANISHED, ListedFile, Row
from sbbf_tool.storage.interrupts import ensure_uninterrupted
from sbbf_tool.verbs.verb import AllFiles, Verb

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.parallel import Progress
    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Selection

Report = TypeVar("Report", covariant=True)
R = TypeVar("R")
Scan = Callable[[Sequence[str]], list[Row[R] | None]]
"""A function that makes the rows of many files at once, with None for each that must be opened."""

_PATIENCE_SECONDS = 60.0


class Work(Generic[Report]):
    """A verb with the context of a run, and how it changes files."""

    __slots__ = ("context", "edit", "needs", "table_files", "verb")

    def __init__(self, verb: Verb[Report], context: Context, edit: Edit | None = None) -> None:
        """`edit` is for a verb that changes files."""
        self.verb = verb
        self.needs = verb.needs()
        self.context = replace(context, patience=_PATIENCE_SECONDS)
        self.edit = edit
        self.table_files: TableFiles | None = None
        """What the work needs to know of the files, if they belong to a table."""

    def on(self, selection: Selection) -> Work[Report]:
        """Return the same work on the files of a selection. Raises UsageError if its table lacks a
        column that the verb needs, or has only partition values where the verb needs filters."""
        if selection.index is not None and not self.context.strict:
            selection.look_for(self.needs)
        if selection.table is None:
            return self
        selection.ensure_stored(self.needs.filters)
        selection.ensure_columns(self.needs.columns, self.context)
        return self.of_table(selection.table_files())

    def of_table(self, table_files: TableFiles | None) -> Work[Report]:
        """Return the same work on files of a table."""
        if table_files is self.table_files:
            return self
        work = copy(self)
        work.table_files = table_files
        return work

    def through(self) -> AbstractContextManager[None]:
        """Return a block in which files are opened through the access of their table."""
        if self.table_files is None or self.table_files.access is None:
            return nullcontext()
        return self.table_files.access.through()

    @property
    def row(self) -> Any:
        """The type of the rows, with that of the reports, for Arrow."""
        return Row[self.verb.report]  # type: ignore[name-defined]

    @property
    def changes(self) -> bool:
        """Whether the work changes files; if so, links in a listing are skipped."""
        return self.verb.changes

    @property
    def is_dry_run(self) -> bool:
        return self.edit is not None and self.edit.dry_run

    @property
    def reads_data(self) -> bool:
        """Whether the work reads the data of a file, not only its footer and filters."""
        return self.needs.data and (self.needs.data_in_dry_run or not self.is_dry_run)

    def combine(self, rows: Iterable[Row[Any]], selection: Selection) -> Any:
        """Return the answer of the verb about all files of a selection, from their rows."""
        names = tuple(selection.names)
        work = self.on(selection)
        is_whole = selection.where is None
        files = AllFiles(names, self.context, work.file, selection.table, is_whole)
        with work.through():
            return self.verb.combine(rows, files)

    def file(self, path: str) -> FileName:
        """Return the name by which the work opens the file with this path."""
        return path if self.table_files is None else self.table_files.file(path)

    def scanner(self) -> Scan[Report] | None:
        """Return what makes the rows of many local files at once; None if each must be opened."""
        table_files = self.table_files
        in_table = None
        if table_files is not None:
            in_table = table_files.usual
        scan = self.verb.scanner(self.context, in_table, self.edit)
        if scan is None:
            return None

        def rows_of(paths: Sequence[str]) -> list[Row[Report] | None]:
            ensure_uninterrupted()
            started = time.monotonic()
            names = paths
            if table_files is not None:
                names = table_files.usual_names(paths)
            reports = scan(names)
            seconds = (time.monotonic() - started) / max(1, len(paths))
            rows = []
            for path, report in zip(paths, reports, strict=True):
                row = None
                if report is not None:
                    row = self.row_of(path, report, seconds)
                rows.append(row)
            return rows

        return rows_of

    def row_of(self, path: FileName, report: Any, seconds: float) -> Row[Report]:
        """Return the row of a file with this report."""
        status, reason = self.verb.outcome(path, report)
        exit_code = 0
        if status == REFUSED:
            exit_code = RefusedError.exit_code
        return Row(os.fspath(path), status, reason, exit_code, seconds, report)

    def __call__(self, path: str, jobs: int = 1, progress: Progress | None = None) -> Row[Report]:
        """Return the row of one file; a failure is reported in the row."""
        ensure_uninterrupted()
        started = time.monotonic()
        file = self.file(path)
        verb = self.verb
        name = os.fspath(file)
        error: Exception
        report: Report | None = None
        try:
            if not path:
                raise UsageError("the path is null or empty", hint="leave such rows out")
            verb = verb.of_file(file)
            reason = verb.skips()
            if reason is not None:
                return Row(name, SKIPPED, reason)
            context = replace(self.context, jobs=jobs, progress=progress)
            with self.through():
                report = verb.carry(file, context, self.edit)
            return self.row_of(file, report, time.monotonic() - started)
        except SbbfError as failed:
            # A table may delete the files of its earlier versions.
            is_old = isinstance(file, TableFile) and not file.is_live
            if isinstance(failed, MissingError) and is_old:
                return Row(name, SKIPPED, VANISHED)
            error = failed
            report = verb.failed(file, failed)
        except Exception as unexpected:
            interrupt = interrupt_of(unexpected)
            if interrupt is not None:
                raise interrupt from None
            error = unexpected
            report = None
        fields: dict[str, Any] = failure(file, error)
        seconds = time.monotonic() - started
        return Row(path=name, seconds=seconds, report=report, error=error, **fields)


class Runner(Protocol):
    """Runner over files. Use as a context manager. A failure in a file becomes its row; names that
    match no file raise SbbfError."""

    def __enter__(self) -> Runner: ...
    def __exit__(self, *exc_info: object) -> None: ...

    on_cluster: bool
    """Whether workers on other machines may go on after the run was interrupted."""

    progress: RunProgress | None
    """What the runner sets as it works; None if progress is not shown."""

    most_files: int | None
    """Number of listed files above which a caller should divide a run, to limit memory; None for no
    limit."""

    rest: list[Any]
    """If a run ended early, the row that was yielded last, and those of files that were done, but
    not yielded."""

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        """List the files of a run where it works; see `Selection.files`."""

    def run(self, selection: Selection, work: Work[R]) -> Generator[Row[R], None, None]:
        """Yield the row of each file; the local runner yields them in the order of the files."""


def interrupt_of(error: Exception) -> BaseException | None:
    """Return the interrupt, such as KeyboardInterrupt or SystemExit, that led to an error; None if
    other errors did.

    Before Python 3.12, an exception in __set_name__, such as that of a signal while a module is
    imported, becomes a RuntimeError, and the module that imports the other may raise a further
    error from it.
    """
    causes = []
    cause = error.__cause__
    while isinstance(cause, Exception) and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__
    return None if isinstance(cause, Exception) else cause


def failure(path: FileName, error: Exception) -> dict[str, object]:
    """Return status, reason and exit code of an error. The reason has all details of the error
    except the file's name.

    A change of a table skips encrypted files without the key; the commit contains the others. Files
    that do not have a column of their table are skipped in any case.
    """
    if isinstance(error, SbbfError):
        file = error.file if error.file != redact(path) else None
        reason = str(SbbfError(error.message, file=file, place=error.place, hint=error.hint))
        if isinstance(error, NothingToDoError | NotApplicableError) or _is_unfit(path, error):
            return {"status": SKIPPED, "reason": reason, "exit_code": 0}
        status = REFUSED if isinstance(error, RefusedError) else FAILED
        return {"status": status, "reason": reason, "exit_code": error.exit_code}
    # A defect of this package, or a lack of memory, must not end the run because of one file in a
    # million.
    reason = describe_unexpected(error)
    return {"status": FAILED, "reason": reason, "exit_code": exit_code_of(error)}


def _is_unfit(path: FileName, error: SbbfError) -> bool:
    if not isinstance(path, TableFile):
        return False
    is_locked_in_commit = isinstance(error, LockedError) and path.run is not None
    return isinstance(error, NoColumnError) or is_locked_in_commit
