"""Construction of filters from the values of column chunks, and their verification: several chunks
concurrently, in bounded memory.

A filter is verified in the written file, against the same values from which it was built
(`stored_values`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.bloom.hashing import Hashes, hash_value
from sbbf_tool.errors import LockedError, RefusedError, SbbfError
from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.file.cross_check import NO_FINDING, CrossChecks, Verdict
from sbbf_tool.file.doubts import doubt_of_variant
from sbbf_tool.file.parallel import Meter, in_parallel
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column, ensure_readable
from sbbf_tool.parquet.patch import Bytes, Patch, Piece
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.parquet.statistics import NO_ROW_LOST, StatisticsCheck
from sbbf_tool.query_engines.uses import harm_in
from sbbf_tool.reports.change import BuiltFilter, RemovedFilter
from sbbf_tool.storage.interrupts import ensure_uninterrupted
from sbbf_tool.storage.spool import Spool

_FILTER_BYTES_PER_CHUNK_BYTE = 64
"""Filter bytes per chunk byte: more than distinct values need in any encoding, except constant
steps, whose chunks are read twice."""


class NewFilter(Frozen):
    """A filter, the number of inserted values, and the bytes that were read from the file to build
    it."""

    bloom: BloomFilter
    values: int
    bytes_read: int
    verdict: Verdict = NO_FINDING


class SpooledFilter(Frozen):
    """A filter that is no longer in memory: the figures for its report, and where its bytes are."""

    pieces: tuple[Piece, ...]
    """Header and bitset as stored."""
    num_bytes: int
    fpp: float
    estimated_ndv: float
    checksum: int
    """Checksum of the bitset, to compare the written bitset with the one that was built."""
    values: int = 0
    bytes_read: int = 0
    verdict: Verdict = NO_FINDING

    @classmethod
    def of(cls, new_filter: NewFilter, spool: Spool, pieces: tuple[Bytes, ...]) -> SpooledFilter:
        """Put the `pieces` of `new_filter` into the spool. Raises WriteError."""
        bloom = new_filter.bloom
        return cls(
            tuple(map(spool.append, pieces)),
            bloom.num_bytes,
            bloom.fpp,
            bloom.estimated_ndv,
            checksum_of(bloom),
            new_filter.values,
            new_filter.bytes_read,
            new_filter.verdict,
        )


def checksum_of(bloom: BloomFilter) -> int:
    """Return the checksum with which bitsets are compared."""
    return hash_value(bloom.bitset)


def report_of(
    file: ParquetFile, patch: Patch, key: ChunkKey, spooled_filter: SpooledFilter
) -> BuiltFilter:
    """Build the report of a filter that `patch` writes."""
    ndv = spooled_filter.estimated_ndv
    place = patch.places[key]
    assert place.length is not None
    return BuiltFilter(
        row_group=key[0],
        column=file.footer.columns[key[1]].name,
        values=spooled_filter.values,
        estimated_ndv=None if math.isinf(ndv) else ndv,
        offset=place.offset,
        header_bytes=place.length - spooled_filter.num_bytes,
        bitset_bytes=spooled_filter.num_bytes,
        fpp=spooled_filter.fpp,
    )


def report_filters(
    file: ParquetFile, patch: Patch, filters: Mapping[ChunkKey, SpooledFilter]
) -> Iterator[BuiltFilter]:
    """Yield the reports of filters that `patch` writes, row group by row group."""
    for key in sorted(filters):
        yield report_of(file, patch, key, filters[key])


def report_removals(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[RemovedFilter]:
    """Yield the reports of filters that are removed, row group by row group."""
    for row_group, column in sorted(keys):
        yield RemovedFilter(row_group, file.footer.columns[column].name)


class HashMemory:
    """The hashes from which filters were built, kept in bounded memory so that verification need
    not read pages again.

    If the hashes of a chunk do not fit, none of them are kept, and the chunk is read again. Hashes
    are removed when their chunk is verified.
    """

    MOST_BYTES = 96 << 20

    def __init__(self) -> None:
        self._free_bytes = self.MOST_BYTES
        self._runs: dict[ChunkKey, list[memoryview]] = {}
        self._dropped_chunks: set[ChunkKey] = set()
        self._lock = Lock()

    def keep(self, key: ChunkKey, hashes: memoryview) -> None:
        """Keep one run of a chunk's hashes; if it does not fit, discard all runs of the chunk."""
        with self._lock:
            if key in self._dropped_chunks:
                return
            if hashes.nbytes > self._free_bytes:
                self._dropped_chunks.add(key)
                self._free_bytes += sum(run.nbytes for run in self._runs.pop(key, ()))
                return
            self._free_bytes -= hashes.nbytes
            self._runs.setdefault(key, []).append(hashes)

    def of(self, key: ChunkKey) -> list[memoryview] | None:
        """Return all runs of a chunk, or None if they must be read again."""
        return self._runs.get(key)

    def forget(self, key: ChunkKey) -> None:
        with self._lock:
            self._free_bytes += sum(run.nbytes for run in self._runs.pop(key, ()))


