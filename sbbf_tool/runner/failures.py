"""A file's failure is a row: whatever is wrong with one file is told of that file, and the rest of the lake goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from sbbf_tool.display import redact
from sbbf_tool.errors import NothingToDoError, RefusedError, SbbfError, UnreadableError, UsageError, WriteError, describe_unexpected
from sbbf_tool.hints import join
from sbbf_tool.reports.rows import FAILED, OK, REFUSED, SKIPPED, FileRow

Row = TypeVar("Row", bound=FileRow)

INTERNAL_ERROR = 70


def row_of(row: type[Row], path: str, work: Callable[[], Mapping[str, object]]) -> Row:
    """The row of a file whose own fields are what `work` answers, `status` and `reason` among them where it is not simply `ok`."""
    started = time.monotonic()
    try:
        known: Mapping[str, object] = work()
    except Exception as error:
        known = {**failure(path, error), "error": error}
    told = {"status": OK, "reason": None, "exit_code": 0, "seconds": time.monotonic() - started, **known}
    return row(path=path, **told)  # type: ignore[arg-type]


def failure(path: str, error: Exception) -> dict[str, object]:
    """Status, reason and exit code that an error stands for. The reason says all that the error does, but for the file's name."""
    if isinstance(error, SbbfError):
        reason = ": ".join(part for part in (error.file if error.file != redact(path) else None, error.place, error.message) if part)
        reason = join(reason, "; ", error.hint) if error.hint else reason
        if isinstance(error, NothingToDoError):
            return {"status": SKIPPED, "reason": reason, "exit_code": 0}
        status = REFUSED if isinstance(error, RefusedError) else FAILED
        return {"status": status, "reason": reason, "exit_code": error.exit_code}
    # One file among a million that meets a defect of ours, or too little memory, must not take the others with it.
    return {"status": FAILED, "reason": describe_unexpected(error), "exit_code": INTERNAL_ERROR}


def error_of(row: FileRow) -> SbbfError:
    """The error that a row which is neither `ok` nor `skipped` stands for."""
    kinds: dict[int, type[SbbfError]] = {kind.exit_code: kind for kind in (UsageError, UnreadableError, RefusedError, WriteError)}
    return kinds.get(row.exit_code, SbbfError)(row.reason or row.status, file=row.path)
