"""Verify that an index has no false negatives: query its filters for every value of the data file.

All k bits are checked, so that a filter that passes is safe for readers that check fewer.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sbbf_tool.errors import ErrorPlace, OversizedPageError, UnreadableError, UsageError
from sbbf_tool.extensions.paimon.bloom64 import KIND, MAX_PROBES, BloomFilter64, parse_bloom64
from sbbf_tool.extensions.paimon.bloom64_spec import to_int64
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
from sbbf_tool.extensions.paimon.file_in_table import find_table_around
from sbbf_tool.extensions.paimon.files import FileIO, is_listed, parse_file
from sbbf_tool.extensions.paimon.index_container import Container, IndexEntry, parse_container
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.extensions.paimon.reports import PaimonVerifyReport, VerifiedColumn, VerifiedFile
from sbbf_tool.extensions.paimon.table import (
    FILE,
    FileIndex,
    IndexedFile,
    PaimonTable,
    find_index,
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
_FINER = {
    HashForm.DATE: (86_400, 86_400_000, 86_400_000_000),
    HashForm.TIME: (1_000, 1_000_000),
    HashForm.MILLIS: (1_000, 1_000_000),
    HashForm.MICROS: (1_000,),
}
"""The factors from the unit of Paimon's key to finer units."""
_COARSER = {HashForm.MILLIS: (1_000,), HashForm.MICROS: (1_000, 1_000_000)}
"""The factors from coarser units to the unit of Paimon's key."""
_LOW_32 = (1 << 32) - 1


def find_cause(bloom: BloomFilter64, keys: Keys, data_type: DataType) -> str | None:
    """Return how the filter holds the excluded values with these keys, in words.

    Return None if that is unknown.
    """
    for cause, candidate, repeated_hashes in _list_causes(bloom, keys, data_type):
        hashes = deduplicate(repeated_hashes)
        if len(hashes) < _LEAST_VALUES:
            continue
        chance = candidate.estimate_fpp() ** len(hashes)
        if chance < _CHANCE and candidate.contains(hashes).all():
            return cause
    return None


def _list_causes(
    bloom: BloomFilter64, keys: Keys, data_type: DataType
) -> Iterator[tuple[str, BloomFilter64, Hashes]]:
    """Yield causes in words, each with the filter and the hashes that would then be right."""
    hashes = hash_keys(keys)
    bits = np.unpackbits(bloom.bits, bitorder="little")
    reverse = BloomFilter64(np.packbits(bits, bitorder="big"), bloom.k)
    yield "the bits of each byte are in reverse order", reverse, hashes
    swap: Hashes = (hashes << np.uint64(32)) | (hashes >> np.uint64(32))
    yield "the two halves of each hash are swapped", bloom, swap
    if isinstance(keys, list):
        encodings = _hash_texts(keys)
    else:
        encodings = _hash_longs(keys.tolist(), key_of(data_type))
    for encoding, other_hashes in encodings:
        yield f"the values were hashed as {encoding}", bloom, other_hashes


def _hash_texts(texts: Sequence[bytes]) -> Iterator[tuple[str, Hashes]]:
    """Yield other encodings of texts than Paimon's, with the hashes in each."""
    prefixed = [len(text).to_bytes(4, "little") + text for text in texts]
    yield "bytes after their length", hash_bytes(prefixed)
    utf16 = [text.decode("utf-8", "replace").encode("utf-16-le") for text in texts]
    yield "UTF-16", hash_bytes(utf16)


