"""Plan each file of a lake from its footer alone: which chunks lack a filter, and in which splits to build the filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from sbbf_tool.editing.build import chunk_bytes, least_bytes
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.file.named_columns import name_columns
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.reports.lake import PlannedFile, PlannedSplit
from sbbf_tool.reports.rows import HAS_EVERY_FILTER, OK, SKIPPED
from sbbf_tool.rules.satisfaction import NOT_MEASURED
from sbbf_tool.runner.failures import row_of

SPLIT_BYTES = 16 << 20
"""Bytes of data to decode per split: less than a second of work, so that a file with many row groups keeps every core busy."""


def plan_file(path: FileName, spec: FilterSpec, edit: Edit, split_bytes: int = SPLIT_BYTES, *, measures: bool = False) -> PlannedFile:
    """Plan the filters that this file lacks; if the status is not `ok`, the plan has the reason.

    Existing filters are measured only if `measures` is set: then those that `spec` does not accept are planned too. The plan has a single
    split if any of its columns is encrypted.
    """
    return row_of(PlannedFile, path, partial(_plan_filters, path, spec, edit, split_bytes, measures))


def _plan_filters(path: FileName, spec: FilterSpec, edit: Edit, split_bytes: int, measures: bool) -> dict[str, object]:
    with replace(edit, dry_run=True).open(path) as change:
        file = change.file
        choice = spec.choose(file, measures=measures)
        keys = choice.keys
        sizes = spec.sizes(file, keys)
        change.spool.ensure_room(least_bytes(file, sizes))
        if keys:
            change.ensure_replaceable()
        columns = sorted({column for _, column in keys})
        is_whole = any(file.has_key(*key) for key in keys)
        return {
            "status": OK if keys else SKIPPED,
            "reason": None if keys else HAS_EVERY_FILTER,
            "bytes": file.source.size,
            "fingerprint": file.fingerprint,
            "columns": tuple(file.footer.columns[index].name for index in columns),
            "filters": len(keys),
            "data_bytes": sum(chunk_bytes(file, key) for key in keys),
            "named_columns": name_columns(file, spec.columns),
            "not_measured": tuple(file.footer.columns[index].name for index in choice.columns(NOT_MEASURED)),
            "splits": tuple(split_row_groups(file, keys, None if is_whole else split_bytes)),
        }


def split_row_groups(file: ParquetFile, keys: Iterable[ChunkKey], split_bytes: int | None) -> Iterator[PlannedSplit]:
    """Yield splits of whole row groups with up to `split_bytes` of data, or one larger row group, each; a single split if None."""
    by_row_group: dict[int, int] = {}
    for key in keys:
        by_row_group[key[0]] = by_row_group.get(key[0], 0) + chunk_bytes(file, key)
    numbers: list[int] = []
    split_size = 0
    for number, size in by_row_group.items():
        if numbers and split_bytes is not None and split_size + size > split_bytes:
            yield PlannedSplit(tuple(numbers), split_size)
            numbers, split_size = [], 0
        numbers.append(number)
        split_size += size
    if numbers:
        yield PlannedSplit(tuple(numbers), split_size)
