"""Which column chunks of a file get a filter, and the patch that puts filters into the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sbbf_tool.editing.build import Spooled, ensure_buildable
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import RefusedError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append

REFUSE, KEEP, REPLACE = "refuse", "keep", "replace"


def choose_chunks(file: ParquetFile, names: Iterable[str], existing: str) -> list[ChunkKey]:
    """The column chunks that are to get a filter, row group by row group, once nothing is in the way; none of a file without row groups.
    Raises RefusedError.

    `existing` says what becomes of a chunk that has a filter: REFUSE the whole, KEEP it and leave the chunk out, or REPLACE it.
    """
    check_changeable(file)
    chosen = choose_columns(file, names)
    keys = []
    for row_group in range(file.footer.num_row_groups):
        for column in chosen:
            ensure_buildable(file, row_group, column)
            has_filter = file.footer.filter_place(row_group, column.index) is not None
            if has_filter and existing == REFUSE:
                here = f"column {column.name}, row group {row_group}"
                raise RefusedError("it has a filter already", file=file.name, place=here, hint="replace it with --replace")
            if not has_filter or existing == REPLACE:
                keys.append((row_group, column.index))
    return keys


def plan_filters(file: ParquetFile, filters: Mapping[ChunkKey, Spooled]) -> Patch:
    """The patch that puts these filters behind the whole old file, or, where there is none, changes nothing."""
    if not filters:
        return Patch(file.source.size, (), file.footer.raw, {})
    return plan_append(file.footer, file.source.size, {key: one.pieces for key, one in filters.items()})
