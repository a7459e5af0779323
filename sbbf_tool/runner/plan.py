"""What each file of a lake is to get, from its footer alone: which chunks lack a filter, and in which pieces they are built."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.editing.build import Sizing, chunk_bytes, first_bytes, least_bytes
from sbbf_tool.editing.chunks import KEEP, REPLACE, by_size, choose_chunks
from sbbf_tool.editing.plan_file import Plan
from sbbf_tool.editing.targets import choose_target
from sbbf_tool.errors import UsageError
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import PlannedFile, PlannedPiece
from sbbf_tool.reports.rows import OK, SKIPPED
from sbbf_tool.runner.failures import row_of
from sbbf_tool.storage import places
from sbbf_tool.storage.places import TableFinder

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

PIECE_BYTES = 16 << 20
"""Of data to decode: less than a second, so that a file of many row groups is work for every core."""

HANDED_BYTES = 32 << 20
"""Of a file whose filters may take more, processes of one machine hand none to each other: one of them builds all, on all cores."""


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
    limit: PageLimit = field(default_factory=PageLimit, compare=False)
    """What a page may state that it decompresses to."""
    tables: TableFinder = field(default_factory=TableFinder, repr=False, compare=False)
    """What this run knows of prefixes that are tables, and of those that are none."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_names(self.columns))
        if not self.columns:
            raise UsageError("no column was named")

    @classmethod
    def of_plan(cls, plan: Plan, *, allow_table_files: bool = False, keys: KeysGiven = None, limit: MaxPageBytes = None) -> Wish:
        """What `advise` planned."""
        sizes = tuple(plan.columns.items())
        return cls(tuple(plan.columns), Sizing(plan.fpp), sizes, plan.replace, allow_table_files, keys, PageLimit.of(limit))

    @property
    def size_limits(self) -> dict[str, Sizing]:
        return {name: Sizing(self.sizing.fpp, self.sizing.ndv, most) for name, most in self.limits}

    def sizing_of(self, file: ParquetFile, key: ChunkKey) -> Sizing:
        """How large the filter of a chunk may become."""
        return next(iter(by_size(file, [key], self.sizing, self.size_limits)))

    def least_bytes(self, file: ParquetFile, keys: Iterable[ChunkKey]) -> int:
        """Bytes that the filters of these chunks take for sure."""
        return sum(least_bytes(file, group, size) for size, group in by_size(file, keys, self.sizing, self.size_limits).items())

    def first_bytes(self, file: ParquetFile, keys: Iterable[ChunkKey]) -> int:
        """Bytes that the filters of these chunks take at most, unless the footer counts too few values."""
        sizes = by_size(file, keys, self.sizing, self.size_limits)
        return sum(first_bytes(file, key, size) for size, group in sizes.items() for key in group)

    def chunks(self, file: ParquetFile) -> list[ChunkKey]:
        """The chunks that are to get a filter. Raises RefusedError."""
        return choose_chunks(file, self.columns, REPLACE if self.replace else KEEP)


def fingerprint(file: ParquetFile) -> str:
    """Of length and footer. Whoever writes a file again writes another footer, and another pipeline's filters stand in it."""
    return f"{file.source.size}-{hashlib.blake2b(file.footer.raw, digest_size=8).hexdigest()}"


def plan_file(path: str, wish: Wish, piece_bytes: int = PIECE_BYTES, handed_bytes: int | None = None) -> PlannedFile:
    """What this file is to get; why nothing, where its status is not `ok`.

    It is a single piece where its columns are encrypted, or its filters may take more than `handed_bytes`.
    """
    return row_of(PlannedFile, path, partial(_planned, path, wish, piece_bytes, handed_bytes))


def _planned(path: str, wish: Wish, piece_bytes: int, handed_bytes: int | None) -> dict[str, object]:
    target = choose_target(path, None, True, wish.allow_table_files, tables=wish.tables)
    with ParquetFile.open(path, wish.keys) as file, places.open_spool(path, keeps=False) as spool:
        keys = wish.chunks(file)
        spool.ensure_room(wish.least_bytes(file, keys))
        if keys:
            places.ensure_replaceable(target)
        columns = sorted({column for _, column in keys})
        is_whole = any(file.has_key(*key) for key in keys) or (handed_bytes is not None and wish.first_bytes(file, keys) > handed_bytes)
        return {
            "status": OK if keys else SKIPPED,
            "reason": None if keys else "it has every filter",
            "bytes": file.source.size,
            "fingerprint": fingerprint(file),
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
