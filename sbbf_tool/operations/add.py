"""`add_filters`: give columns of an existing file Bloom filters, without touching a data page.

plan     which column chunks, and what is in the way
build    read each chunk's values once; insert their hashes into a filter large enough for all of them; fold it to the error rate
publish  old file whole + filters + new footer, to a temporary file, or behind the file itself where it was asked to `append`
verify   read the result as a stranger would: footer, headers, bitsets, and every value of every chunk against its filter
rename   only now
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping

from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.operations.build import Built, Meter, Progress, Sizing, build_filters, chunk_bytes, count_missing
from sbbf_tool.operations.engines import warnings_for
from sbbf_tool.operations.parquet_file import ParquetFile
from sbbf_tool.operations.targets import check_changeable, choose_columns, choose_target, finish_interrupted
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.footer import set_filters
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append
from sbbf_tool.reports import AddReport, BuiltFilter
from sbbf_tool.storage import local
from sbbf_tool.storage.append import append as append_to


def add_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    append: bool = False,
    fpp: float = 0.01,
    ndv: int | None = None,
    max_bytes: int | None = None,
    replace: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> AddReport:
    """Add a filter to every row group of `columns`, writing to `output` or `in_place`.

    `fpp` is the share of absent values that may pass; the size follows from the values themselves, or from `ndv`, and stays within
    `max_bytes`. A filter that is there already is kept unless `replace`. `append`, with `in_place`, writes behind the file itself rather
    than to a copy of it: a reader that opens the file in that moment fails, and a journal beside it undoes what a crash interrupts.
    `jobs` chunks are worked on at a time, as many as there are cores where None.

    Raises RefusedError where the change would be unsafe (the message says what would make it safe), UnreadableError, UsageError,
    WriteError; the old file is whole in every case.
    """
    wish = Sizing(fpp, ndv, sizing.MAX_BYTES if max_bytes is None else max_bytes)
    if append and not in_place:
        raise UsageError("to append is to change the file in place; say so", file=os.fsdecode(path))
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} jobs: it must be at least 1")
    target = choose_target(path, output, in_place, allow_table_files, dry_run)
    warnings = [] if dry_run else finish_interrupted(path)
    with ParquetFile.open(path) as file:
        keys = list(_keys(file, _plan(file, columns, replace)))
        meter = Meter(progress, sum(chunk_bytes(file, key) for key in keys) * (1 if dry_run else 2))
        built = build_filters(file, keys, wish, jobs, meter)
        patch = plan_append(
            file.footer,
            file.source.size,
            {key: (build_header(one.bloom.num_bytes), one.bloom.bitset) for key, one in built.items()},
        )

        def verify(written: local.LocalSource) -> None:
            _verify(file, written, patch, jobs, meter)

        if append and not dry_run:
            append_to(file.source, patch.pieces, verify)
        elif not dry_run:
            warnings += local.replace(file.source, target, patch.keep, patch.pieces, verify)
        warnings += _size_warnings(file, wish, built)
        warnings += _engine_warnings(file, keys)
        return AddReport(
            file=file.name,
            output=target,
            dry_run=dry_run,
            old_bytes=file.source.size,
            new_bytes=patch.size,
            filters=tuple(_built_report(file, patch, key, built[key]) for key in sorted(built)),
            data_bytes_read=sum(one.bytes_read for one in built.values()),
            warnings=tuple(warnings),
        )


def _keys(file: ParquetFile, columns: list[Column]) -> Iterator[ChunkKey]:
    for row_group in range(file.footer.num_row_groups):
        for column in columns:
            yield row_group, column.index


def _plan(file: ParquetFile, names: Iterable[str], replace: bool) -> list[Column]:
    """The chosen columns, once nothing is in the way. Raises RefusedError."""
    from sbbf_tool.parquet import equals

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
        if equals.is_interval(column) and equals.interval_form(file.footer) not in (None, equals.INTERVAL_FORM):
            raise RefusedError(
                f"this file's INTERVAL filters are marked {equals.interval_form(file.footer)!r}, a form of values that is not known here",
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


def _verify(file: ParquetFile, written: local.LocalSource, patch: Patch, jobs: int | None, meter: Meter) -> None:
    """Read the new file as a stranger would and compare it with what was meant. Raises SbbfError; then nothing is published."""
    try:
        _compare(file, ParquetFile(written), patch, jobs, meter)
    except UnreadableError as error:
        raise _mistake(file, f"the new file cannot be read back ({error.message})") from error


def _compare(file: ParquetFile, fresh: ParquetFile, patch: Patch, jobs: int | None, meter: Meter) -> None:
    bare: Mapping[ChunkKey, None] = dict.fromkeys(patch.places)
    if set_filters(fresh.footer.raw, bare) != set_filters(file.footer.raw, bare):
        raise _mistake(file, "the new footer differs from the old one in more than the filters' places")
    blooms = {}
    for key, place in patch.places.items():
        stored = fresh.stored_filter(key[0], fresh.footer.columns[key[1]])
        if stored is None or stored.place != place or stored.oddities() or stored.header.beyond_us:
            raise _mistake(file, f"the filter of {_place(file, key)} is not where it should be")
        blooms[key] = BloomFilter(fresh.source.read(stored.bitset_offset, stored.header.num_bytes))
    for key, missed in count_missing(fresh, blooms, jobs, meter).items():
        if missed:
            raise _mistake(file, f"{missed} values of {_place(file, key)} are absent from the new filter")


def _place(file: ParquetFile, key: ChunkKey) -> str:
    return f"column {file.footer.columns[key[1]].name}, row group {key[0]}"


def _mistake(file: ParquetFile, what: str) -> SbbfError:
    return SbbfError(f"nothing was changed: {what}", file=file.name, hint="this is a defect of sbbf, or of the disk; please report it")


def _size_warnings(file: ParquetFile, wish: Sizing, built: Mapping[ChunkKey, Built]) -> Iterator[str]:
    worst: dict[int, float] = {}
    for (_, column), one in built.items():
        worst[column] = max(worst.get(column, 0.0), one.bloom.fpp)
    for column, fpp in sorted(worst.items()):
        if fpp > wish.fpp * 1.25:
            name = file.footer.columns[column].name
            yield f"column {name}: the error rate is {fpp:.2%}, not {wish.fpp:.2%}, within the size that was allowed"


def _engine_warnings(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[str]:
    for index in sorted({column for _, column in keys}):
        column = file.footer.columns[index]
        for warning in warnings_for(column):
            yield f"column {column.name}: {warning}"


def _built_report(file: ParquetFile, patch: Patch, key: ChunkKey, built: Built) -> BuiltFilter:
    ndv = built.bloom.estimated_ndv
    return BuiltFilter(
        row_group=key[0],
        column=file.footer.columns[key[1]].name,
        values=built.values,
        estimated_ndv=None if math.isinf(ndv) else ndv,
        offset=patch.places[key].offset,
        header_bytes=len(build_header(built.bloom.num_bytes)),
        bitset_bytes=built.bloom.num_bytes,
        fpp=built.bloom.fpp,
    )
