"""What each file of a lake is to get, from its footer alone: which chunks lack a filter, and in which pieces they are built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from sbbf_tool.editing.build import chunk_bytes, first_bytes, least_bytes
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import PlannedFile, PlannedPiece
from sbbf_tool.reports.rows import OK, SKIPPED
from sbbf_tool.runner.failures import row_of

PIECE_BYTES = 16 << 20
"""Of data to decode: less than a second, so that a file of many row groups is work for every core."""

HANDED_BYTES = 32 << 20
"""Of a file whose filters may take more, processes of one machine hand none to each other: one of them builds all, on all cores."""


def plan_file(path: str, spec: FilterSpec, edit: Edit, piece_bytes: int = PIECE_BYTES, handed_bytes: int | None = None) -> PlannedFile:
    """What this file is to get; why nothing, where its status is not `ok`.

    It is a single piece where its columns are encrypted, or its filters may take more than `handed_bytes`.
    """
    return row_of(PlannedFile, path, partial(_planned, path, spec, edit, piece_bytes, handed_bytes))


def _planned(path: str, spec: FilterSpec, edit: Edit, piece_bytes: int, handed_bytes: int | None) -> dict[str, object]:
    with replace(edit, dry_run=True).open(path) as opened:
        file = opened.file
        keys, _ = spec.chunks(file)
        sizes = spec.sizes(file, keys)
        opened.spool.ensure_room(least_bytes(file, sizes))
        if keys:
            opened.ensure_replaceable()
        columns = sorted({column for _, column in keys})
        most = sum(first_bytes(file, *one) for one in sizes.items())
        is_whole = any(file.has_key(*key) for key in keys) or (handed_bytes is not None and most > handed_bytes)
        return {
            "status": OK if keys else SKIPPED,
            "reason": None if keys else "it has every filter",
            "bytes": file.source.size,
            "fingerprint": file.fingerprint,
            "columns": tuple(file.footer.columns[index].name for index in columns),
            "filters": len(keys),
            "data_bytes": sum(chunk_bytes(file, key) for key in keys),
            "pieces": tuple(pieces_of(file, keys, None if is_whole else piece_bytes)),
        }


def pieces_of(file: ParquetFile, keys: Iterable[ChunkKey], piece_bytes: int | None) -> Iterator[PlannedPiece]:
    """Whole row groups together, up to `piece_bytes`; one that is larger is a piece of its own. A single piece where that is None."""
    by_row_group: dict[int, int] = {}
    for key in keys:
        by_row_group[key[0]] = by_row_group.get(key[0], 0) + chunk_bytes(file, key)
    numbers: list[int] = []
    filled = 0
    for number, size in by_row_group.items():
        if numbers and piece_bytes is not None and filled + size > piece_bytes:
            yield PlannedPiece(tuple(numbers), filled)
            numbers, filled = [], 0
        numbers.append(number)
        filled += size
    if numbers:
        yield PlannedPiece(tuple(numbers), filled)
