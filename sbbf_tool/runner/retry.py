"""The row of a change whose task was lost before it could report.

A cluster runs a lost task again. The second attempt finds that files have every filter, because the first had added them: they would be
counted as files without work. The file itself shows the change: its last filters lie between the footer of the planned version and the last
footer (see `file.own_tail`), so the second attempt reports them as the first would have done.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.past_change import hash_end
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.own_tail import last_addition
from sbbf_tool.file.parquet_file import ParquetFile, fingerprint_of
from sbbf_tool.file.table_file import FileName
from sbbf_tool.operations.add import undo_of
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.add import AddRow, BuiltFilter
from sbbf_tool.reports.rows import OK, SKIPPED


def restore_row(
    row: AddRow, file_name: FileName, edit: Edit, *, planned_bytes: int | None = None, fingerprint: str | None = None
) -> AddRow:
    """Return the row of the earlier attempt, if the file was changed since it was planned; otherwise `row`.

    The planned version is known by its length, or by its planned fingerprint. Of the report, `values` are those in the footer, and what
    was read is 0. A change by another run at the same time is reported too. A change that replaced filters of an earlier one is not
    recognised: then the first footer is older than the planned version.
    """
    if row.status != SKIPPED or row.report is None or edit.dry_run:
        return row
    try:
        with ParquetFile.open(file_name, edit.keys, edit.limit) as file:
            addition = last_addition(file)
            if addition is None:
                return row
            before, size = addition.before, addition.before.end
            is_planned = fingerprint_of(size, before.raw) == fingerprint if fingerprint is not None else size == planned_bytes
            if not is_planned:
                return row
            filters = tuple(_describe(file, key) for key in sorted(addition.filters))
            report = replace(
                row.report,
                old_bytes=size,
                old_end_hash=hash_end(file.source, size),
                filters=filters,
                skipped=row.report.skipped - len(filters),
                leftover_bytes=0,
                undo=undo_of(file, edit, {column for _, column in addition.filters}, before),
                is_extension=True,
            )
    except SbbfError:
        return row
    return replace(row, status=OK, reason=None, report=report)


def _describe(file: ParquetFile, key: ChunkKey) -> BuiltFilter:
    column = file.footer.columns[key[1]]
    stored = file.stored_filter(key[0], column)
    assert stored is not None
    bloom = BloomFilter(file.read_bitset(stored))
    return BuiltFilter(
        row_group=key[0],
        column=column.name,
        values=file.footer.chunk_meta(*key).most_values,
        estimated_ndv=None if math.isinf(bloom.estimated_ndv) else bloom.estimated_ndv,
        offset=stored.place.offset,
        header_bytes=stored.length - bloom.num_bytes,
        bitset_bytes=bloom.num_bytes,
        fpp=bloom.fpp,
    )
