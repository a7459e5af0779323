"""The change of a file, for every verb: all new versions are made, and read back, here.

target    choose the path to write, and check that it may be written
open      undo an interrupted append; open the file
build     build filters from the values of column chunks, and verify each against its values
patch     determine the bytes to keep, the bytes to append and the new footer
report    make the report before publishing: an error here must not leave a changed file without a
          report
publish   write the new file, compare it with the plan, and only then rename it

A verb provides the choice of chunks, the filters to build, the patch, the comparison and the
report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool import log
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.bloom.hashing import hash_value
from sbbf_tool.display import redact
from sbbf_tool.editing.build import (
    NewFilter,
    SpooledFilter,
    build_filters,
    chunk_bytes,
    least_bytes,
    statistics_warnings,
    sum_chunk_bytes,
)
from sbbf_tool.editing.edit import Edit, is_copied
from sbbf_tool.editing.publish import (
    ensure_moved_filters,
    ensure_new_filters,
    ensure_same_footer,
    ensure_same_pages,
    publish,
)
from sbbf_tool.editing.targets import (
    ensure_copy_readable,
    sink_warnings,
    table_warnings,
)
from sbbf_tool.errors import ArchivedError, RefusedError
from sbbf_tool.file import interrupted
from sbbf_tool.file.own_tail import OwnTail, find_own_tail, hash_end
from sbbf_tool.file.parallel import Meter
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import replace
from sbbf_tool.hints import ELSEWHERE
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.patch import Patch, Piece, plan_append
from sbbf_tool.parquet.splice import ChunkKey, FilterPlace
from sbbf_tool.reports.change import SaturatedFilter, explain_refusal
from sbbf_tool.storage import permissions, places
from sbbf_tool.storage.copying import BegunCopy
from sbbf_tool.storage.source import PlannedSource
from sbbf_tool.storage.spool import Spool

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.reports.change import ChangeReport

    Report = TypeVar("Report", bound=ChangeReport)


class PrebuiltFilters:
    """Filters that other processes or an earlier attempt built and verified before the file is
    opened for the change."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.fingerprint: str | None = None
        """Fingerprint of the file version from which the filters were built; None if there is none
        yet."""
        self.filters: dict[ChunkKey, SpooledFilter] = {}
        self._has_changed = False

    def keep_filters_of(self, file: ParquetFile) -> None:
        """Discard the filters unless they were built from this version of the file. Raises
        RefusedError if it changed a second time."""
        fingerprint = file.fingerprint
        if self.fingerprint == fingerprint:
            return
        if self.fingerprint is not None:
            if self._has_changed:
                raise RefusedError(
                    "the file keeps changing",
                    file=file.name,
                    hint="run the command again when its writer has finished",
                )
            self._has_changed = True
        self.filters.clear()
        self.spool.clear()
        self.fingerprint = fingerprint


@contextmanager
def open_edit(
    path: str | os.PathLike[str], context: Context, edit: Edit, prebuilt: PrebuiltFilters
) -> Iterator[OpenEdit]:
    """Open a file to change it; undo an interrupted append first, unless this is a dry run.

    `prebuilt` filters are used if the file is the version from which they were built; filters built
    here are added to them. Raises the errors of `Edit.target_of`, UnreadableError and WriteError.
    """
    target = edit.target_of(path, context.reuse.tables)
    name = os.fsdecode(path)
    ring = context.ring_of(name)
    warnings, truncated_to = interrupted.undo(name, target, ring, edit.dry_run)
    with ExitStack() as stack:
        try:
            file = stack.enter_context(ParquetFile.open(path, context))
        except ArchivedError as error:
            if not edit.in_place:
                raise
            hint = f"restore it first, and {ELSEWHERE}"
            raise RefusedError(error.message, file=error.file, hint=hint) from error
        prebuilt.keep_filters_of(file)
        if is_copied(path):
            ensure_copy_readable(file, path.deletes)
        yield OpenEdit(
            edit,
            file,
            target,
            warnings,
            truncated_to,
            prebuilt,
            stack,
            is_copied=is_copied(path),
        )