def chunk_bytes(file: ParquetFile, key: ChunkKey) -> int:
    """Return the compressed bytes of a chunk's pages, from the footer."""
    return file.footer.chunk_meta(*key).bytes


def sum_chunk_bytes(file: ParquetFile, keys: Iterable[ChunkKey]) -> int:
    """Return the compressed bytes of the pages of these chunks."""
    return sum(chunk_bytes(file, key) for key in keys)


def columns_of(keys: Iterable[ChunkKey]) -> list[int]:
    """Return the indexes of the columns of these chunks, in the order of the file."""
    return sorted({column for _, column in keys})


def ensure_buildable(
    file: ParquetFile, row_group: int, column: Column, engines: Iterable[str] = ()
) -> None:
    """Ensure that a filter can be built for a chunk of `column`, as far as the footer shows it.

    Raises RefusedError if no chunk of the column should get a filter, because it is of no use or
    harms one of `engines`, or if this chunk must get none; LockedError if its key is missing;
    UnreadableError if its type is not that of its column, or not known.
    """
    _ensure_filter_makes_sense(file, column, engines)
    _ensure_chunk_may_have_filter(file, row_group, column)
    here = place_of(file, (row_group, column.index))
    with file.locate_errors(here):
        file.footer.ensure_type(row_group, column)
        ensure_readable(column, here)


def _ensure_chunk_may_have_filter(file: ParquetFile, row_group: int, column: Column) -> None:
    """Raise RefusedError if a filter of the chunk would leak its values (LockedError), lose rows
    that hold a value in another column, or belong to another file."""
    here = place_of(file, (row_group, column.index))
    if file.encryption_of(row_group, column):
        hint = (
            "a plaintext filter would leak its values; give the key of column "
            f"{column.name} to build an encrypted filter"
        )
        raise LockedError("the column is encrypted", file=file.name, place=here, hint=hint)
    doubt = doubt_of_variant(file, row_group, column)
    if doubt:
        raise RefusedError(
            f"no reader may skip rows by a filter of the column: {doubt}",
            file=file.name,
            place=here,
            hint="leave it out",
        )
    other_file = file.footer.chunk_meta(row_group, column.index).external
    if other_file:
        raise RefusedError(
            "its pages are in another file",
            file=file.name,
            place=here,
            hint=f"add the filter to {other_file}",
        )


