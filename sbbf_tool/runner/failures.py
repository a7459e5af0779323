"""Failures as rows: an error in one file is reported for that file, and the run continues with the other files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from sbbf_tool.display import redact
from sbbf_tool.errors import (
    LockedError,
    NoColumnError,
    NotApplicableError,
    NothingToDoError,
    RefusedError,
    SbbfError,
    UnreadableError,
    UsageError,
    WriteError,
    describe_unexpected,
)
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.reports.change import ChangeReport, SaturatedFilter, explain_refusal
from sbbf_tool.reports.rows import FAILED, NOT_APPLICABLE, OK, REFUSED, SKIPPED, FileRow

Row = TypeVar("Row", bound=FileRow)

INTERNAL_ERROR = 70


def row_of(row: type[Row], path: FileName, work: Callable[[], Mapping[str, object]]) -> Row:
    """Return the row of a file with the fields that `work` returns; they include `status` and `reason` if the status is not `ok`."""
    started = time.monotonic()
    try:
        fields: Mapping[str, object] = work()
    except Exception as error:
        if (interrupt := _interrupt_of(error)) is not None:
            raise interrupt from None
        fields = {**failure(path, error), "error": error}
    values = {"status": OK, "reason": None, "exit_code": 0, "seconds": time.monotonic() - started, **fields}
    return row(path=os.fspath(path), **values)  # type: ignore[arg-type]


def _interrupt_of(error: Exception) -> BaseException | None:
    """Return the interrupt, such as KeyboardInterrupt or SystemExit, that led to an error; None if other errors did.

    Before Python 3.12, an exception in __set_name__, such as that of a signal while a module is imported, becomes a RuntimeError, and the
    module that imports the other may raise a further error from it.
    """
    causes: list[BaseException] = []
    cause = error.__cause__
    while isinstance(cause, Exception) and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__
    return None if isinstance(cause, Exception) else cause


def failure(path: FileName, error: Exception) -> dict[str, object]:
    """Return status, reason and exit code of an error. The reason has all details of the error except the file's name.

    A change of a table skips encrypted files without the key; the commit contains the others. Files that do not have a column of their
    table are skipped in any case.
    """
    if isinstance(error, SbbfError):
        file = error.file if error.file != redact(path) else None
        reason = str(SbbfError(error.message, file=file, place=error.place, hint=error.hint))
        if isinstance(error, NothingToDoError | NotApplicableError) or _is_unfit(path, error):
            return {"status": SKIPPED, "reason": reason, "exit_code": 0}
        status = REFUSED if isinstance(error, RefusedError) else FAILED
        return {"status": status, "reason": reason, "exit_code": error.exit_code}
    # A defect of this package, or a lack of memory, must not end the run because of one file in a million.
    return {"status": FAILED, "reason": describe_unexpected(error), "exit_code": INTERNAL_ERROR}


def _is_unfit(path: FileName, error: SbbfError) -> bool:
    return isinstance(path, TableFile) and (isinstance(error, NoColumnError) or (isinstance(error, LockedError) and path.run is not None))


def refusal_of(report: ChangeReport) -> dict[str, object] | None:
    """Return the fields of a file that was changed, but without some of the filters; None if no filter was left out."""
    filters: tuple[SaturatedFilter, ...] = getattr(report, "saturated_filters", ())
    if not filters:
        return None
    return {"status": REFUSED, "reason": explain_refusal(filters), "exit_code": RefusedError.exit_code, "report": report}


def error_of(row: FileRow) -> SbbfError:
    """Return the error of a row that is neither `ok` nor `skipped`."""
    if (row.reason or "").startswith(NOT_APPLICABLE):
        return NotApplicableError(row.reason or "", file=row.path)
    kinds: dict[int, type[SbbfError]] = {kind.exit_code: kind for kind in (UsageError, UnreadableError, RefusedError, WriteError)}
    return kinds.get(row.exit_code, SbbfError)(row.reason or row.status, file=row.path)
