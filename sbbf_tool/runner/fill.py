"""Build and publish: the filters of a file's row groups, apart and proven, and the one step that puts them into the file.

build     a piece of a file (some row groups) -> the filter of each chunk, asked for every value that it was built from
publish   one file, all its filters -> a copy with the filters behind it, compared with the old file, then renamed over it

The footer is the truth: a file that has every filter is left alone, so that a second run, a retried task and a speculative twin do
nothing. A file that changed between the stages is done once more, as a whole. The pages of the copy are compared with those that the
filters were proven against, to the byte, so that the proof holds for the new file without its values being decoded again.

A filter in the clear tells who is in a column. That of an encrypted one is therefore built by whoever publishes the file, and never
handed from one process to another.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.editing.build import (
    Built,
    HashMemory,
    Progress,
    Sizing,
    Spooled,
    build_filter,
    count_missing,
    in_parallel,
    least_bytes,
    statistics_warnings,
)
from sbbf_tool.editing.chunks import plan_filters
from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.editing.publish import ensure_same_footer, ensure_same_pages, ensure_written, mistake, place_of, publish
from sbbf_tool.editing.targets import choose_target, cut_back, table_warnings
from sbbf_tool.errors import ChangedError, RefusedError
from sbbf_tool.file.cross_check import CrossChecks, Verdict
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.filters import build_header
from sbbf_tool.parquet.patch import ChunkKey, Patch
from sbbf_tool.reports.lake import BuiltChunk, FileOutcome
from sbbf_tool.reports.rows import OK, SKIPPED
from sbbf_tool.runner.failures import failure, row_of
from sbbf_tool.runner.plan import fingerprint
from sbbf_tool.storage import places
from sbbf_tool.storage.spool import Spool

_PATIENCE_SECONDS = 60.0
_FIRST_PAUSE = 0.05


def build_piece(path: str, print_of_plan: str | None, row_groups: Iterable[int], spec: FilterSpec, edit: Edit) -> Iterator[BuiltChunk]:
    """The filters of some row groups, one by one; a single row with the reason where one cannot be built, or the file is another one."""
    numbers = set(row_groups)
    started = time.monotonic()
    try:
        with ParquetFile.open(path, edit.keys, edit.limit) as file:
            if fingerprint(file) != print_of_plan:
                raise ChangedError("the file changed after it was planned", file=path)
            for key, size in spec.sizes(file, spec.chunks(file)).items():
                if key[0] in numbers and file.has_key(*key):
                    yield BuiltChunk(path, SKIPPED, "its column is encrypted: its publisher builds it", 0, 0.0, print_of_plan, *key)
                elif key[0] in numbers:
                    built = _proven(file, key, size, edit.cross_checks)
                    seconds, started = time.monotonic() - started, time.monotonic()
                    bits = bytes(built.bloom.bitset)
                    found = built.values, built.bytes_read, bits, *built.verdict
                    yield BuiltChunk(path, OK, None, 0, seconds, print_of_plan, key[0], key[1], *found)
    except Exception as error:
        told = {"seconds": time.monotonic() - started, "fingerprint": print_of_plan, **failure(path, error)}
        # Whoever publishes finds that the file is another one, and does it anew.
        if not isinstance(error, ChangedError):
            yield BuiltChunk(path=path, **told)  # type: ignore[arg-type]
        else:
            yield BuiltChunk(path=path, **{**told, "status": SKIPPED})  # type: ignore[arg-type]


@dataclass(frozen=True)
class AddToFile:
    """`add_filters`, of which a runner may also build the filters of one file's row groups apart."""

    spec: FilterSpec
    edit: Edit

    def __call__(self, path: str, *, jobs: int = 1, progress: Progress | None = None) -> dict[str, object]:
        row = fill_file(path, self.spec, replace(self.edit, jobs=jobs, progress=progress))
        return {field.name: getattr(row, field.name) for field in fields(row) if field.name not in ("path", "seconds")}


def fill_file(path: str, spec: FilterSpec, edit: Edit) -> FileOutcome:
    """Build and publish all filters that one file lacks."""
    return row_of(FileOutcome, path, partial(_filled, path, (), spec, edit))


def publish_file(path: str, chunks: Iterable[BuiltChunk], spec: FilterSpec, edit: Edit) -> FileOutcome:
    """Put the chunks' filters into the file, of which one is in memory at a time; built anew where the file is not the one that they were
    built from.
    """
    return row_of(FileOutcome, path, partial(_filled, path, chunks, spec, edit))


