"""`add_filters`: give columns of an existing file Bloom filters, without touching a data page.

plan     which column chunks, and what is in the way
build    read each chunk's values once; insert their hashes into a filter large enough for all of them; fold it to the error rate
publish  old file whole + filters + new footer, to a temporary file, or behind the file itself where it was asked to `append`
verify   read the result as a stranger would: footer, headers, bitsets, and every value of every chunk against its filter
rename   only now
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom.sizing import DEFAULT_FPP
from sbbf_tool.display import redact
from sbbf_tool.editing.build import (
    HashMemory,
    Meter,
    Progress,
    Spooled,
    build_filters,
    chunk_bytes,
    report_of,
    statistics_warnings,
)
from sbbf_tool.editing.chunks import REFUSE, REPLACE, choose_chunks, plan_filters
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.editing.publish import ensure_holding_all, ensure_same_footer, publish
from sbbf_tool.editing.targets import choose_target, table_warnings, warnings_of_interrupted
from sbbf_tool.errors import UsageError
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.query_engines.verdicts import warnings_for
from sbbf_tool.reports.add import AddReport
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


def add_filters(
    path: str | os.PathLike[str],
    columns: Iterable[str],
    *,
    output: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    append: bool = False,
    fpp: float = DEFAULT_FPP,
    ndv: int | None = None,
    max_bytes: int | Mapping[str, int] | None = None,
    replace: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysGiven = None,
    jobs: int | None = None,
    max_page_bytes: MaxPageBytes = None,
    progress: Progress | None = None,
    cross_checks: CrossChecks | None = None,
) -> AddReport:
    """Add a filter to every row group of `columns`, writing to `output` or `in_place`.

    `fpp` is the share of absent values that may pass; the size follows from the values themselves, or from `ndv`, and stays within
    `max_bytes`, one number or one for each column. An encrypted column gets an encrypted filter, for which `keys` must hold its key and
    the footer's. A filter that is there already is kept unless `replace`. `append`, with `in_place`,
    writes behind the file itself rather than to a copy of it: a reader that opens the file in that moment fails, and a journal beside it
    undoes what a crash interrupts. `jobs` chunks are worked on at a time, as many as there are cores where None. A page
    that states more than `max_page_bytes` uncompressed bytes is not read (see `PageLimit`).

    `cross_checks`, given to several calls, spares them the kinds of column chunk that pyarrow has decoded before.

    Raises RefusedError where the change would be unsafe (the message says what would make it safe), UnreadableError, UsageError,
    WriteError; the old file is whole in every case.
    """
    spec = FilterSpec(as_names(columns), fpp, ndv, max_bytes, replace)
    if append and not in_place:
        raise UsageError("to append (--append) is to change the file in place; say so (--in-place)", file=os.fsdecode(path))
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} jobs: it must be at least 1")
    target = choose_target(path, output, in_place, allow_table_files, dry_run, append)
    warnings = warnings_of_interrupted(path, target, keys, dry_run)
    with ParquetFile.open(path, keys, PageLimit.of(max_page_bytes, jobs)) as file:
        chunks = choose_chunks(file, spec.columns, REPLACE if replace else REFUSE)
        if not chunks and in_place:
            return AddReport(file.name, redact(target), dry_run, file.source.size, file.source.size, (), 0, tuple(warnings))
        if in_place:
            places.ensure_replaceable(target, append=append)
        meter = Meter(progress, (1 + (not dry_run)) * sum(chunk_bytes(file, key) for key in chunks))
        # A copy's pages are read again, from the copy. Where nothing is copied, or a store copies the version that was read, they are
        # the very bytes that were read already.
        memory = HashMemory() if append or places.is_url(target) else None
        checks = cross_checks or CrossChecks()
        with places.open_spool(target, keeps=not dry_run) as spool:
            built = build_filters(file, spec.sizes(file, chunks), spool, jobs, meter, checks, memory)
            warnings += statistics_warnings(file, built)
            patch = plan_filters(file, built)

            def compare(fresh: ParquetFile) -> None:
                ensure_same_footer(file, fresh, patch.places)
                ensure_holding_all(file, fresh, patch, patch.places, jobs, meter, memory)

            # Whatever fails here must fail before the file is published.
            notices = [*_type_warnings(file, chunks), *_size_warnings(file, spec.fpp, built), *_engine_warnings(file, chunks)]
            report = AddReport(
                file=file.name,
                output=redact(target),
                dry_run=dry_run,
                old_bytes=file.source.size,
                new_bytes=patch.size,
                filters=tuple(report_of(file, patch, key, built[key]) for key in sorted(built)),
                data_bytes_read=sum(one.bytes_read for one in built.values()),
                cross_checked=sum(one.verdict.is_cross_checked for one in built.values()),
                not_cross_checked=sum(one.verdict.is_undecodable for one in built.values()),
            )
            if not dry_run:
                warnings += publish(file, target, patch, compare, append=append)
        if allow_table_files:
            warnings += table_warnings(target, is_new=output is not None, added=patch.size - file.source.size)
        warnings += notices
        return dataclasses.replace(report, warnings=tuple(warnings))


_NOTHING_TO_SPEAK_OF = 64 << 10
"""Bytes of a column's filters below which nobody minds that its data takes less."""


def _size_warnings(file: ParquetFile, wanted: float, built: Mapping[ChunkKey, Spooled]) -> Iterator[str]:
    worst: dict[int, float] = {}
    for (_, column), one in built.items():
        worst[column] = max(worst.get(column, 0.0), one.fpp)
    for column, fpp in sorted(worst.items()):
        if fpp > wanted * 1.25:
            name = file.footer.columns[column].name
            yield f"column {name}: the error rate is {fpp:.3g}, not {wanted:.3g}, within the size that was allowed"
    for column in sorted(worst):
        filters = sum(one.num_bytes for (_, owner), one in built.items() if owner == column)
        data = sum(chunk_bytes(file, key) for key in built if key[1] == column)
        if filters > max(data, _NOTHING_TO_SPEAK_OF):
            name = file.footer.columns[column].name
            yield f"column {name}: its filters take {filters:,} bytes and its data {data:,}; ask for a higher --fpp, or leave it out"


def _type_warnings(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[str]:
    for index in sorted({column for _, column in keys}):
        if doubt := file.footer.columns[index].doubt:
            yield f"column {file.footer.columns[index].name}: {doubt}; readers may refuse the column, and `probe` cannot look up its values"


def _engine_warnings(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[str]:
    for index in sorted({column for _, column in keys}):
        column = file.footer.columns[index]
        for warning in warnings_for(column):
            yield f"column {column.name}: {warning}"
