"""The row of a change whose task was lost before it could report.

A cluster runs a lost task again, under the number of a first attempt if the whole stage begins again, and a speculative task beside the
first. What works second finds that the file has every filter, and would count it as a file without work. The verb recognises the change in
the file, see `editing.lost_change`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.errors import SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import OK, SKIPPED, ListedFile, Row
from sbbf_tool.running.discover import list_file

if TYPE_CHECKING:
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")

_LOST = "the file changed after it was listed; if an attempt of this run that was lost did that, its changes are not counted here"


def restore_row(row: Row[Report], listed: ListedFile, work: Work[Report]) -> Row[Report]:
    """Return the row of the attempt that changed a file after it was listed; `row` if there was none.

    Of the report, `values` are those in the footer, and what was read is 0. A change by another run counts for both, if it began after this
    run had listed the file. If the file does not show what an attempt has changed, the row says so.
    """
    report: Any = row.report
    edit = work.given.edit
    if not work.changes or edit is None or listed.bytes is None:
        return row
    if report is None:
        is_same = row.status != SKIPPED or list_file(row.path).bytes in (None, listed.bytes)
        return row if is_same else replace(row, reason=f"{row.reason}; {_LOST}")
    if edit.dry_run or (report.old_bytes == listed.bytes and (row.status != SKIPPED or _has_listed_inode(listed))):
        return row
    try:
        with ParquetFile.open(work.file(row.path), edit.keys, edit.limit) as file:
            restored = work.verb.recognise(file, report, listed.bytes, edit)
        if restored is not None:
            return replace(row, status=OK, reason=None, report=restored)
    except SbbfError:
        pass  # the warning says what is not known
    is_idle = (report.old_bytes, report.old_end_hash) == (report.new_bytes, report.new_end_hash)
    return replace(row, report=replace(report, warnings=(*report.warnings, _LOST))) if is_idle else row


def _has_listed_inode(listed: ListedFile) -> bool:
    return listed.inode is None or list_file(listed.path).inode in (None, listed.inode)
