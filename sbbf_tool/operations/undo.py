"""`undo_change`: restore a file as it was before a change, from what the report of the change says of it."""

from __future__ import annotations

import os
from functools import partial

from sbbf_tool.editing.build import mistake
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.past_change import PastChange
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.patch import ChunkKey, Patch
from sbbf_tool.reports.remove import TRUNCATED, RemovedFilter, RemoveReport
from sbbf_tool.storage import places


def undo_change(path: str | os.PathLike[str], change: PastChange, edit: Edit) -> RemoveReport:
    """Truncate a file to its length before `change`; the result is the old file, byte for byte.

    The report lists the filters that the old file does not have. Raises the errors of `PastChange.ensure_result`, and RefusedError if the
    old footer differs from the present one in more than the filters; the file stays as it is in every case.
    """
    # Before the file is opened as Parquet: another writer may have made something else of it.
    with places.open_source(path) as source:
        change.ensure_result(source)
    with edit.open(path) as open_edit:
        file = open_edit.file
        change.ensure_result(file.source)
        before = _footer_before(file, change)
        open_edit.ensure_replaceable()
        new_chunks = sorted(key for key in file.footer.recorded_chunks() if file.footer.filter_place(*key) != before.filter_place(*key))
        report = partial(
            RemoveReport,
            filters=tuple(RemovedFilter(row_group, file.footer.columns[column].name) for row_group, column in new_chunks),
            method=TRUNCATED,
            unreferenced_bytes=0,
        )
        return open_edit.publish(Patch(before.end, (), before.raw, {}), report, partial(_compare, file, before))


def _footer_before(file: ParquetFile, change: PastChange) -> Footer:
    """Return the footer with which the file ended before the change."""
    try:
        before = file.parse_footer_ending_at(change.old_bytes)
        chunks = file.footer.recorded_chunks() | before.recorded_chunks()
        is_same = _without_filters(before, chunks) == _without_filters(file.footer, chunks)
    except UnreadableError:
        is_same = False
    if not is_same:
        raise RefusedError("the bytes before the change do not end with a footer of the same data", file=file.name)
    return before


def _without_filters(footer: Footer, chunks: set[ChunkKey]) -> bytes:
    return footer.set_filters(dict.fromkeys(chunks), leave_decrypted=True)


def _compare(file: ParquetFile, before: Footer, fresh: ParquetFile) -> None:
    if fresh.source.size != before.end or fresh.footer.raw != before.raw:
        raise mistake(file, "the restored file would not end with its old footer")
