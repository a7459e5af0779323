"""`add_filters`: give columns of an existing file Bloom filters, without touching a data page.

choose   which column chunks, and what is in the way
build    read each chunk's values once; insert their hashes into a filter large enough for all of them; fold it to the error rate; query it
         for every value
publish  old file whole + filters + new footer, to a temporary file, or behind the file itself where it was asked to `append`; read back:
         footer, headers, bitsets, and the pages that the filters were verified against
rename   only now
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.editing.build import Progress, Spooled, chunk_bytes, report_of
from sbbf_tool.editing.edit import Edit, Prebuilt
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import MaxPageBytes, PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Hint, join
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.query_engines.verdicts import warnings_for
from sbbf_tool.reports.add import AddReport

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
    the footer's. A chunk that has a filter is skipped, and counted, unless `replace`; with nothing to add, `output` is an exact copy.
    `append`, with `in_place`, writes behind the file itself rather than to a copy of it: a reader that opens the file in that moment fails,
    and a journal beside it undoes what a crash interrupts. `jobs` chunks are worked on at a time, as many as there are cores where None. A
    page that states more than `max_page_bytes` uncompressed bytes is not read (see `PageLimit`).

    `cross_checks`, given to several calls, spares them the kinds of column chunk that pyarrow has decoded before.

    Raises RefusedError where the change would be unsafe (the message says what would make it safe), UnreadableError, UsageError,
    WriteError; the old file is whole in every case.
    """
    spec = FilterSpec(as_names(columns), fpp, ndv, max_bytes, replace)
    limit, checks = PageLimit.of(max_page_bytes, jobs), cross_checks or CrossChecks()
    return add_to_file(path, spec, Edit(output, in_place, append, dry_run, allow_table_files, keys, limit, jobs, progress, checks))


def add_to_file(path: str | os.PathLike[str], spec: FilterSpec, edit: Edit, prebuilt: Prebuilt | None = None) -> AddReport:
    """Add the filters of `spec` that a file lacks; `prebuilt` ones, of the same file, need not be built. Raises as `add_filters` does."""
    with edit.open(path, prebuilt) as opened:
        file = opened.file
        chunks, skipped = spec.chunks(file)
        opened.build(spec.sizes(file, chunks))
        opened.warnings += [*_type_warnings(file, chunks), *_size_warnings(file, spec.fpp, opened.built), *_engine_warnings(file, chunks)]
        patch = opened.patch()
        report = partial(
            AddReport,
            filters=tuple(report_of(file, patch, *one) for one in sorted(opened.built.items(), key=itemgetter(0))),
            skipped=skipped,
            data_bytes_read=opened.data_bytes_read,
            cross_checked=opened.cross_checked,
            not_cross_checked=opened.not_cross_checked,
        )
        return opened.publish(patch, report)


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
            taken = f"column {name}: its filters take {filters:,} bytes and its data {data:,}; "
            yield join(taken, Hint("give a higher {fpp}, or leave it out", fpp=...))


def _type_warnings(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[str]:
    for index in sorted({column for _, column in keys}):
        if doubt := file.footer.columns[index].doubt:
            yield f"column {file.footer.columns[index].name}: {doubt}; readers may refuse the column, and `probe` cannot look up its values"


def _engine_warnings(file: ParquetFile, keys: Iterable[ChunkKey]) -> Iterator[str]:
    for index in sorted({column for _, column in keys}):
        column = file.footer.columns[index]
        for warning in warnings_for(column):
            yield f"column {column.name}: {warning}"