def _hash_longs(keys: Sequence[int], kind: HashForm | None) -> Iterator[tuple[str, Hashes]]:
    """Yield other encodings of numbers than Paimon's, with the hashes in each."""
    yield "their decimal text", hash_bytes([str(key).encode() for key in keys])
    yield "bytes with XXH64, as in Parquet, 8 bytes each", _hash_fixed(keys, 8, "little")
    yield "bytes with XXH64, as in Parquet, 4 bytes each", _hash_fixed(keys, 4, "little")
    yield "bytes with XXH64, 8 bytes each, highest first", _hash_fixed(keys, 8, "big")
    yield "bytes with XXH64, 4 bytes each, highest first", _hash_fixed(keys, 4, "big")
    yield "unsigned numbers of 32 bits", _hash_wrapped([key & _LOW_32 for key in keys])
    if kind is None:
        return
    for factor in _FINER.get(kind, ()):
        finer = _hash_wrapped([key * factor for key in keys])
        yield f"numbers of a unit {factor:,} times finer than Paimon's", finer
    for factor in _COARSER.get(kind, ()):
        coarser = _hash_wrapped([key // factor for key in keys])
        yield f"numbers of a unit {factor:,} times coarser than Paimon's", coarser


def _hash_fixed(keys: Sequence[int], size: int, order: Literal["little", "big"]) -> Hashes:
    """Compute XXH64 of the low `size` bytes of each key."""
    mask = (1 << 8 * size) - 1
    return hash_bytes([(key & mask).to_bytes(size, order) for key in keys])


def _hash_wrapped(keys: Iterable[int]) -> Hashes:
    """Compute Paimon's hash of the low 64 bits of each key."""
    wrapped_keys = [to_int64(key) for key in keys]
    return hash_longs(np.array(wrapped_keys, np.int64))


_EXAMPLES = 5


def verify_index(
    table: PaimonTable, live: IndexedFile, index: FileIndex, max_page_bytes: MaxPageBytes
) -> VerifiedFile:
    """Verify the index of a data file of a table."""
    problem = live.outside
    columns: tuple[VerifiedColumn, ...] = ()
    if index.container is None:
        problem = index.problem
    elif problem is None:
        schema = table.schema_of(live.file)
        try:
            data = read_metadata(table.files, live.path)
            columns = verify_container(index.container, data, live.path, schema, max_page_bytes)
        except (UnreadableError, UsageError, OversizedPageError) as error:
            problem = str(error)
    return VerifiedFile(live.file.name, index.place, columns, problem)


def verify_container(
    container: Container,
    data: bytes,
    name: str,
    schema: TableSchema | None,
    max_page_bytes: MaxPageBytes,
) -> tuple[VerifiedColumn, ...]:
    """Verify every filter of a container against the bytes of a data file.

    The file name determines the format, and `schema` the types. A column that cannot be verified
    has a `problem`; if the data file cannot be read, all columns have one.
    """
    columns = []
    for column, kinds in container.indexes.items():
        if KIND in kinds or _is_empty(kinds):
            columns.append(_verify_column(container, column, data, name, schema, max_page_bytes))
    return tuple(columns)


def _is_empty(kinds: Mapping[str, IndexEntry]) -> bool:
    """Return whether one of the indexes of a column is EMPTY."""
    return any(entry.empty for entry in kinds.values())


def _verify_column(
    container: Container,
    column: str,
    data: bytes,
    name: str,
    schema: TableSchema | None,
    max_page_bytes: MaxPageBytes,
) -> VerifiedColumn:
    from sbbf_tool.extensions.paimon.data_file import hash_columns  # which loads pyarrow.parquet

    indexed = parse_indexed_column(column)
    types = {indexed: indexed_type(schema, indexed)}
    try:
        source = hash_columns(data, name, types, max_page_bytes)
        tally = _ValueCounts(_read_filter(container, column))
        for batch in source.batches:
            tally.add(batch[indexed])
    except (UnreadableError, UsageError) as error:
        return VerifiedColumn(column, 0, 0, 0, (), str(error))
    return tally.build_result(column, source.types[indexed])


def _read_filter(container: Container, column: str) -> BloomFilter64 | None:
    """Return the filter of a column; None for an EMPTY index."""
    kinds = container.indexes[column]
    if _is_empty(kinds):
        return None
    bloom = parse_bloom64(container.body_of(kinds[KIND]))
    if bloom.k > MAX_PROBES:
        raise UsageError(f"k = {bloom.k} is above {MAX_PROBES}, so the filter cannot be verified")
    return bloom


class _ValueCounts:
    """Counts of the values of a column that were checked so far."""

    def __init__(self, bloom: BloomFilter64 | None) -> None:
        self.bloom = bloom
        self.rows = 0
        self.nulls = 0
        self.false_negatives = 0
        self.examples: list[str] = []
        self._sample: list[Keys] = []
        """Keys of some false negatives."""

    def add(self, part: HashBatch) -> None:
        self.rows += part.rows
        self.nulls += part.nulls
        if self.bloom is None:
            missing = np.arange(len(part.hashes))
        else:
            is_missing = ~self.bloom.contains(part.hashes)
            missing = is_missing.nonzero()[0]
        if len(missing) and self.false_negatives < SAMPLE:
            sample = missing[: SAMPLE - self.false_negatives]
            self._sample.append(_take_keys(part.keys, sample))
        for at in missing[: _EXAMPLES - len(self.examples)]:
            self.examples.append(_format_value(part.values[int(at)]))
        self.false_negatives += len(missing)

    def build_result(self, column: str, data_type: DataType) -> VerifiedColumn:
        cause = None
        if self.bloom is not None and self._sample:
            cause = find_cause(self.bloom, _join_keys(self._sample), data_type)
        return VerifiedColumn(
            column=column,
            rows=self.rows,
            nulls=self.nulls,
            false_negatives=self.false_negatives,
            examples=tuple(self.examples),
            cause=cause,
        )


def _take_keys(keys: Keys, positions: NDArray[np.int64]) -> Keys:
    if isinstance(keys, list):
        return [keys[at] for at in positions]
    return keys[positions]


def _join_keys(parts: Iterable[Keys]) -> Keys:
    """Join parts, which are all bytes or all integers."""
    texts = []
    arrays = []
    for part in parts:
        if isinstance(part, list):
            texts += part
        else:
            arrays.append(part)
    return np.concatenate(arrays) if arrays else texts


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
    path = os.fsdecode(target)
    files = files or LocalFolders()
    if not path.endswith(INDEX_SUFFIX) and data_file is None:
        table = open_table(
            files, path, snapshot=snapshot, branch=branch, allow_outside=allow_outside
        )
        verified = []
        for live in table.live_files:
            index = find_index(table.files, live)
            verified.append(verify_index(table, live, index, max_page_bytes))
        return PaimonVerifyReport(table.path, tuple(verified))
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=path)
    data_path = _find_data_file(files, path) if data_file is None else os.fsdecode(data_file)
    return _verify_index_file(files, path, data_path, max_page_bytes)


def _find_data_file(files: FileIO, path: str) -> str:
    """Return the path of the data file that an index file is beside."""
    data_path = data_file_of(path)
    if not is_listed(files, data_path):
        raise UsageError(
            f"its data file {os.path.basename(data_path)} does not exist beside it",
            file=path,
            hint="name the data file",
        )
    return data_path


def _verify_index_file(
    files: FileIO, path: str, data_path: str, max_page_bytes: MaxPageBytes
) -> PaimonVerifyReport:
    container = parse_file(files, path, parse_container)
    table_and_file = find_table_around(files, data_path)
    schema = table_and_file.schema if table_and_file is not None else None
    with ErrorPlace(data_path):
        data = read_metadata(files, data_path)
        columns = verify_container(container, data, data_path, schema, max_page_bytes)
    return PaimonVerifyReport(path, (VerifiedFile(data_path, FILE, columns),))
