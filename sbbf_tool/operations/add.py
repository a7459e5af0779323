"""`add_filters`: give columns of an existing file Bloom filters, without touching a data page.

    plan     which column chunks, and what is in the way
    build    read each chunk's values once; insert their hashes into a filter large enough for all of them; fold it to the error rate
    publish  old file whole + filters + new footer, to a temporary file
    verify   read that file as a stranger would: footer, headers, bitsets, and every value of every chunk against its filter
    rename   only now
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import RefusedError, SbbfError, UsageError
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.operations.targets import check_changeable, choose_columns, choose_target
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import set_filters
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append
from sbbf_tool.reports import AddReport, BuiltFilter
from sbbf_tool.storage import local

Progress = Callable[[str, int, int], None]
"""Called with what is being done, bytes done and bytes in all."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """How large a filter may become: for `fpp`, for a stated number of distinct values or, where None, for those that are found."""

    fpp: float = 0.01
    ndv: int | None = None
    max_bytes: int = sizing.MAX_BYTES

    def __post_init__(self) -> None:
        if not 0 < self.fpp < 1:
            raise UsageError(f"an error rate of {self.fpp}: it must be above 0 and below 1")
        if self.ndv is not None and self.ndv < 1:
            raise UsageError(f"{self.ndv} distinct values: it must be at least 1")
        if self.max_bytes < sizing.MIN_BYTES:
            raise UsageError(f"a limit of {self.max_bytes} bytes: filters have at least {sizing.MIN_BYTES}, or some readers fail")

    def bytes_for(self, values: int) -> int:
        """Bytes to start with for a chunk of `values` values: a power of two within the limits."""
        largest = 1 << min(self.max_bytes, sizing.MAX_BYTES).bit_length() - 1
        return min(sizing.bytes_for(max(1, self.ndv or values), self.fpp), largest)


def add_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    fpp: float = 0.01,
    ndv: int | None = None,
    max_bytes: int | None = None,
    replace: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    progress: Progress | None = None,
) -> AddReport:
    """Add a filter to every row group of `columns`, writing to `output` or `in_place`.

    `fpp` is the share of absent values that may pass; the size follows from the values themselves, or from `ndv`, and stays within
    `max_bytes`. A filter that is there already is kept unless `replace`. Raises RefusedError where the change would be unsafe (the
    message says what would make it safe), UnreadableError, UsageError, WriteError; the old file is whole in every case.
    """
    wish = Sizing(fpp, ndv, sizing.MAX_BYTES if max_bytes is None else max_bytes)
    target = os.fspath(path) if dry_run else choose_target(path, output, in_place, allow_table_files)
    with ParquetFile.open(path) as file:
        chosen = _plan(file, columns, replace)
        report = _Meter(progress, _data_bytes(file, chosen) * (1 if dry_run else 2))
        built = {key: _build(file, *key, wish, report) for key in _keys(file, chosen)}
        patch = plan_append(
            file.footer,
            file.source.size,
            {key: (build_header(bloom.num_bytes), bloom.bitset) for key, (bloom, _) in built.items()},
        )
        warnings: list[str] = []
        if not dry_run:
            warnings += local.replace(
                file.source, target, patch.keep, patch.pieces, lambda written: _verify(file, written, patch, report)
            )
        warnings += _size_warnings(file, wish, built)
        return AddReport(
            file=file.name,
            output=target,
            dry_run=dry_run,
            old_bytes=file.source.size,
            new_bytes=patch.size,
            filters=tuple(_built_report(file, patch, key, *built[key]) for key in sorted(built)),
            data_bytes_read=_data_bytes(file, chosen),
            warnings=tuple(warnings),
        )


class _Meter:
    """Counts the bytes of column chunks that were worked through, for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def advance(self, what: str, size: int) -> None:
        self._done += size
        if self._progress is not None:
            self._progress(what, self._done, self._total)


def _keys(file: ParquetFile, columns: list[Column]) -> Iterator[ChunkKey]:
    for row_group in range(file.footer.num_row_groups):
        for column in columns:
            yield row_group, column.index


def _data_bytes(file: ParquetFile, columns: list[Column]) -> int:
    return sum(_chunk_bytes(file, key) for key in _keys(file, columns))


def _chunk_bytes(file: ParquetFile, key: ChunkKey) -> int:
    meta = file.footer.chunk(*key)
    return max(0, meta.total_compressed_size or 0) if meta is not None else 0


