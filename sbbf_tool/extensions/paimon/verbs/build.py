"""Build a file index for a data file from its values, and verify it before it is written.

For one column, the container has the same bytes as Paimon's container, given the same `items` and
`fpp`. Without `items` a filter is sized for the distinct values in the file, not for the million
that Paimon assumes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence

import numpy as np

from sbbf_tool.errors import (
    ErrorPlace,
    RefusedError,
    SbbfError,
    UsageError,
    WriteError,
    exists_error,
)
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, build_bloom64, parse_bloom64
from sbbf_tool.extensions.paimon.fast_hash import Hashes
from sbbf_tool.extensions.paimon.file_in_table import (
    FileInTable,
    find_table_around,
    request_in_file,
)
from sbbf_tool.extensions.paimon.files import FileIO, is_listed
from sbbf_tool.extensions.paimon.index_container import Bodies, build_container, parse_container
from sbbf_tool.extensions.paimon.index_options import (
    IndexRequest,
    index_requests,
    parse_bloom_columns,
)
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.reports import BuildReport, BuiltColumn
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    IndexedColumn,
    indexed_type,
    parse_indexed_column,
)
from sbbf_tool.file.distinct import deduplicate
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.frozen import Frozen, replace
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage.folders import LocalFolders
from sbbf_tool.storage.system_calls import FORBIDDEN, reason_of

_MERGE_AT = 1 << 20


class BuiltIndex(Frozen):
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
        raise SbbfError(
            "the new index differs from the planned one; nothing was written",
            hint="please report it",
        )
    return container


def build(
    files: FileIO,
    path: str,
    requests: Sequence[IndexRequest],
    table_and_file: FileInTable | None = None,
    max_page_bytes: MaxPageBytes = None,
) -> BuiltIndex:
    """Build a container for the data file at `path`.

    Types come from the request if it has one, otherwise from the table in `table_and_file` if
    given, otherwise from the file. Raises UsageError for a column that is missing or cannot be
    indexed, and UnreadableError for a file that cannot be read.
    """
    if table_and_file is None:
        table_and_file = find_table_around(files, path)
    schema = table_and_file.schema if table_and_file is not None else None
    typed_requests = []
    for request in requests:
        table_type = indexed_type(schema, parse_indexed_column(request.column))
        typed_requests.append(replace(request, type=request.type or table_type))
    with ErrorPlace(path):
        return build_index(read_metadata(files, path), path, typed_requests, max_page_bytes)


def build_index(
    data: bytes, name: str, requests: Sequence[IndexRequest], max_page_bytes: MaxPageBytes = None
) -> BuiltIndex:
    """Build a container for a data file's bytes; the file's name determines the format.

    Raises the errors of `build`.
    """
    from sbbf_tool.extensions.paimon.data_file import hash_columns  # which loads pyarrow.parquet

    requests_by_column = {parse_indexed_column(request.column): request for request in requests}
    if not requests_by_column:
        raise UsageError("there is no column to index")
    if len(requests_by_column) < len(requests):
        raise UsageError("a column is named twice")
    types = {indexed: request.type for indexed, request in requests_by_column.items()}
    source = hash_columns(data, name, types, max_page_bytes)
    hashes_by_column = {indexed: DistinctHashes() for indexed in requests_by_column}
    for batch in source.batches:
        for indexed, part in batch.items():
            hashes_by_column[indexed].add(part.hashes, part.rows, part.nulls)
    columns = []
    bodies = {}
    for indexed, request in requests_by_column.items():
        column, body = _build_column(
            indexed, request, source.types[indexed], hashes_by_column[indexed]
        )
        columns.append(column)
        bodies[str(indexed)] = body
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
        raise SbbfError(
            "the new index has a false negative; nothing was written",
            place=str(indexed),
            hint="please report it",
        )
    column = BuiltColumn(
        column=str(indexed),
        type=str(data_type),
        rows=distinct.rows,
        nulls=distinct.nulls,
        ndv=len(hashes),
        items=items,
        fpp=request.fpp,
        num_bits=bloom.num_bits,
        k=bloom.k,
        fill_ratio=bloom.fill_ratio,
        estimated_fpp=bloom.estimate_fpp(),
    )
    return column, body


class DistinctHashes:
    """The distinct hashes of batches; memory holds them and at most a million others."""

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


def build_paimon_index(
    data_file: str | os.PathLike[str],
    columns: str | IndexRequest | Iterable[str | IndexRequest] = (),
    *,
    output: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> BuildReport:
    """Write a container for these columns of a Parquet, ORC or Avro data file to `output`, by
    default `<data file>.index`.

    Columns are given by their names in the data file (see `requests` for the syntax). Without
    columns, the columns in the options of the file's table are indexed, with the sizes in the
    options. Raises UsageError for a column that does not exist or cannot be indexed,
    UnreadableError for a file that cannot be read, RefusedError if `output` exists, writing is not
    permitted, or the header of a Parquet page states more than `max_page_bytes` uncompressed bytes,
    and WriteError if writing fails.
    """
    path = os.fsdecode(data_file)
    if output is not None and not os.fsdecode(output):
        raise UsageError("the name of the output file is empty")
    target = path + INDEX_SUFFIX if output is None else os.fsdecode(output)
    files = files or LocalFolders()
    if not dry_run and is_listed(files, target):
        raise exists_error(target, "output file")
    table_and_file = find_table_around(files, path)
    requests = index_requests(columns)
    if not requests:
        requests = _default_requests(table_and_file, path)
    index = build(files, path, requests, table_and_file, max_page_bytes)
    if not dry_run:
        _write(files, target, index.container)
    table = table_and_file.table.path if table_and_file is not None else None
    return BuildReport(path, target, dry_run, len(index.container), index.columns, table)


def _default_requests(table_and_file: FileInTable | None, path: str) -> list[IndexRequest]:
    """Return the requests of the table's options for columns that the data file has."""
    if table_and_file is None:
        raise UsageError(
            "there is no column to index", file=path, hint="name one; the file belongs to no table"
        )
    table, live = table_and_file
    requests = []
    for request in parse_bloom_columns(table.schema.options).values():
        renamed = request_in_file(table, live, request)
        if renamed is not None:
            requests.append(renamed)
    if not requests:
        raise UsageError(
            "there is no column to index",
            file=path,
            hint="name one; the options of the table name no column of this file",
        )
    return requests


def _write(files: FileIO, target: str, data: bytes) -> None:
    try:
        files.create(target, data)
    except FileExistsError:
        raise exists_error(target, "output file") from None
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise RefusedError(
                "the folder of the output file does not exist", file=target, hint="create it first"
            ) from None
        if error.errno in FORBIDDEN:
            raise RefusedError(
                f"the index cannot be created: {reason_of(error)}", file=target, hint=ELSEWHERE
            ) from error
        raise WriteError(reason_of(error), file=target, hint="nothing was written") from error
