"""Build and publish: build and verify the filters of a file's row groups separately, and add them to the file in one step.

build     build the filter of each chunk of a split (some row groups of a file), and query it for every value
publish   add all filters to the file as `add_filters` does, and build missing filters

Only the file determines what to do, its footer and, where existing filters are judged, their bits: a file that has every filter is skipped,
so that a second run, a retried task and a speculative task do nothing. If a file changes between the stages, all of it is processed again.

A plaintext filter reveals values of its column. Therefore the process that publishes a file builds the filters of its encrypted columns,
and never sends them to another process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import HashMemory, NewFilter, SpooledFilter, build_filter
from sbbf_tool.editing.edit import Edit, PrebuiltFilters
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.errors import ChangedError
from sbbf_tool.file.cross_check import Verdict
from sbbf_tool.file.meter import Progress
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.table_file import FileName
from sbbf_tool.operations.add import add_to_file
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.rows import HAS_EVERY_FILTER, OK, SKIPPED
from sbbf_tool.runner.failures import failure, refusal_of, row_of
from sbbf_tool.storage import places

if TYPE_CHECKING:
    from sbbf_tool.reports.lake import BuiltChunk

_PATIENCE_SECONDS = 60.0
_FIRST_PAUSE = 0.05


def build_split(
    file_name: FileName, planned_fingerprint: str | None, row_groups: Iterable[int], spec: FilterSpec, edit: Edit
) -> Iterator[BuiltChunk]:
    """Yield the filters of some row groups; a row with the reason if a filter cannot be built or the file changed after the plan."""
    from sbbf_tool.reports.lake import BuiltChunk

    path, numbers = os.fspath(file_name), set(row_groups)
    started = time.monotonic()
    try:
        with ParquetFile.open(file_name, edit.keys, edit.limit) as file:
            if file.fingerprint != planned_fingerprint:
                raise ChangedError("the file changed after the work on it was planned", file=path)
            for key, size in spec.sizes(file, spec.choose(file, measures=spec.ensure, row_groups=numbers).keys).items():
                if file.has_key(*key):
                    yield BuiltChunk(
                        path,
                        SKIPPED,
                        "the column is encrypted: the process that publishes the file builds its filter",
                        0,
                        0.0,
                        planned_fingerprint,
                        *key,
                    )
                else:
                    new_filter = build_filter(file, key, size, edit.cross_checks, HashMemory())
                    seconds, started = time.monotonic() - started, time.monotonic()
                    bits = bytes(new_filter.bloom.bitset)
                    details = new_filter.values, new_filter.bytes_read, bits, *new_filter.verdict
                    yield BuiltChunk(path, OK, None, 0, seconds, planned_fingerprint, key[0], key[1], *details)
    except Exception as error:
        fields = {"seconds": time.monotonic() - started, "fingerprint": planned_fingerprint, **failure(file_name, error)}
        # The task that publishes the file detects the change, and builds all filters again.
        if not isinstance(error, ChangedError):
            yield BuiltChunk(path=path, **fields)  # type: ignore[arg-type]
        else:
            yield BuiltChunk(path=path, **{**fields, "status": SKIPPED})  # type: ignore[arg-type]


@dataclass(frozen=True)
class AddToFile:
    """`add_filters` as work; a runner may also build the filters of one file's row groups in separate tasks."""

    spec: FilterSpec
    edit: Edit

    def __call__(self, path: FileName, *, jobs: int = 1, progress: Progress | None = None) -> dict[str, object]:
        return _publish(path, (), self.spec, replace(self.edit, jobs=jobs, progress=progress))


def fill_file(path: FileName, spec: FilterSpec, edit: Edit) -> AddRow:
    """Build and publish all filters that one file lacks."""
    return publish_file(path, (), spec, edit)


def publish_file(path: FileName, chunks: Iterable[BuiltChunk], spec: FilterSpec, edit: Edit) -> AddRow:
    """Add the chunks' filters to the file, with only one filter in memory; build all filters again if the file has changed."""
    return row_of(AddRow, path, partial(_publish, path, chunks, spec, edit))


def _publish(path: FileName, chunks: Iterable[BuiltChunk], spec: FilterSpec, edit: Edit) -> dict[str, object]:
    with places.open_spool(os.fsdecode(edit.output or path), keeps=not edit.dry_run) as spool:
        prebuilt = PrebuiltFilters(spool)
        for chunk in chunks:
            prebuilt.fingerprint = chunk.fingerprint
            if chunk.bitset is not None:
                verdict = Verdict(chunk.is_cross_checked, chunk.is_undecodable, chunk.wrong_statistics)
                new_filter = NewFilter(BloomFilter(chunk.bitset), chunk.values, chunk.data_bytes_read, verdict)
                stored_bytes = build_header(new_filter.bloom.num_bytes), new_filter.bloom.bitset
                prebuilt.filters[chunk.row_group, chunk.column] = SpooledFilter.of(new_filter, spool, stored_bytes)
            elif chunk.status != SKIPPED:
                return {"status": chunk.status, "reason": chunk.reason, "exit_code": chunk.exit_code}
        return _add(path, spec, edit, prebuilt)


def _add(path: FileName, spec: FilterSpec, edit: Edit, prebuilt: PrebuiltFilters) -> dict[str, object]:
    """Add the filters; if another writer changes the file, wait and try again with the changed file.

    If no built filters would be lost, an append by another writer raises ChangedError immediately.
    """
    deadline, pause = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE
    while True:
        try:
            report = add_to_file(path, spec, edit, prebuilt)
        except ChangedError:
            if prebuilt.fingerprint is None or time.monotonic() > deadline:
                raise
        else:
            if refused := refusal_of(report):
                return refused
            return {"report": report} if report.filters else {"status": SKIPPED, "reason": HAS_EVERY_FILTER, "report": report}
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
