"""What each file of a lake is to get, from its footer alone: which chunks lack a filter, and in which pieces they are built."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.errors import UsageError
from sbbf_tool.operations.add import KEEP, REPLACE, choose_chunks
from sbbf_tool.operations.build import Sizing, chunk_bytes
from sbbf_tool.operations.lake.failures import row_of
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.operations.plan_file import Plan
from sbbf_tool.operations.targets import choose_target
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import OK, SKIPPED, PlannedFile, PlannedPiece
from sbbf_tool.storage.places import TableFinder

if TYPE_CHECKING:
    from sbbf_tool.operations.keys import KeysGiven

PIECE_BYTES = 16 << 20
"""Of data to decode: less than a second, so that a file of many row groups is work for every core."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Which filters a lake's files are to have."""

    columns: tuple[str, ...]
    sizing: Sizing = field(default_factory=Sizing)
    limits: tuple[tuple[str, int], ...] = ()
    """Columns whose filters have a largest size of their own, in bytes."""
    replace: bool = False
    """Build filters that are there already anew. Without it, a second run finds nothing to do."""
    allow_table_files: bool = False
    keys: KeysGiven = field(default=None, repr=False, compare=False)
    """Of encrypted files, whose encrypted columns get encrypted filters."""
    tables: TableFinder = field(default_factory=TableFinder, repr=False, compare=False)
    """What this run knows of prefixes that are tables, and of those that are none."""

    def __post_init__(self) -> None:
        if not self.columns:
            raise UsageError("no column was named")

    @classmethod
    def of_plan(cls, plan: Plan, *, allow_table_files: bool = False, keys: KeysGiven = None) -> Wish:
        """What `advise` planned."""
        sizes = tuple(plan.columns.items())
        return cls(tuple(plan.columns), Sizing(plan.fpp), sizes, plan.replace, allow_table_files, keys)

    @property
    def size_limits(self) -> dict[str, Sizing]:
        return {name: Sizing(self.sizing.fpp, self.sizing.ndv, most) for name, most in self.limits}

    def chunks(self, file: ParquetFile) -> list[ChunkKey]:
        """The chunks that are to get a filter. Raises RefusedError."""
        return choose_chunks(file, self.columns, REPLACE if self.replace else KEEP)


def fingerprint(file: ParquetFile) -> str:
    """Of length and footer. Whoever writes a file again writes another footer, and another pipeline's filters stand in it."""
    return f"{file.source.size}-{hashlib.blake2b(file.footer.raw, digest_size=8).hexdigest()}"


def plan_file(path: str, wish: Wish, piece_bytes: int = PIECE_BYTES) -> PlannedFile:
    """What this file is to get; why nothing, where its status is not `ok`."""
    return row_of(PlannedFile, path, partial(_planned, path, wish, piece_bytes))


def _planned(path: str, wish: Wish, piece_bytes: int) -> dict[str, object]:
    choose_target(path, None, True, wish.allow_table_files, tables=wish.tables)
    with ParquetFile.open(path, wish.keys) as file:
        keys = wish.chunks(file)
        columns = sorted({column for _, column in keys})
        return {
            "status": OK if keys else SKIPPED,
            "reason": None if keys else "it has every filter",
            "bytes": file.source.size,
            "fingerprint": fingerprint(file),
            "columns": tuple(file.footer.columns[index].name for index in columns),
            "filters": len(keys),
            "data_bytes": sum(chunk_bytes(file, key) for key in keys),
            "pieces": tuple(pieces_of(file, keys, piece_bytes if not any(file.has_key(*key) for key in keys) else None)),
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