class OpenEdit:
    """A file that is open for a change, and its new filters."""

    def __init__(
        self,
        edit: Edit,
        file: ParquetFile,
        target: str,
        warnings: list[str],
        truncated_to: int | None,
        prebuilt: PrebuiltFilters,
        resources: ExitStack,
        *,
        is_copied: bool,
    ) -> None:
        self.is_copied = is_copied
        """Whether the result is a copy that a commit puts in place of the file."""
        self.edit = edit
        self.file = file
        self.target = target
        self.spool = prebuilt.spool
        self.warnings = warnings
        """Warnings for the report."""
        self.truncated_to = truncated_to
        """The length before an interrupted append, to which the file was truncated."""
        self.filters: dict[ChunkKey, SpooledFilter] = {}
        """All filters to write."""
        self.built_filters: dict[ChunkKey, SpooledFilter] = {}
        """The filters among them that were built from the data."""
        self.saturated_filters: list[SaturatedFilter] = []
        """Filters that are left out because they would exclude hardly any value."""
        self._moved_checksums: dict[ChunkKey, int] = {}
        """Checksums of the filters that `patch` moves, header and bitset as stored."""
        self._prebuilt = prebuilt
        self._resources = resources
        self._own_tail: OwnTail | None = None
        self._begun_copy: BegunCopy | None = None
        self._meter = Meter(None, 0)

    def ensure_publishable(self) -> None:
        """Raise RefusedError if the file could not be changed, as far as this can be checked in
        advance."""
        if self.edit.in_place and not self.is_copied:
            permissions.ensure_changeable_in_place(
                self.target, self.file.source, append=self.edit.append
            )
        if not self.edit.dry_run:
            reuse = self.file.context.reuse
            reuse.renames_in = permissions.ensure_renames(self.target, reuse.renames_in)

    def ensure_buildable(self, sizes: Mapping[ChunkKey, Sizing]) -> None:
        """Raise RefusedError if the target cannot be written, or its disk cannot hold these
        filters, as far as the footer shows it."""
        if sizes:
            self.ensure_publishable()
            self.spool.ensure_room(least_bytes(self.file, sizes))

    def add(self, key: ChunkKey, bloom: BloomFilter, target: Sizing) -> None:
        """Write this filter for a chunk, unless it is saturated. Raises WriteError."""
        if self._is_left_out(key, target, bloom.num_bytes, bloom.fpp):
            return
        parts = self.file.filter_parts(*key, bloom.bitset)
        self.filters[key] = SpooledFilter.of(NewFilter(bloom, 0, 0), self.spool, parts)

    def build(self, sizes: Mapping[ChunkKey, Sizing]) -> None:
        """Build the filters of these chunks from their values, and verify each filter against the
        values; leave out saturated filters.

        Meanwhile, a thread copies the bytes that a new file has in common with the old one. Raises
        UnreadableError, WriteError, and RefusedError if the target cannot be written, its disk
        cannot hold the filters, or values cannot be read reliably.
        """
        file = self.file
        prebuilt = self._prebuilt.filters
        missing = {key: size for key, size in sizes.items() if key not in prebuilt}
        bytes_to_read = sum_chunk_bytes(file, missing)
        bytes_to_verify = sum_chunk_bytes(file, sizes)
        self._meter = Meter(file.context.progress, bytes_to_read + bytes_to_verify)
        self.ensure_buildable(missing)
        if missing:
            self._begin_copy()
        checks = self.edit.cross_checks
        prebuilt |= build_filters(file, missing, self.spool, file.context.jobs, self._meter, checks)
        self.built_filters = {}
        for key, size in sizes.items():
            built = prebuilt[key]
            if not self._is_left_out(key, size, built.num_bytes, built.fpp):
                self.built_filters[key] = built
        num_filters = format_count(len(missing), "filter")
        num_bytes = format_count(self.data_bytes_read, "byte")
        log.info("built %s for %s from %s of data", num_filters, file.name, num_bytes)
        self.filters |= self.built_filters
        # Values of filters that are left out were read, too.
        self.warnings += statistics_warnings(file, {key: prebuilt[key] for key in sizes})

    def _begin_copy(self) -> None:
        edit = self.edit
        if edit.append or self._begun_copy is not None:
            return
        # Whichever filters are built, the new file keeps the bytes before the own tail.
        begun = places.begin_copy(self.file.source, self.target, self._find_own_tail().start)
        self._begun_copy = self._resources.enter_context(begun)

    def _is_left_out(self, key: ChunkKey, target: Sizing, num_bytes: int, fpp: float) -> bool:
        """Return whether a filter excludes too few values to be written; then list it."""
        if self.edit.force or fpp <= target.worst_fpp:
            return False
        self.saturated_filters.append(
            SaturatedFilter(key[0], self.file.footer.columns[key[1]].name, num_bytes, fpp)
        )
        return True

    def ensure_useful(self, sized_for: int | None = None) -> None:
        """Raise RefusedError if filters are left out and there is no other filter to write; their
        size is for `sized_for` distinct values, if the request states that."""
        if self.saturated_filters and not self.filters:
            ndv = self._count_most_distinct()
            reason = explain_refusal(self.saturated_filters, ndv, sized_for)
            raise RefusedError(reason, file=self.file.name)

    def _count_most_distinct(self) -> float | None:
        """Count the distinct values of the chunk with the most values of which a filter was built:
        they say how large it should be. None if none was built."""
        # With numpy, which most changes do not need.
        from sbbf_tool.file.distinct import count_distinct

        footer = self.file.footer

        def most_values(key: ChunkKey) -> int:
            return footer.chunk_meta(*key).most_values

        key = max(self._prebuilt.filters, key=most_values, default=None)
        if key is None:
            return None
        row_group, column = key
        leaf = footer.columns[column]
        return count_distinct(self.file, row_group, leaf, most_values(key)).ndv

    @property
    def data_bytes_read(self) -> int:
        return sum(spooled_filter.bytes_read for spooled_filter in self.built_filters.values())

    @property
    def cross_checked(self) -> int:
        return sum(
            spooled_filter.verdict.is_cross_checked
            for spooled_filter in self.built_filters.values()
        )

    @property
    def not_cross_checked(self) -> int:
        return sum(
            spooled_filter.verdict.is_undecodable for spooled_filter in self.built_filters.values()
        )

    def patch(
        self, drop: Iterable[ChunkKey] = (), correct: Mapping[ChunkKey, FilterPlace] | None = None
    ) -> Patch:
        """Return the patch that writes the filters after the old file, as `plan_append` does; an
        empty patch if nothing changes.

        A copy leaves out the file's own tail, except for filters at its start that stay, and writes
        the others that stay again.
        """
        dropped = set(drop)
        size = self.file.source.size
        if not (self.filters or dropped or correct):
            return Patch(size, (), self.file.footer.raw, {})
        pieces: dict[ChunkKey, tuple[Piece, ...]] = {
            key: spooled_filter.pieces for key, spooled_filter in self.filters.items()
        }
        keep = size
        if not self.edit.append:
            keep, moved_filters = _plan_own_tail(self._find_own_tail(), dropped | pieces.keys())
            for key, place in moved_filters.items():
                stored = self.file.source.read(place.offset, place.length or 0)
                self._moved_checksums[key] = hash_value(stored)
                pieces[key] = (self.spool.append(stored),)
        return plan_append(self.file.footer, keep, pieces, dropped, correct)

    def _find_own_tail(self) -> OwnTail:
        if self._own_tail is None:
            self._own_tail = find_own_tail(self.file)
        return self._own_tail

    def has_no_own_tail(self) -> bool:
        """Return whether no earlier change by this package is at the end of the file."""
        return (
            not self.file.footer.has_locked_chunks()
            and self._find_own_tail().start == self.file.footer.end
        )

    def leftover_bytes(self, patch: Patch) -> int:
        """Count the bytes of the file's own tail that `patch` keeps although its footer does not
        refer to them; 0 if nothing changes."""
        if not patch.pieces and patch.size == self.file.source.size:
            return 0
        tail = self._find_own_tail()
        leftover = patch.keep - tail.start
        for key, place in tail.filters.items():
            if key not in patch.places and place.offset < patch.keep:
                leftover -= place.length or 0
        return max(0, leftover)

    def publish(
        self,
        patch: Patch,
        report: Callable[..., Report],
        compare: Callable[[ParquetFile], None] | None = None,
    ) -> Report:
        """Apply `patch` to the target, provided that `compare` accepts the new file; return the
        completed report.

        Nothing is written in a dry run, or if nothing changes in place or in a file of a table.
        `report` takes the fields that all such reports have. `compare` defaults to
        `ensure_matches_plan`. Raises RefusedError, WriteError and the errors of `compare`; the old
        file stays intact in every case.
        """
        edit = self.edit
        file = self.file
        is_new = edit.output is not None
        growth = patch.size - file.source.size
        is_written = bool(is_new or patch.pieces or growth)
        target = self.target
        if self.is_copied and not is_written:
            target = file.name
        old_end_hash = hash_end(file.source, file.source.size)
        new_end_hash = old_end_hash
        if is_written:
            new_source = PlannedSource(self.target, file.source, patch.keep, patch.pieces)
            new_end_hash = hash_end(new_source, patch.size)
        keeps_old_file = patch.keep == file.source.size < patch.size
        completed = report(
            file=file.name,
            output=redact(target),
            dry_run=edit.dry_run,
            old_bytes=file.source.size,
            new_bytes=patch.size,
            old_end_hash=old_end_hash,
            new_end_hash=new_end_hash,
            is_first_change=keeps_old_file and self.has_no_own_tail(),
        )
        if not edit.dry_run and is_written:
            compare = compare or partial(self.ensure_matches_plan, patch)
            self.warnings += publish(
                file, self.target, patch, compare, append=edit.append, begun=self._begun_copy
            )
        if not (is_new or self.is_copied):
            self.warnings += sink_warnings(self.target, growth, self.file.context.reuse.tables)
        if edit.allow_table_files:
            is_cut = patch.keep < file.source.size
            self.warnings += table_warnings(
                self.target,
                is_new=is_new,
                growth=growth,
                is_cut=is_cut,
                tables=self.file.context.reuse.tables,
            )
        changes: dict[str, Any] = {"warnings": tuple(self.warnings)}
        return replace(completed, **changes)

    def ensure_matches_plan(
        self, patch: Patch, fresh: ParquetFile, chunks: Iterable[ChunkKey] = ()
    ) -> None:
        """Raise SbbfError unless the new file is the old one apart from the filters of the chunks
        in the patch and in `chunks`.

        The new file must also have the filters that were built or moved, and the pages from which
        they were built.
        """
        ensure_same_footer(self.file, fresh, {*patch.places, *chunks})
        ensure_new_filters(self.file, fresh, patch, self.filters)
        ensure_moved_filters(self.file, fresh, patch, self._moved_checksums)
        # An append does not copy pages, and a store copies the version that was read: these pages
        # need no comparison.
        is_copy = not (self.edit.append or places.is_url(self.target))
        for key in self.built_filters:
            if is_copy:
                ensure_same_pages(self.file, fresh, key)
            self._meter.advance(
                f"verifying {self.file.footer.columns[key[1]].name}", chunk_bytes(self.file, key)
            )


def _plan_own_tail(
    tail: OwnTail, changed_chunks: Collection[ChunkKey]
) -> tuple[int, dict[ChunkKey, FilterPlace]]:
    """Return the bytes of the file to keep, and the filters after them that do not change, which
    must be written again."""
    keep = tail.start
    moved_filters = {}
    for key, place in sorted(tail.filters.items(), key=lambda item: item[1].offset):
        if key in changed_chunks:
            continue
        if place.offset == keep:
            keep += place.length or 0
        else:
            moved_filters[key] = place
    return keep, moved_filters
