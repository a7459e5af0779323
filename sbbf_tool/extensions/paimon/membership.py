"""The membership check of Paimon's indexes: their filters are queried for every value of the data file.

All k bits are checked, so that a filter that passes is safe for readers that check fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sbbf_tool.errors import OversizedPageError, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, MAX_PROBES, BloomFilter64, parse_bloom64
from sbbf_tool.extensions.paimon.column_hashes import read_columns
from sbbf_tool.extensions.paimon.data_types import DataType
from sbbf_tool.extensions.paimon.fast_hash import Keys
from sbbf_tool.extensions.paimon.file_index import NONE, FileIndex
from sbbf_tool.extensions.paimon.files import read_file
from sbbf_tool.extensions.paimon.hash_batch import HashBatch
from sbbf_tool.extensions.paimon.hash_causes import SAMPLE, find_cause
from sbbf_tool.extensions.paimon.index_container import Container
from sbbf_tool.extensions.paimon.reports import VerifiedColumn, VerifiedFile
from sbbf_tool.extensions.paimon.table import IndexedFile, PaimonTable
from sbbf_tool.extensions.paimon.table_schema import IndexedColumn, TableSchema, indexed_type, parse_indexed_column
from sbbf_tool.file.page_limit import MaxPageBytes

_EXAMPLES = 5


def verify_index(table: PaimonTable, live: IndexedFile, index: FileIndex, max_page_bytes: MaxPageBytes) -> VerifiedFile:
    """Verify the index of a data file of a table."""
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
    tallies = {indexed: _ValueCounts(bloom) for indexed, (_, bloom) in filters.items()}
    try:
        for batch in read_columns(data, name, types, max_page_bytes).batches if types else ():
            for indexed, tally in tallies.items():
                tally.add(batch[indexed])
    except (UnreadableError, UsageError) as error:
        if len(filters) == 1:
            return {str(indexed): VerifiedColumn(str(indexed), 0, 0, 0, (), str(error)) for indexed in filters}
        results = (_verify_filters({indexed: each}, data, name, max_page_bytes) for indexed, each in filters.items())
        return {column: result for by_column in results for column, result in by_column.items()}
    return {str(indexed): tally.build_result(str(indexed), types[indexed]) for indexed, tally in tallies.items()}


def _read_filter(container: Container, column: str) -> BloomFilter64 | None:
    """Return the filter of a column; None for an EMPTY index."""
    kinds = container.indexes[column]
    if any(entry.empty for entry in kinds.values()):
        return None
    bloom = parse_bloom64(container.body_of(kinds[KIND]))
    if bloom.k > MAX_PROBES:
        raise UsageError(f"k = {bloom.k} is above {MAX_PROBES}, so the filter cannot be verified")
    return bloom


class _ValueCounts:
    """Counts of the values of a column that were checked so far."""

    def __init__(self, bloom: BloomFilter64 | None) -> None:
        self.bloom = bloom
        self.rows = self.nulls = self.false_negatives = 0
        self.examples: list[str] = []
        self._sample: list[Keys] = []
        """Keys of some false negatives."""

    def add(self, part: HashBatch) -> None:
        self.rows += part.rows
        self.nulls += part.nulls
        missing = (~self.bloom.contains(part.hashes)).nonzero()[0] if self.bloom else range(len(part.hashes))
        if len(missing) and self.false_negatives < SAMPLE:
            sample = [int(at) for at in missing[: SAMPLE - self.false_negatives]]
            self._sample.append([part.keys[at] for at in sample] if isinstance(part.keys, list) else part.keys[sample])
        self.false_negatives += len(missing)
        self.examples += (_format_value(part.values[int(at)]) for at in missing[: _EXAMPLES - len(self.examples)])

    def build_result(self, column: str, data_type: DataType) -> VerifiedColumn:
        cause = find_cause(self.bloom, _join(self._sample), data_type) if self.bloom is not None and self._sample else None
        return VerifiedColumn(column, self.rows, self.nulls, self.false_negatives, tuple(self.examples), cause=cause)


def _join(keys: list[Keys]) -> Keys:
    texts = [each for each in keys if isinstance(each, list)]
    return [text for each in texts for text in each] if texts else np.concatenate([each for each in keys if not isinstance(each, list)])


def _format_value(value: Any) -> str:
    """Format a value from the reader for display; bytes that are UTF-8 become text."""
    try:
        plain = value.as_py() if hasattr(value, "as_py") else value
        return plain.decode() if isinstance(plain, bytes) else str(plain)
    except UnicodeDecodeError as error:
        return f"0x{error.object.hex()}"
    except (ValueError, OverflowError):
        return "a value that cannot be formatted"
