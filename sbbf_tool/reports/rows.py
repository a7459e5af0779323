"""One file's row: what became of one file in a run over many, the same on every runner.

Rows travel between processes and through Spark, where each field is a column: `runner.rows` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OK, SKIPPED, REFUSED, FAILED = "ok", "skipped", "refused", "failed"
"""Done; nothing to do, since the file has what it should; must not be done, as asked; could not be done."""

LINK = "a link that the listing of a folder met: name it to change the file that it leads to"
"""Why commands that change files skip it."""


@dataclass(frozen=True)
class FoundFile:
    """A file as a listing has it."""

    path: str
    bytes: int | None = None
    modified: float | None = None
    """Seconds since 1970."""
    is_link: bool = False
    """Whether a folder or glob led to it by way of a link; only where links are asked for."""


@dataclass(frozen=True)
class FileRow:
    """What every row of a file begins with."""

    path: str
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None
    """In words; None where the status is `ok`."""
    exit_code: int
    """That a command on this file alone would end with, findings and answers apart."""
    seconds: float
    error: Exception | None = field(default=None, kw_only=True, repr=False, compare=False, metadata={"local": True})
    """The exception that stopped the work, in the process where it was raised; None elsewhere, and in every table of rows."""
