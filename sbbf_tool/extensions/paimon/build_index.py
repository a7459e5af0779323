"""A container of filters for a Paimon data file, built from its values and verified before it is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sbbf_tool.errors import ErrorPlace, SbbfError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64, parse_bloom64
from sbbf_tool.extensions.paimon.data_file import hash_columns
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.fast_hash import Hashes
from sbbf_tool.extensions.paimon.files import FileIO
from sbbf_tool.extensions.paimon.index_container import Bodies, build_container, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest
from sbbf_tool.extensions.paimon.reports import BuiltColumn
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable, find_table_around
from sbbf_tool.extensions.paimon.table_schema import IndexedColumn, indexed_type, parse_indexed_column
from sbbf_tool.file.distinct import deduplicate
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.running.table import read_metadata

_MERGE_AT = 1 << 20


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """Filters of columns, and their bytes by column."""

    columns: tuple[BuiltColumn, ...]
    filters: dict[str, bytes]

    @property
    def container(self) -> bytes:
        """The bytes to write to a file beside the data file, or to its manifest entry."""
        return build_verified({column: {KIND: body} for column, body in self.filters.items()})


def build_verified(indexes: Bodies) -> bytes:
    """Build a container, and read it as any other reader would."""
    container = build_container(indexes)
    if parse_container(container).bodies != indexes:
        raise SbbfError("the new index differs from the planned one; nothing was written", hint="please report it")
    return container


def build(
    files: FileIO,
    path: str,
    requests: Sequence[IndexRequest],
    table_and_file: tuple[PaimonTable, IndexedFile] | None = None,
    max_page_bytes: MaxPageBytes = None,
) -> BuiltIndex:
    """Build a container for the data file at `path`.

    Types come from the request if it has one, otherwise from the table in `table_and_file` if given, otherwise from the file. Raises
    UsageError for a column that is missing or cannot be indexed, and UnreadableError for a file that cannot be read.
    """
    table_and_file = table_and_file or find_table_around(files, path)
    schema = table_and_file[0].schema_of(table_and_file[1].file) if table_and_file is not None else None
    typed_requests = [
        replace(request, type=request.type or indexed_type(schema, parse_indexed_column(request.column))) for request in requests
    ]
    with ErrorPlace(path):
        return build_index(read_metadata(files, path), path, typed_requests, max_page_bytes)


def build_index(data: bytes, name: str, requests: Sequence[IndexRequest], max_page_bytes: MaxPageBytes = None) -> BuiltIndex:
    """Build a container for a data file's bytes; the file's name determines the format. Raises the errors of `build`."""
    requests_by_column = {parse_indexed_column(request.column): request for request in requests}
    if not requests_by_column or len(requests_by_column) < len(requests):
        raise UsageError("a column is named twice" if requests_by_column else "there is no column to index")
    source = hash_columns(data, name, {indexed: request.type for indexed, request in requests_by_column.items()}, max_page_bytes)
    hashes_by_column = {indexed: DistinctHashes() for indexed in requests_by_column}
    for batch in source.batches:
        for indexed, part in batch.items():
            hashes_by_column[indexed].add(part.hashes, part.rows, part.nulls)
    columns, bodies = [], {}
    for indexed, request in requests_by_column.items():
        column, bodies[str(indexed)] = _build_column(indexed, request, source.types[indexed], hashes_by_column[indexed])
        columns.append(column)
    return BuiltIndex(tuple(columns), bodies)


def _build_column(
    indexed: IndexedColumn, request: IndexRequest, data_type: DataType, distinct: DistinctHashes
) -> tuple[BuiltColumn, bytes]:
    """Build the filter of a column, and verify that it holds every value."""
    hashes = distinct.hashes
    items = max(1, len(hashes)) if request.items is None else request.items
    bloom = BloomFilter64.for_items(items, request.fpp)
    bloom.insert(hashes)
    body = build_bloom64(bloom)
    if not parse_bloom64(body).contains(hashes).all():
        raise SbbfError("the new index has a false negative; nothing was written", place=str(indexed), hint="please report it")
    figures = (bloom.num_bits, bloom.k, bloom.fill_ratio, bloom.estimate_fpp())
    return BuiltColumn(str(indexed), str(data_type), distinct.rows, distinct.nulls, len(hashes), items, request.fpp, *figures), body


class DistinctHashes:
    """The distinct hashes of batches. Memory holds the distinct hashes and at most a million others."""

    def __init__(self) -> None:
        self._distinct: Hashes = np.zeros(0, np.uint64)
        self._pending: list[Hashes] = []
        self._num_pending = 0
        self.rows = 0
        self.nulls = 0

    def add(self, hashes: Hashes, rows: int, nulls: int) -> None:
        self._pending.append(hashes)
        self._num_pending += len(hashes)
        self.rows += rows
        self.nulls += nulls
        if self._num_pending >= _MERGE_AT:
            self._merge()

    def _merge(self) -> None:
        self._distinct = deduplicate(np.concatenate([self._distinct, *self._pending]))
        self._pending = []
        self._num_pending = 0

    @property
    def hashes(self) -> Hashes:
        """All distinct hashes so far, sorted."""
        self._merge()
        return self._distinct
