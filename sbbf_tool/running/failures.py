"""Failures as rows: an error in one file is reported for that file, and the run continues with the other files."""

from __future__ import annotations

from sbbf_tool.display import redact
from sbbf_tool.errors import (
    LockedError,
    NoColumnError,
    NotApplicableError,
    NothingToDoError,
    RefusedError,
    SbbfError,
    describe_unexpected,
)
from sbbf_tool.file.table_file import FileName, TableFile
from sbbf_tool.reports.rows import FAILED, REFUSED, SKIPPED

INTERNAL_ERROR = 70


def interrupt_of(error: Exception) -> BaseException | None:
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
