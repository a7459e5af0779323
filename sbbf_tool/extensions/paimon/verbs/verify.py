"""Verify that an index has no false negatives: query its filters for every value of the data file.

All k bits are checked, so that a filter that passes is safe for readers that check fewer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sbbf_tool.errors import ErrorPlace, OversizedPageError, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, MAX_PROBES, BloomFilter64, parse_bloom64
from sbbf_tool.extensions.paimon.bloom64_spec import to_int64
from sbbf_tool.extensions.paimon.data_file import hash_columns
from sbbf_tool.extensions.paimon.fast_hash import (
    HashBatch,
    Hashes,
    HashForm,
    Keys,
    hash_bytes,
    hash_keys,
    hash_longs,
    key_of,
)
from sbbf_tool.extensions.paimon.files import FileIO, list_names, parse_file
from sbbf_tool.extensions.paimon.index_container import Container, parse_container
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.extensions.paimon.reports import PaimonVerifyReport, VerifiedColumn, VerifiedFile
from sbbf_tool.extensions.paimon.table import (
    NONE,
    FileIndex,
    IndexedFile,
    PaimonTable,
    find_index,
    find_table_around,
    open_table,
)
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    TableSchema,
    indexed_type,
    parse_indexed_column,
)
from sbbf_tool.file.distinct import deduplicate
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.running.table import read_metadata
from sbbf_tool.storage.folders import LocalFolders

SAMPLE = 256
"""Number of excluded values that are enough to find a cause."""
_LEAST_VALUES = 4
"""Distinct values without which no cause is given."""
_CHANCE = 1e-6
"""The probability of a wrong cause that is accepted."""
_UNITS = {
    HashForm.DATE: (86_400, 86_400_000, 86_400_000_000),
    HashForm.TIME: (1_000, 1_000_000),
    HashForm.MILLIS: (1_000, 1_000_000),
    HashForm.MICROS: (1_000,),
}
"""The factors from the unit of Paimon's key to finer units."""
_COARSER = {HashForm.MILLIS: (1_000,), HashForm.MICROS: (1_000, 1_000_000)}
_MASK = (1 << 64) - 1


def find_cause(bloom: BloomFilter64, keys: Keys, data_type: DataType) -> str | None:
    """Return how the filter holds the excluded values with these keys, in words; None if that is
    unknown."""
    hashes = hash_keys(keys)
    reverse = BloomFilter64(
        np.packbits(np.unpackbits(bloom.bits, bitorder="little"), bitorder="big"), bloom.k
    )
    swap: Hashes = (hashes << np.uint64(32)) | (hashes >> np.uint64(32))
    candidates = [
        ("the bits of each byte are in reverse order", reverse, hashes),
        ("the two halves of each hash are swapped", bloom, swap),
    ]
    encodings = (
        _hash_texts(keys)
        if isinstance(keys, list)
        else _hash_longs(keys.tolist(), key_of(data_type))
    )
    candidates += [
        (f"the values were hashed as {how}", bloom, encoding) for how, encoding in encodings
    ]
    for cause, candidate, repeated_hashes in candidates:
        other_hashes = deduplicate(repeated_hashes)
        is_certain = (
            len(other_hashes) >= _LEAST_VALUES
            and candidate.estimate_fpp() ** len(other_hashes) < _CHANCE
        )
        if is_certain and candidate.contains(other_hashes).all():
            return cause
    return None


def _hash_texts(texts: Sequence[bytes]) -> Iterator[tuple[str, Hashes]]:
    yield (
        "bytes after their length",
        hash_bytes(len(text).to_bytes(4, "little") + text for text in texts),
    )
    yield (
        "UTF-16",
        hash_bytes(text.decode("utf-8", "replace").encode("utf-16-le") for text in texts),
    )


