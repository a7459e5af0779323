"""Row of one file: the file's outcome in a run over many files, the same on every runner.

Rows are passed between processes and through Spark, where each field is a column: `reports.plain`
derives the Arrow schema.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError, WriteError
from sbbf_tool.frozen import Frozen, field

Report = TypeVar("Report", covariant=True)

OK = "ok"
"""The work is done."""
SKIPPED = "skipped"
"""There is nothing to do."""
REFUSED = "refused"
"""The change would be unsafe."""
FAILED = "failed"
"""The work failed."""

LINK = "a link in a listing is skipped: name the link itself to use what it leads to"
"""Why a link is skipped."""

OTHER_NAME = "the name is not usual for a Parquet file: name the file itself to change it"
"""Why commands that change files skip a Parquet file in a listing, such as a backup."""

UNFINISHED = (
    "an unfinished or unreadable file that some reader may take for Parquet: name "
    "the file itself to use it"
)
"""Why a file in a listing is skipped that some reader may read."""

HUDI_LOG = (
    "a log file of a Hudi table: its rows are not queried until a compaction writes "
    "them into a Parquet file"
)
"""Why a file is skipped in which a merge-on-read table has its newest rows."""

INLINED = "rows that the catalog has in place of files may hold a value: flush them into a file"
"""Why the answer for a table is not that of its files."""

OTHER_TABLE = (
    "a second table in the same folder has other files, or is not read: say which of the two it is"
)
"""Why the answer for one of two tables is not that of the name."""

NOT_PARQUET = {
    name: f"the file is in {name}, not Parquet: its rows are not queried"
    for name in ("ORC", "AVRO")
}
"""Why a data file of a table is skipped, by its format."""

VANISHED = "the file is gone, and only earlier versions of the table have it"
"""Why a file of an earlier version of a table is skipped."""

NOT_QUERIED = (UNFINISHED, HUDI_LOG, INLINED, OTHER_TABLE, *NOT_PARQUET.values())
"""Why rows that a query may find are not looked at: no value is absent then."""

LEFT_OUT = (OTHER_NAME, VANISHED, *NOT_QUERIED)


HAS_EVERY_FILTER = "the file has every filter"
"""Why a file gets no filters."""

NOT_APPLICABLE = "not applicable"
"""Beginning of the reason why a file is skipped that does not have the columns in question,
although others of the run may."""


PARTITION = "partition"


class NamedColumn(Frozen):
    """What one file has under the name of a requested column: files of one folder may have
    different schemas."""

    name: str
    """The name as requested."""
    type: str | None
    """Type of the column; `partition` if the folder of the file states its value; None if the file
    has no such column."""
    reason: str | None = None
    """If the file has no such column: the error, with similar names."""


class ListedFile(Frozen):
    """File in a listing."""

    path: str
    bytes: int | None = None
    modified: float | None = None
    """Seconds since 1970."""
    skipped: str | None = None
    """Why the file is skipped, such as `LINK`; None for a file to work on."""
    change_time: float | None = None
    """Time of the last change of the file or its attributes (ctime), in seconds since 1970; None
    for objects, as is `inode`."""
    inode: int | None = None
    etag: str | None = None
    """ETag of an object, if its store lists it."""


class Row(Frozen, Generic[Report]):
    """The outcome of a verb on one file."""

    path: str
    status: str
    """`ok`, `skipped`, `refused` or `failed`."""
    reason: str | None = None
    """Reason for the status; None if it is `ok`."""
    exit_code: int = 0
    """Exit code of a command on this file alone, apart from findings and answers."""
    seconds: float = 0.0
    report: Report | None = None
    """What the verb has to say about the file; also of some files that were skipped or refused."""
    is_unchanged: bool = field(default=False, kw_only=True, compare=False, local=True)
    """Whether the file was not opened, because the state of an earlier run has the outcome."""
    error: Exception | None = field(
        default=None, kw_only=True, repr=False, compare=False, local=True
    )
    """The exception that stopped the work. It is None outside the process that raised it, and in
    every table of rows."""

    def to_error(self) -> SbbfError:
        """Return the error of a row that is `refused` or `failed`; from another process, one of the
        same exit code."""
        if isinstance(self.error, SbbfError):
            return self.error
        message = self.reason or self.status
        for kind in (UsageError, UnreadableError, RefusedError, WriteError):
            if kind.exit_code == self.exit_code:
                return kind(message, file=self.path)
        return SbbfError(message, file=self.path)
