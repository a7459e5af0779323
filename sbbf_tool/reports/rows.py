"""Row of one file: the file's outcome in a run over many files, the same on every runner.

Rows are passed between processes and through Spark, where each field is a column: `reports.arrow` derives the Arrow schema.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OK, SKIPPED, REFUSED, FAILED = "ok", "skipped", "refused", "failed"
"""Done; nothing to do; refused because the change would be unsafe; failed."""

LINK = "a link in a listing is skipped: name the link itself to change the file that it leads to"
"""Why commands that change files skip a link."""


@dataclass(frozen=True)
class ListedFile:
    """File in a listing."""

    path: str
    bytes: int | None = None
    modified: float | None = None
    """Seconds since 1970."""
    is_link: bool = False
    """Whether a folder or glob led to the file through a link; set only if links are requested."""


@dataclass(frozen=True)
class FileRow:
    """The fields that begin every report row about a file."""

    path: str
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None
    """Reason for the status; None if it is `ok`."""
    exit_code: int
    """Exit code of a command on this file alone, apart from findings and answers."""
    seconds: float
    error: Exception | None = field(default=None, kw_only=True, repr=False, compare=False, metadata={"local": True})
    """The exception that stopped the work. It is None outside the process that raised it, and in every table of rows."""