def _hash_longs(keys: Sequence[int], kind: HashForm | None) -> Iterator[tuple[str, Hashes]]:
    def wang(convert: Callable[[int], int]) -> Hashes:
        return hash_longs(np.array([to_int64(convert(key)) for key in keys], np.int64))

    def xxh64(convert: Callable[[int], bytes]) -> Hashes:
        return hash_bytes(map(convert, keys))

    yield "their decimal text", xxh64(lambda key: str(key).encode())
    yield (
        "bytes with XXH64, as in Parquet, 8 bytes each",
        xxh64(lambda key: (key & _MASK).to_bytes(8, "little")),
    )
    yield (
        "bytes with XXH64, as in Parquet, 4 bytes each",
        xxh64(lambda key: (key & 0xFFFF_FFFF).to_bytes(4, "little")),
    )
    yield (
        "bytes with XXH64, 8 bytes each, highest first",
        xxh64(lambda key: (key & _MASK).to_bytes(8, "big")),
    )
    yield (
        "bytes with XXH64, 4 bytes each, highest first",
        xxh64(lambda key: (key & 0xFFFF_FFFF).to_bytes(4, "big")),
    )
    yield "unsigned numbers of 32 bits", wang(lambda key: key & 0xFFFF_FFFF)
    for factor in _UNITS.get(kind, ()) if kind is not None else ():
        yield (
            f"numbers of a unit {factor:,} times finer than Paimon's",
            wang(lambda key, factor=factor: key * factor),
        )  # type: ignore[misc]
    for factor in _COARSER.get(kind, ()) if kind is not None else ():
        yield (
            f"numbers of a unit {factor:,} times coarser than Paimon's",
            wang(lambda key, factor=factor: key // factor),
        )  # type: ignore[misc]


_EXAMPLES = 5


def verify_index(
    table: PaimonTable, live: IndexedFile, index: FileIndex, max_page_bytes: MaxPageBytes
) -> VerifiedFile:
    """Verify the index of a data file of a table."""
    if index.container is None:
        return VerifiedFile(
            live.file.name, index.place, (), index.problem if index.place != NONE else None
        )
    if live.outside is not None:
        return VerifiedFile(live.file.name, index.place, (), live.outside)
    try:
        data = read_metadata(table.files, live.path)
        columns = verify_container(
            index.container, data, live.path, table.schema_of(live.file), max_page_bytes
        )
    except (UnreadableError, UsageError, OversizedPageError) as error:
        return VerifiedFile(live.file.name, index.place, (), str(error))
    return VerifiedFile(live.file.name, index.place, columns)


def verify_container(
    container: Container,
    data: bytes,
    name: str,
    schema: TableSchema | None,
    max_page_bytes: MaxPageBytes = None,
) -> tuple[VerifiedColumn, ...]:
    """Verify every filter of a container against the bytes of a data file; the file name determines
    the format, `schema` the types.

    A column that cannot be verified has a `problem`; if the data file cannot be read, all columns
    have one.
    """
    columns = [
        column
        for column, kinds in container.indexes.items()
        if KIND in kinds or any(entry.empty for entry in kinds.values())
    ]
    return tuple(
        _verify_column(container, column, data, name, schema, max_page_bytes) for column in columns
    )


def _verify_column(
    container: Container,
    column: str,
    data: bytes,
    name: str,
    schema: TableSchema | None,
    max_page_bytes: MaxPageBytes,
) -> VerifiedColumn:
    indexed = parse_indexed_column(column)
    try:
        source = hash_columns(data, name, {indexed: indexed_type(schema, indexed)}, max_page_bytes)
        tally = _ValueCounts(_read_filter(container, column))
        for batch in source.batches:
            tally.add(batch[indexed])
    except (UnreadableError, UsageError) as error:
        return VerifiedColumn(column, 0, 0, 0, (), str(error))
    return tally.build_result(column, source.types[indexed])


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
        missing = (
            (~self.bloom.contains(part.hashes)).nonzero()[0]
            if self.bloom
            else range(len(part.hashes))
        )
        if len(missing) and self.false_negatives < SAMPLE:
            sample = [int(at) for at in missing[: SAMPLE - self.false_negatives]]
            self._sample.append(
                [part.keys[at] for at in sample]
                if isinstance(part.keys, list)
                else part.keys[sample]
            )
        self.false_negatives += len(missing)
        self.examples += (
            _format_value(part.values[int(at)]) for at in missing[: _EXAMPLES - len(self.examples)]
        )

    def build_result(self, column: str, data_type: DataType) -> VerifiedColumn:
        cause = (
            find_cause(self.bloom, _join(self._sample), data_type)
            if self.bloom is not None and self._sample
            else None
        )
        return VerifiedColumn(
            column, self.rows, self.nulls, self.false_negatives, tuple(self.examples), cause=cause
        )


def _join(keys: list[Keys]) -> Keys:
    texts = [each for each in keys if isinstance(each, list)]
    return (
        [text for each in texts for text in each]
        if texts
        else np.concatenate([each for each in keys if not isinstance(each, list)])
    )


def _format_value(value: Any) -> str:
    """Format a value from the reader for display; bytes that are UTF-8 become text."""
    try:
        plain = value.as_py() if hasattr(value, "as_py") else value
        return plain.decode() if isinstance(plain, bytes) else str(plain)
    except UnicodeDecodeError as error:
        return f"0x{error.object.hex()}"
    except (ValueError, OverflowError):
        return "a value that cannot be formatted"


def verify_paimon(
    target: str | os.PathLike[str],
    data_file: str | os.PathLike[str] | None = None,
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    max_page_bytes: MaxPageBytes = None,
    files: FileIO | None = None,
) -> PaimonVerifyReport:
    """Verify every index of a table, or one `.index` file against `data_file`, by default the one
    that the index name refers to.

    The types of a single file come from its table or, without one, from the file. Files outside the
    directory of the table are read only with `allow_outside`.

    Raises UnreadableError if the target is neither a table nor an index, or an `.index` file or its
    data file cannot be read; RefusedError if the header of a Parquet page in that data file states
    more than `max_page_bytes` uncompressed bytes.
    """
    path, files = os.fsdecode(target), files or LocalFolders()
    if not path.endswith(INDEX_SUFFIX) and data_file is None:
        table = open_table(
            files, path, snapshot=snapshot, branch=branch, allow_outside=allow_outside
        )
        verified = (
            verify_index(table, live, find_index(table.files, live), max_page_bytes)
            for live in table.live_files
        )
        return PaimonVerifyReport(table.path, tuple(verified))
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=path)
    data_path = data_file_of(path) if data_file is None else os.fsdecode(data_file)
    name = os.path.basename(data_path)
    if data_file is None and name not in list_names(files, os.path.dirname(data_path) or "."):
        raise UsageError(
            f"its data file {name} does not exist beside it", file=path, hint="name the data file"
        )
    container = parse_file(files, path, parse_container)
    table_and_file = find_table_around(files, data_path)
    schema = (
        table_and_file[0].schema_of(table_and_file[1].file) if table_and_file is not None else None
    )
    with ErrorPlace(data_path):
        columns = verify_container(
            container, read_metadata(files, data_path), data_path, schema, max_page_bytes
        )
    return PaimonVerifyReport(path, (VerifiedFile(data_path, "file", columns),))