def _ensure_filter_makes_sense(file: ParquetFile, column: Column, engines: Iterable[str]) -> None:
    """Raise RefusedError if a filter of the column, in whichever row group, is of no use or harms
    one of `engines`."""
    place = f"column {column.name}"
    if column.physical == "BOOLEAN":
        raise RefusedError(
            "a BOOLEAN column cannot have a filter: parquet-java writes and expects an empty "
            "one, and a filter for two values skips almost nothing",
            file=file.name,
            place=place,
            hint="leave the column out",
        )
    form = equals.interval_form(file.footer, column)
    if form not in (None, equals.INTERVAL_FORM):
        raise RefusedError(
            f"the file marks its INTERVAL filters as {form!r}, a form of values that sbbf does "
            "not know",
            file=file.name,
            place=place,
            hint="leave the column out",
        )
    if not engines:
        return
    harm = harm_in(file.footer, column, engines)
    if harm is not None:
        hint = "leave the column out, or name only engines that use such filters well"
        raise RefusedError(harm, file=file.name, place=place, hint=hint)


def build_filters(
    file: ParquetFile,
    sizes: Mapping[ChunkKey, Sizing],
    spool: Spool,
    jobs: int | None,
    meter: Meter,
    checks: CrossChecks,
) -> dict[ChunkKey, SpooledFilter]:
    """Build and verify the filter of each chunk, `jobs` chunks concurrently (if None, one per
    core).

    Only the filters of these `jobs` chunks are in memory; the spool has the others. Raises
    UnreadableError, WriteError, and RefusedError if `checks` finds misread values.
    """
    memory = HashMemory()

    def build(key: ChunkKey) -> SpooledFilter:
        new_filter = build_filter(file, key, sizes[key], checks, memory)
        meter.advance(f"reading {file.footer.columns[key[1]].name}", chunk_bytes(file, key))
        return SpooledFilter.of(new_filter, spool, file.filter_parts(*key, new_filter.bloom.bitset))

    return in_parallel(build, sizes, jobs)


def build_filter(
    file: ParquetFile, key: ChunkKey, target: Sizing, checks: CrossChecks, memory: HashMemory
) -> NewFilter:
    """Build the filter of one chunk from values that `checks` verifies, and query it for each.
    Raises UnreadableError, RefusedError."""
    with file.locate_errors(lambda: place_of(file, key)):
        new_filter = _build(file, key, target, checks, memory)
        false_negatives = _count_missing(file, key, new_filter.bloom, memory)
    memory.forget(key)
    if false_negatives:
        raise mistake(
            file,
            f"{false_negatives} values of {place_of(file, key)} are absent from the new filter",
        )
    return new_filter


def place_of(file: ParquetFile, key: ChunkKey) -> str:
    return f"column {file.footer.columns[key[1]].name}, row group {key[0]}"


def mistake(file: ParquetFile, problem: str) -> SbbfError:
    """Return the error for a filter or a new file that differs from its plan."""
    return SbbfError(
        f"nothing was changed: {problem}",
        file=file.name,
        hint="this is a bug in sbbf or a disk fault; please report it",
    )


def statistics_warnings(
    file: ParquetFile, filters: Mapping[ChunkKey, SpooledFilter]
) -> Iterator[str]:
    """Yield warnings about the chunks whose statistics are wrong."""
    for key in sorted(filters):
        statistics = filters[key].verdict.wrong_statistics
        facts = [fact for fact in statistics if not fact.endswith(NO_ROW_LOST)]
        if facts:
            yield (
                f"{place_of(file, key)}: its statistics are wrong ({'; '.join(facts)}), so "
                "readers that prune by them lose rows: rewrite the file"
            )


def _count_missing(file: ParquetFile, key: ChunkKey, bloom: BloomFilter, memory: HashMemory) -> int:
    """Count the values of a chunk that its filter excludes; the values are read again unless
    `memory` has their hashes."""
    runs: Iterable[Hashes] | None = memory.of(key)
    if runs is None:
        runs = StoredValues(file, key).hashes()
    return sum(map(bloom.count_missing, runs))