def _filled(path: str, chunks: Iterable[BuiltChunk], spec: FilterSpec, edit: Edit) -> dict[str, object]:
    with places.open_spool(path) as spool:
        built: dict[ChunkKey, Spooled] = {}
        print_of_plan = None
        for chunk in chunks:
            print_of_plan = chunk.fingerprint
            if chunk.bitset is not None:
                verdict = Verdict(chunk.is_cross_checked, chunk.is_undecodable, chunk.wrong_statistics)
                one = Built(BloomFilter(chunk.bitset), chunk.values, chunk.data_bytes_read, verdict)
                built[chunk.row_group, chunk.column] = Spooled.of(one, spool, (build_header(one.bloom.num_bytes), one.bloom.bitset))
            elif chunk.status != SKIPPED:
                return {"status": chunk.status, "reason": chunk.reason, "exit_code": chunk.exit_code}
        return _published(path, spec, edit, built, print_of_plan, spool)


def _published(
    path: str, spec: FilterSpec, edit: Edit, built: dict[ChunkKey, Spooled], print_of_plan: str | None, spool: Spool
) -> dict[str, object]:
    """Until it is done: where another writer is at work on the file, wait for what it makes of it; where it changed, once more."""
    deadline, pause, changes = time.monotonic() + _PATIENCE_SECONDS, _FIRST_PAUSE, 0
    warnings = cut_back(path, edit.keys)
    while True:
        target = choose_target(path, None, True, edit.allow_table_files, tables=edit.tables)
        with ParquetFile.open(path, edit.keys, edit.limit) as file:
            keys = spec.chunks(file)
            if not keys:
                return {"status": SKIPPED, "reason": "it has every filter"}
            places.ensure_replaceable(target)
            if print_of_plan != (found := fingerprint(file)):
                changes += print_of_plan is not None
                if changes > 1:
                    raise RefusedError("the file keeps changing", file=path, hint="run again when its writer is done")
                built, print_of_plan = {}, found
                spool.clear()
            lacking = spec.sizes(file, [key for key in keys if key not in built])
            spool.ensure_room(least_bytes(file, lacking))
            built |= in_parallel(partial(_spooled, file, lacking, spool, edit.cross_checks), lacking, edit.jobs)
            try:
                return _write(file, target, {key: built[key] for key in keys}, warnings, edit)
            except ChangedError:
                if time.monotonic() > deadline:
                    raise
        time.sleep(pause)
        pause = min(2 * pause, 1.0)


def _write(file: ParquetFile, target: str, filters: Mapping[ChunkKey, Spooled], warnings: list[str], edit: Edit) -> dict[str, object]:
    patch = plan_filters(file, filters)
    warnings = [*warnings, *statistics_warnings(file, filters)]
    said = publish(file, target, patch, partial(_compare, file, filters, patch))
    added = patch.size - file.source.size
    if edit.allow_table_files:
        said += table_warnings(target, is_new=False, added=added, tables=edit.tables)
    return {
        "filters": len(filters),
        "bytes_added": added,
        "data_bytes_read": sum(one.bytes_read for one in filters.values()),
        "warnings": (*warnings, *said),
        "cross_checked": sum(one.verdict.is_cross_checked for one in filters.values()),
        "not_cross_checked": sum(one.verdict.is_undecodable for one in filters.values()),
    }


def _compare(file: ParquetFile, filters: Mapping[ChunkKey, Spooled], patch: Patch, fresh: ParquetFile) -> None:
    ensure_same_footer(file, fresh, patch.places)
    ensure_written(file, fresh, patch, filters, "was written as another one")
    ensure_same_pages(file, fresh, patch.places)


def _spooled(file: ParquetFile, sizes: Mapping[ChunkKey, Sizing], spool: Spool, checks: CrossChecks, key: ChunkKey) -> Spooled:
    built = _proven(file, key, sizes[key], checks)
    return Spooled.of(built, spool, file.filter_pieces(*key, built.bloom.bitset))


def _proven(file: ParquetFile, key: ChunkKey, size: Sizing, checks: CrossChecks) -> Built:
    """The filter of a chunk, asked for every value. Raises UnreadableError, RefusedError."""
    memory = HashMemory()
    built = build_filter(file, key, size, checks, memory)
    if missed := count_missing(file, key, built.bloom, memory):
        raise mistake(file, f"{missed} values of {place_of(file, key)} are absent from the new filter")
    return built
