"""The row of a file that an attempt has changed whose process ended before it could report: a later
attempt finds nothing to do, and the verb recognises the change in the file."""

from __future__ import annotations

from typing import Any, TypeVar

from sbbf_tool.errors import SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import FAILED, SKIPPED, ListedFile, Row
from sbbf_tool.running.discover import list_file, stat_file
from sbbf_tool.running.work import Work

Report = TypeVar("Report")

_LOST = (
    "the file changed after it was listed; if an attempt of this run that was lost did "
    "that, its changes are not counted here"
)


def restore_row(row: Row[Report], listed: ListedFile, work: Work[Report]) -> Row[Report]:
    """Return the row of the attempt that changed a file after it was listed; `row` if there was
    none.

    Of the report, `values` are those in the footer, and what was read is 0. A change by another run
    counts for both, if it began after this run had listed the file. If the file does not show what
    an attempt has changed, the row says so.
    """
    edit = work.edit
    if edit is None or not edit.in_place or edit.dry_run or listed.bytes is None:
        return row
    # The files of a table stay as they are: a commit replaces them by copies.
    if work.table_files is not None or row.status == FAILED or not _was_changed(row, listed):
        return row
    report: Any = row.report
    try:
        with ParquetFile.open(row.path, work.context) as file:
            restored = work.verb.recognise(file, report, listed.bytes, edit)
        if restored is not None:
            return work.row_of(row.path, restored, row.seconds)
    except SbbfError:
        pass  # the warning says what is not known
    if report is None:
        if row.status != SKIPPED:
            return row
        return replace(row, reason=f"{row.reason}; {_LOST}")
    old_end = (report.old_bytes, report.old_end_hash)
    if old_end != (report.new_bytes, report.new_end_hash):
        return row
    return replace(row, report=replace(report, warnings=(*report.warnings, _LOST)))


def _was_changed(row: Row[Any], listed: ListedFile) -> bool:
    """Return whether a file changed after it was listed, before the attempt that reports it."""
    report: Any = row.report
    if report is None:
        now = stat_file(row.path)
    elif report.old_bytes != listed.bytes:
        return True
    elif any(getattr(report, name, ()) for name in ("filters", "steps")):
        return False
    else:
        now = list_file(row.path)
    return now.bytes is not None and _version(now, listed) != _version(listed, now)


def _version(file: ListedFile, other: ListedFile) -> tuple[object, ...]:
    """Return what tells versions of a file apart, as far as it is known of the other one too."""
    inode = None if other.inode is None else file.inode
    etag = None if other.etag is None else file.etag
    return file.bytes, inode, etag
