"""Failures as rows: an error in one file is reported for that file, and the run continues with the other files."""

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
    """Return the row of a file with the fields that `work` returns; they include `status` and `reason` if the status is not `ok`."""
    started = time.monotonic()
    try:
        fields: Mapping[str, object] = work()
    except Exception as error:
        fields = {**failure(path, error), "error": error}
    values = {"status": OK, "reason": None, "exit_code": 0, "seconds": time.monotonic() - started, **fields}
    return row(path=path, **values)  # type: ignore[arg-type]


def failure(path: str, error: Exception) -> dict[str, object]:
    """Return status, reason and exit code of an error. The reason has all details of the error except the file's name."""
    if isinstance(error, SbbfError):
        reason = ": ".join(part for part in (error.file if error.file != redact(path) else None, error.place, error.message) if part)
        reason = join(reason, "; ", error.hint) if error.hint else reason
        if isinstance(error, NothingToDoError):
            return {"status": SKIPPED, "reason": reason, "exit_code": 0}
        status = REFUSED if isinstance(error, RefusedError) else FAILED
        return {"status": status, "reason": reason, "exit_code": error.exit_code}
    # A defect of this package, or a lack of memory, must not end the run because of one file in a million.
    return {"status": FAILED, "reason": describe_unexpected(error), "exit_code": INTERNAL_ERROR}


def error_of(row: FileRow) -> SbbfError:
    """Return the error of a row that is neither `ok` nor `skipped`."""
    kinds: dict[int, type[SbbfError]] = {kind.exit_code: kind for kind in (UsageError, UnreadableError, RefusedError, WriteError)}
    return kinds.get(row.exit_code, SbbfError)(row.reason or row.status, file=row.path)