def _build(
    file: ParquetFile, key: ChunkKey, target: Sizing, checks: CrossChecks, memory: HashMemory
) -> NewFilter:
    """Build the filter of a column chunk in a size that meets the target, and verify it against
    the values.

    `memory` keeps its hashes for the verification, as long as it has room.
    """
    ensure_uninterrupted()
    row_group, index = key
    column = file.footer.columns[index]
    with file.locate_errors(place_of(file, key)):
        file.footer.ensure_counts(row_group, column)
    check = StatisticsCheck(file.footer, row_group, column)
    values = StoredValues(file, key, check)
    distinct = None
    if values.dictionary is not None:
        distinct = len(values.dictionary)
    size = first_bytes(file, key, target, distinct)
    bloom = _insert_values(values, size, key, memory)
    if not target.is_stated:
        # Small filters vary: of those whose size is enough for the expected FPP, some need twice
        # that size, and very few more.
        size = target.bytes_for(distinct or values.count, _forms(file, key))
        size = max(size, 2 * bloom.num_bytes)
        while bloom.fpp > target.fpp and size <= target.largest:
            bloom = _insert_values(values, size, key, None)
            size = 2 * bloom.num_bytes
        bloom = bloom.fold_to_fpp(target.fpp)
    verdict = checks.verify(file, key, values, check, bloom)
    return NewFilter(bloom, values.count, values.bytes_read, verdict)


def first_bytes(
    file: ParquetFile, key: ChunkKey, target: Sizing, distinct: int | None = None
) -> int:
    """Return the size, in bytes, with which the filter of a chunk is built; the chunk has at most
    `distinct` distinct values, if given.

    The filter is folded afterwards, unless `target` fixes its size.
    """
    if distinct is None:
        distinct = file.footer.chunk_meta(*key).most_values
    size = target.bytes_for(distinct, _forms(file, key))
    if target.is_stated:
        return size
    # A filter must not take more memory than the bytes of the chunk can need, whatever number of
    # values the metadata claims.
    needed = _FILTER_BYTES_PER_CHUNK_BYTE * min(chunk_bytes(file, key), file.source.size)
    limit = max(sizing.MIN_BYTES, 1 << needed.bit_length())
    return min(size, limit)


def least_bytes(file: ParquetFile, sizes: Mapping[ChunkKey, Sizing]) -> int:
    """Return the minimum number of bytes that the filters of these chunks take."""
    least = 0
    for key, target in sizes.items():
        least += first_bytes(file, key, target) if target.is_stated else sizing.MIN_BYTES
    return least


_MOST_BESIDES = 128
"""Bytes of a filter's header, of its encryption, and of what the footer states of it."""


def most_bytes(file: ParquetFile, sizes: Mapping[ChunkKey, Sizing]) -> int:
    """Return the maximum number of bytes that filters of these chunks and a new footer add."""
    if not sizes:
        return 0
    footer_bytes = file.source.size - file.footer.start
    return footer_bytes + sum(most_filter_bytes(file, key, size) for key, size in sizes.items())


def most_filter_bytes(file: ParquetFile, key: ChunkKey, target: Sizing) -> int:
    """Return the maximum number of bytes that the filter of a chunk takes, in itself and in the
    footer: every value counts as distinct."""
    most_values = file.footer.chunk_meta(*key).most_values
    return _MOST_BESIDES + target.bytes_for(most_values, _forms(file, key))


def _forms(file: ParquetFile, key: ChunkKey) -> int:
    """Return the number of forms in which each value is inserted."""
    return equals.forms_per_value(file.footer, file.footer.columns[key[1]])


def _insert_values(
    values: StoredValues, num_bytes: int, key: ChunkKey, memory: HashMemory | None
) -> BloomFilter:
    bloom = BloomFilter.empty(num_bytes)
    for hashes in values.hashes():
        ensure_uninterrupted()
        bloom.insert_hashes(hashes)
        if memory is not None and len(hashes):
            memory.keep(key, hashes)
    return bloom
