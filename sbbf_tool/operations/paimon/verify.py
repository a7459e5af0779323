"""Verify that an index has no false negatives: query its filters for every value of the data file.

The membership check uses all k bits, so that a filter that passes is safe for readers that check fewer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sbbf_tool.editing.paimon_index import find_table_around
from sbbf_tool.errors import ErrorPlace, OversizedPageError, UnreadableError, UsageError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.paimon_columns import read_columns
from sbbf_tool.paimon.bloom64 import KIND, MAX_PROBES, BloomFilter64, parse_bloom64
from sbbf_tool.paimon.data_types import DataType
from sbbf_tool.paimon.file_index import NONE, find_index
from sbbf_tool.paimon.files import Files, list_names, parse_file, read_file
from sbbf_tool.paimon.hash_batch import HashBatch
from sbbf_tool.paimon.index_container import Container, parse_container
from sbbf_tool.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.paimon.table import LiveFile, Table, open_table
from sbbf_tool.paimon.table_schema import IndexedColumn, TableSchema, indexed_type, parse_indexed_column
from sbbf_tool.reports.paimon import VerifiedColumn, VerifiedFile, VerifyReport
from sbbf_tool.storage.folders import LocalFolders

_EXAMPLES = 5


def verify_paimon(
    target: str | os.PathLike[str],
    data_file: str | os.PathLike[str] | None = None,
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: Files | None = None,
) -> VerifyReport:
    """Verify every index of a table, or one `.index` file against `data_file`, by default the one that the index name refers to.

    Files outside the directory of the table are read only with `allow_outside`.

    Raises UnreadableError if the target is neither a table nor an index, or an `.index` file or its data file cannot be read; RefusedError
    if the header of a Parquet page in that data file states more than `max_page_bytes` uncompressed bytes.
    """
    path, files = os.fsdecode(target), files or LocalFolders()
    if not path.endswith(INDEX_SUFFIX) and data_file is None:
        return verify_table(open_table(files, path, snapshot=snapshot, branch=branch, allow_outside=allow_outside), max_page_bytes)
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=path)
    if data_file is not None:
        return verify_pair(files, path, os.fsdecode(data_file), max_page_bytes)
    data_path = data_file_of(path)
    if os.path.basename(data_path) not in list_names(files, os.path.dirname(data_path) or "."):
        raise UsageError(f"its data file {os.path.basename(data_path)} does not exist beside it", file=path, hint="name the data file")
    return verify_pair(files, path, data_path, max_page_bytes)


def verify_table(table: Table, max_page_bytes: MaxPageBytes = None) -> VerifyReport:
    """Verify every index of an open table against its data file."""
    return VerifyReport(table.path, tuple(_verify_live(table, live, max_page_bytes) for live in table.live_files))


def verify_pair(
    files: Files,
    index_path: str,
    data_path: str,
    max_page_bytes: MaxPageBytes = None,
) -> VerifyReport:
    """Verify an `.index` file against a data file. Types come from the table of the data file or, without one, from the file.

    Raises UnreadableError if either file cannot be read.
    """
    container = parse_file(files, index_path, parse_container)
    table_and_file = find_table_around(files, data_path)
    schema = table_and_file[0].schema_of(table_and_file[1].file) if table_and_file is not None else None
    with ErrorPlace(data_path):
        columns = verify_container(container, read_file(files, data_path), data_path, schema, max_page_bytes)
    return VerifyReport(index_path, (VerifiedFile(data_path, "file", columns),))


def _verify_live(table: Table, live: LiveFile, max_page_bytes: MaxPageBytes) -> VerifiedFile:
    index = find_index(table.files, live)
    if index.container is None:
        return VerifiedFile(live.file.name, index.place, (), index.problem if index.place != NONE else None)
    if live.outside is not None:
        return VerifiedFile(live.file.name, index.place, (), live.outside)
    try:
        data = read_file(table.files, live.path)
        columns = verify_container(index.container, data, live.path, table.schema_of(live.file), max_page_bytes)
    except (UnreadableError, UsageError, OversizedPageError) as error:
        return VerifiedFile(live.file.name, index.place, (), str(error))
    return VerifiedFile(live.file.name, index.place, columns)


def verify_container(
    container: Container, data: bytes, name: str, schema: TableSchema | None, max_page_bytes: MaxPageBytes = None
) -> tuple[VerifiedColumn, ...]:
    """Verify every filter of a container against the bytes of a data file; the file name determines the format, `schema` the types.

    A column that cannot be verified has a `problem`; if the data file cannot be read, all columns have one.
    """
    columns = [column for column, kinds in container.indexes.items() if KIND in kinds or any(entry.empty for entry in kinds.values())]
    filters: dict[IndexedColumn, tuple[DataType, BloomFilter64 | None]] = {}
    verified: dict[str, VerifiedColumn] = {}
    for column in columns:
        indexed = parse_indexed_column(column)
        try:
            data_type = read_columns(data, name, {indexed: indexed_type(schema, indexed)}, max_page_bytes).types[indexed]
            filters[indexed] = data_type, _read_filter(container, column)
        except (UnreadableError, UsageError) as error:
            verified[column] = VerifiedColumn(column, 0, 0, 0, (), str(error))
    verified |= _verify_filters(filters, data, name, max_page_bytes)
    return tuple(verified[column] for column in columns)


def _verify_filters(
    filters: Mapping[IndexedColumn, tuple[DataType, BloomFilter64 | None]], data: bytes, name: str, max_page_bytes: MaxPageBytes
) -> dict[str, VerifiedColumn]:
    """Check the values of all columns in one pass or, if that fails, column by column."""
    types = {indexed: data_type for indexed, (data_type, _) in filters.items()}
    tallies = {indexed: _Tally(bloom) for indexed, (_, bloom) in filters.items()}
    try:
        for batch in read_columns(data, name, types, max_page_bytes).batches if types else ():
            for indexed, tally in tallies.items():
                tally.add(batch[indexed])
    except (UnreadableError, UsageError) as error:
        if len(filters) == 1:
            return {str(indexed): VerifiedColumn(str(indexed), 0, 0, 0, (), str(error)) for indexed in filters}
        results = (_verify_filters({indexed: each}, data, name, max_page_bytes) for indexed, each in filters.items())
        return {column: result for by_column in results for column, result in by_column.items()}
    return {str(indexed): tally.build_result(str(indexed)) for indexed, tally in tallies.items()}


def _read_filter(container: Container, column: str) -> BloomFilter64 | None:
    """Return the filter of a column; None for an EMPTY index."""
    kinds = container.indexes[column]
    if any(entry.empty for entry in kinds.values()):
        return None
    bloom = parse_bloom64(container.body_of(kinds[KIND]))
    if bloom.k > MAX_PROBES:
        raise UsageError(f"k = {bloom.k} is above {MAX_PROBES}, so the filter cannot be verified")
    return bloom


class _Tally:
    """Counts of the values of a column that were checked so far."""

    def __init__(self, bloom: BloomFilter64 | None) -> None:
        self.bloom = bloom
        self.rows = self.nulls = self.false_negatives = 0
        self.examples: list[str] = []

    def add(self, part: HashBatch) -> None:
        self.rows += part.rows
        self.nulls += part.nulls
        missing = (~self.bloom.contains(part.hashes)).nonzero()[0] if self.bloom else range(len(part.hashes))
        self.false_negatives += len(missing)
        self.examples += (_format_value(part.values[int(at)]) for at in missing[: _EXAMPLES - len(self.examples)])

    def build_result(self, column: str) -> VerifiedColumn:
        return VerifiedColumn(column, self.rows, self.nulls, self.false_negatives, tuple(self.examples))


def _format_value(value: Any) -> str:
    """Format a value from the reader for display; bytes that are UTF-8 become text."""
    try:
        plain = value.as_py() if hasattr(value, "as_py") else value
        return plain.decode() if isinstance(plain, bytes) else str(plain)
    except UnicodeDecodeError as error:
        return f"0x{error.object.hex()}"
    except (ValueError, OverflowError):
        return "a value that cannot be formatted"