def _plan(file: ParquetFile, names: Iterable[str], replace: bool) -> list[Column]:
    """The chosen columns, once nothing is in the way. Raises RefusedError."""
    check_changeable(file)
    chosen = choose_columns(file, names)
    if not chosen:
        raise UsageError("no column was named", file=file.name)
    for column in chosen:
        place = f"column {column.name}"
        if column.physical == "BOOLEAN":
            raise RefusedError(
                "BOOLEAN columns get no filter: parquet-java writes and expects an empty one, and two values prune nothing",
                file=file.name,
                place=place,
                hint="leave the column out",
            )
        if column.logical is not None and column.logical.kind == "INTERVAL" and _marks_intervals(file):
            raise RefusedError(
                "DuckDB marked this file's INTERVAL filters as holding normalised values too, which these would not",
                file=file.name,
                place=place,
                hint="leave the column out",
            )
        for row_group in range(file.footer.num_row_groups):
            chunk = file.footer.metadata.row_groups[row_group].columns[column.index]
            here = f"{place}, row group {row_group}"
            if file.encryption_of(row_group, column):
                raise RefusedError("the column is encrypted", file=file.name, place=here, hint="a filter in the clear would leak it")
            if chunk.file_path:
                raise RefusedError("its pages are in another file", file=file.name, place=here, hint=f"add the filter to {chunk.file_path}")
            if file.footer.filter_place(row_group, column.index) is not None and not replace:
                raise RefusedError("it has a filter already", file=file.name, place=here, hint="replace it with --replace")
    return chosen


def _marks_intervals(file: ParquetFile) -> bool:
    return any(entry.key == "duckdb.interval_bloom_filter" for entry in file.footer.metadata.key_value_metadata or ())


def _build(file: ParquetFile, row_group: int, column_index: int, wish: Sizing, meter: _Meter) -> tuple[BloomFilter, int]:
    """The filter of one chunk and the number of values that went in."""
    from sbbf_tool.parquet.values import read_chunk

    column = file.footer.columns[column_index]
    meta = file.footer.chunk(row_group, column_index)
    assert meta is not None
    nulls = (meta.statistics.null_count or 0) if meta.statistics else 0
    bloom = BloomFilter.empty(wish.bytes_for((meta.num_values or 0) - nulls))
    count = 0
    with file.named():
        for values in read_chunk(file.source.open_arrow, file.footer, row_group, column):
            bloom.insert_hashes(values.hashes())
            for plain in values.equals_of_stored():
                bloom.insert(plain)
            count += len(values)
    meter.advance(f"reading {column.name}", meta.total_compressed_size or 0)
    return (bloom if wish.ndv else bloom.fold_to_fpp(wish.fpp)), count


def _verify(file: ParquetFile, written: local.LocalSource, patch: Patch, meter: _Meter) -> None:
    """Read the new file as a stranger would and compare it with what was meant. Raises SbbfError; then nothing is published."""
    from sbbf_tool.parquet.values import read_chunk

    fresh = ParquetFile(written)
    bare: Mapping[ChunkKey, None] = dict.fromkeys(patch.places)
    if set_filters(fresh.footer.raw, bare) != set_filters(file.footer.raw, bare):
        raise _mistake(file, "the new footer differs from the old one in more than the filters' places")
    for (row_group, column_index), place in patch.places.items():
        column = fresh.footer.columns[column_index]
        stored = fresh.stored_filter(row_group, column)
        if stored is None or stored.place != place or stored.oddities() or stored.header.beyond_us:
            raise _mistake(file, f"the filter of column {column.name}, row group {row_group} is not where it should be")
        bloom = BloomFilter(written.read(stored.bitset_offset, stored.header.num_bytes))
        for values in read_chunk(written.open_arrow, fresh.footer, row_group, column):
            missed = bloom.count_missing(values.hashes())
            if missed:
                raise _mistake(file, f"{missed} values of column {column.name}, row group {row_group} are absent from the new filter")
        meter.advance(f"verifying {column.name}", _chunk_bytes(fresh, (row_group, column_index)))


def _mistake(file: ParquetFile, what: str) -> SbbfError:
    return SbbfError(f"nothing was changed: {what}", file=file.name, hint="this is a defect of sbbf, or of the disk; please report it")


def _size_warnings(file: ParquetFile, wish: Sizing, built: Mapping[ChunkKey, tuple[BloomFilter, int]]) -> Iterator[str]:
    worst: dict[int, float] = {}
    for (_, column), (bloom, _) in built.items():
        worst[column] = max(worst.get(column, 0.0), bloom.fpp)
    for column, fpp in sorted(worst.items()):
        if fpp > wish.fpp * 1.25:
            name = file.footer.columns[column].name
            yield f"column {name}: the error rate is {fpp:.2%}, not {wish.fpp:.2%}, within the size that was allowed"


def _built_report(file: ParquetFile, patch: Patch, key: ChunkKey, bloom: BloomFilter, count: int) -> BuiltFilter:
    ndv = bloom.estimated_ndv
    return BuiltFilter(
        row_group=key[0],
        column=file.footer.columns[key[1]].name,
        values=count,
        estimated_ndv=None if math.isinf(ndv) else ndv,
        offset=patch.places[key].offset,
        header_bytes=len(build_header(bloom.num_bytes)),
        bitset_bytes=bloom.num_bytes,
        fpp=bloom.fpp,
    )
