"""Which column chunks of a file get a filter, and of what size; their filters built, and the patch that puts them into the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sbbf_tool.editing.build import HashMemory, Meter, Sizing, Spooled, build_filters, ensure_buildable
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append
from sbbf_tool.storage.spool import Spool

REFUSE, KEEP, REPLACE = "refuse", "keep", "replace"


def choose_chunks(file: ParquetFile, names: Iterable[str], existing: str) -> list[ChunkKey]:
    """The column chunks that are to get a filter, row group by row group, once nothing is in the way; none of a file without row groups.
    Raises RefusedError.

    `existing` says what becomes of a chunk that has a filter: REFUSE the whole, KEEP it and leave the chunk out, or REPLACE it.
    """
    check_changeable(file)
    chosen = choose_columns(file, names)
    if not chosen:
        raise UsageError("no column was named", file=file.name)
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


def build_sized(
    file: ParquetFile,
    keys: Iterable[ChunkKey],
    wish: Sizing,
    limits: Mapping[str, Sizing],
    spool: Spool,
    jobs: int | None,
    meter: Meter,
    checks: CrossChecks,
    memory: HashMemory | None,
) -> dict[ChunkKey, Spooled]:
    """`build_filters`, sized by `wish` but for the columns that `limits` names. Raises as that does."""
    return {
        key: one
        for wanted, group in by_size(file, keys, wish, limits).items()
        for key, one in build_filters(file, group, wanted, spool, jobs, meter, checks, memory).items()
    }


def by_size(file: ParquetFile, keys: Iterable[ChunkKey], wish: Sizing, limits: Mapping[str, Sizing]) -> dict[Sizing, list[ChunkKey]]:
    """The chunks that are sized by `wish`, and those by each of `limits`, which are columns' own."""
    special = {find_column(file.footer.columns, name).index: sizing for name, sizing in limits.items()}
    found: dict[Sizing, list[ChunkKey]] = {}
    for key in keys:
        found.setdefault(special.get(key[1], wish), []).append(key)
    return found


def plan_filters(file: ParquetFile, filters: Mapping[ChunkKey, Spooled]) -> Patch:
    """The patch that puts these filters behind the whole old file, or, where there is none, changes nothing."""
    if not filters:
        return Patch(file.source.size, (), file.footer.raw, {})
    return plan_append(file.footer, file.source.size, {key: one.pieces for key, one in filters.items()})
