"""A file index for a data file, built from its values.

For one column the container is byte for byte what Paimon writes, given the same `items` and `fpp`. Without `items` a filter is sized for
the distinct values that are there, not for the million Paimon assumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.paimon.bloom64 import KIND, BloomFilter64, build_bloom64
from sbbf_tool.paimon.bloom64_sizing import DEFAULT_FPP
from sbbf_tool.paimon.data_file import column_hashes
from sbbf_tool.paimon.data_types import DataType
from sbbf_tool.paimon.fast_hash import Hashes, distinct
from sbbf_tool.paimon.files import Files, read_required
from sbbf_tool.paimon.index_container import build_container, lay_out
from sbbf_tool.paimon.table import table_around
from sbbf_tool.paimon.table_schema import IndexedColumn, indexed_type, parse_indexed_column

_MERGE_AT = 1 << 20


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """A filter asked for: a column, `m[key]` for a map's entry, and how large."""

    column: str
    items: int | None = None
    """Expected distinct values; None for those that are there."""
    fpp: float = DEFAULT_FPP
    """Wanted false positive probability."""
    type: DataType | None = None
    """The Paimon type of the column's values, where neither a table nor the file tells it."""


@dataclass(frozen=True, slots=True)
class BuiltColumn:
    """A filter that was built."""

    column: str
    type: str
    rows: int
    nulls: int
    distinct: int
    """Distinct hashes, as many as distinct values but for collisions."""
    items: int
    fpp: float
    num_bits: int
    k: int
    fill: float
    error_rate: float
    """Estimated chance of a "maybe" for an absent value."""


@dataclass(frozen=True, slots=True)
class BuildReport:
    data_file: str
    columns: tuple[BuiltColumn, ...]
    container: bytes
    """What to write beside the data file, or into its manifest entry."""


def build(files: Files, path: str, requests: Sequence[IndexRequest]) -> BuildReport:
    """A container for the data file at `path`. Types come from the request, else from the table the file lives in, else from the file.

    Raises UsageError for a column that is not there or cannot be indexed, UnreadableError for a file that cannot be read.
    """
    types: Mapping[str, DataType | None] = {}
    if (found := table_around(files, path)) is not None:
        table, live = found
        schema = table.schema_of(live.file)
        types = {request.column: indexed_type(schema, parse_indexed_column(request.column)) for request in requests}
    settled = [IndexRequest(asked.column, asked.items, asked.fpp, asked.type or types.get(asked.column)) for asked in requests]
    try:
        return build_index(read_required(files, path), path, settled)
    except (UnreadableError, UsageError) as error:
        raise error.at(file=path) from None


def build_index(data: bytes, name: str, requests: Sequence[IndexRequest]) -> BuildReport:
    """A container for a data file's bytes; its name tells the format. Raises as `build` does."""
    asked = {parse_indexed_column(request.column): request for request in requests}
    if not asked or len(asked) < len(requests):
        raise UsageError("a column named twice" if asked else "no column to index")
    source = column_hashes(data, name, {indexed: request.type for indexed, request in asked.items()})
    seen = {indexed: DistinctHashes() for indexed in asked}
    for batch in source.batches:
        for indexed, part in batch.items():
            seen[indexed].add(part.hashes, part.rows, part.nulls)
    built = [_build_column(indexed, request, source.types[indexed], seen[indexed]) for indexed, request in asked.items()]
    container = lay_out({column.column: {KIND: build_bloom64(bloom)} for column, bloom in built})
    return BuildReport(name, tuple(column for column, _ in built), build_container(container))


def _build_column(
    indexed: IndexedColumn, request: IndexRequest, data_type: DataType, seen: DistinctHashes
) -> tuple[BuiltColumn, BloomFilter64]:
    hashes = seen.hashes
    items = max(1, len(hashes)) if request.items is None else request.items
    bloom = BloomFilter64.sized(items, request.fpp)
    bloom.insert(hashes)
    column = BuiltColumn(
        str(indexed),
        str(data_type),
        seen.rows,
        seen.nulls,
        len(hashes),
        items,
        request.fpp,
        bloom.num_bits,
        bloom.k,
        bloom.fill,
        bloom.estimated_error_rate(),
    )
    return column, bloom


class DistinctHashes:
    """The distinct ones of hashes that come in batches: as many at a time as there are, and a million more."""

    def __init__(self) -> None:
        self._distinct: Hashes = np.zeros(0, np.uint64)
        self._pending: list[Hashes] = []
        self._waiting = 0
        self.rows = 0
        self.nulls = 0

    def add(self, hashes: Hashes, rows: int, nulls: int) -> None:
        self._pending.append(hashes)
        self._waiting += len(hashes)
        self.rows += rows
        self.nulls += nulls
        if self._waiting >= _MERGE_AT:
            self._merge()

    def _merge(self) -> None:
        self._distinct = distinct(np.concatenate([self._distinct, *self._pending]))
        self._pending = []
        self._waiting = 0

    @property
    def hashes(self) -> Hashes:
        """All distinct hashes so far, sorted."""
        self._merge()
        return self._distinct
