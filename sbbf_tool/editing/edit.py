"""The change of a file, for every verb: the one way from a name to a new version that was read back.

target    where the result goes, and whether it may
open      undo an interrupted append; open the file
build     filters from the values of column chunks, each verified against them
patch     the bytes to keep, those to append, the new footer
report    made before the file is published: an error here must not leave a changed file without a report
publish   written, compared with the plan, and only then renamed

A verb contributes the choice of chunks, the filters to build, the patch, the comparison and the report.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.display import redact
from sbbf_tool.editing.build import Meter, NewFilter, Progress, Sizing, SpooledFilter, build_filters, chunk_bytes, statistics_warnings
from sbbf_tool.editing.publish import ensure_new_filters, ensure_same_footer, ensure_same_pages, publish
from sbbf_tool.editing.targets import choose_target, table_warnings, undo_append
from sbbf_tool.errors import RefusedError, UsageError
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.page_limit import PageLimit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.hints import Hint
from sbbf_tool.parquet.footer import FilterPlace
from sbbf_tool.parquet.patch import ChunkKey, Patch, plan_append
from sbbf_tool.storage import places
from sbbf_tool.storage.spool import Spool

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.reports.add import AddReport
    from sbbf_tool.reports.remove import RemoveReport
    from sbbf_tool.reports.repair import RepairReport
    from sbbf_tool.reports.resize import ResizeReport

    Report = TypeVar("Report", bound=AddReport | RemoveReport | RepairReport | ResizeReport)


class PrebuiltFilters:
    """Filters that were built and verified before the file is opened for the change, by other processes or in an earlier attempt."""

    def __init__(self, spool: Spool, fingerprint: str | None = None) -> None:
        self.spool = spool
        self.fingerprint = fingerprint
        """Fingerprint of the file version from which they were built; None before any is known."""
        self.filters: dict[ChunkKey, SpooledFilter] = {}
        self._has_changed = False

    def keep_filters_of(self, file: ParquetFile) -> None:
        """Forget the filters unless this is the version from which they were built. Raises RefusedError where it changed once more."""
        if self.fingerprint == file.fingerprint:
            return
        if self.fingerprint is not None:
            if self._has_changed:
                raise RefusedError("the file keeps changing", file=file.name, hint="run the command again when its writer has finished")
            self._has_changed = True
        self.filters.clear()
        self.spool.clear()
        self.fingerprint = file.fingerprint


@dataclass(frozen=True, slots=True)
class Edit:
    """The target of changed files and the way to change them; one object serves a run, and can be sent to other processes and machines."""

    output: str | os.PathLike[str] | None = None
    """The name of the new file; for one file."""
    in_place: bool = False
    append: bool = False
    """With `in_place`: append to the file itself instead of a copy."""
    dry_run: bool = False
    """Do everything but publish."""
    allow_table_files: bool = False
    keys: KeysLike = field(default=None, repr=False, compare=False)
    """Keys of encrypted files, whose encrypted columns get encrypted filters."""
    limit: PageLimit = field(default_factory=PageLimit, compare=False)
    """The limit on the decompressed size that a page may state."""
    jobs: int | None = None
    """Column chunks of a file to work on concurrently; the cores where None."""
    progress: Progress | None = field(default=None, repr=False, compare=False)
    cross_checks: CrossChecks = field(default_factory=CrossChecks, repr=False, compare=False)
    """The kinds of column chunk that pyarrow has decoded in this run."""
    tables: places.TableFinder = field(default_factory=places.TableFinder, repr=False, compare=False)
    """The prefixes that this run knows to be tables, or not."""

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"jobs must be at least 1, not {self.jobs}")

    def target_of(self, path: str | os.PathLike[str]) -> str:
        """Return where the result goes. Raises UsageError unless exactly one way is chosen, RefusedError where it must not be written."""
        if self.append and not self.in_place:
            raise UsageError(
                "append requires in_place: it changes the file itself",
                file=os.fsdecode(path),
                hint=Hint("give {in_place} too", in_place=True),
            )
        return choose_target(path, self.output, self.in_place, self.allow_table_files, self.dry_run, self.append, self.tables)

    @contextmanager
    def open(self, path: str | os.PathLike[str], prebuilt: PrebuiltFilters | None = None) -> Iterator[OpenEdit]:
        """Open a file to change it; undo an interrupted append first, unless this is a dry run.

        `prebuilt` filters are used where the file is the version from which they were built; filters built here are added to it. Raises
        what `target_of` does, UnreadableError, WriteError.
        """
        target = self.target_of(path)
        warnings, truncated_to = undo_append(path, target, self.keys, self.dry_run)
        with ExitStack() as stack:
            file = stack.enter_context(ParquetFile.open(path, self.keys, self.limit))
            if prebuilt is None:
                prebuilt = PrebuiltFilters(stack.enter_context(places.open_spool(target, keeps=not self.dry_run)))
            prebuilt.keep_filters_of(file)
            yield OpenEdit(self, file, target, warnings, truncated_to, prebuilt)


class OpenEdit:
    """A file that is open for a change, and its new filters."""

    def __init__(
        self, edit: Edit, file: ParquetFile, target: str, warnings: list[str], truncated_to: int | None, prebuilt: PrebuiltFilters
    ) -> None:
        self.file, self.target, self.spool = file, target, prebuilt.spool
        self.warnings = warnings
        """Text for the report."""
        self.truncated_to = truncated_to
        """The length that the file had before an interrupted append, and has again."""
        self.filters: dict[ChunkKey, SpooledFilter] = {}
        """All filters to write."""
        self.built_filters: dict[ChunkKey, SpooledFilter] = {}
        """Those of them that were built from the data."""
        self._edit, self._prebuilt = edit, prebuilt
        self._meter = Meter(None, 0)

    def ensure_replaceable(self) -> None:
        """Raise RefusedError where the file could not take its new content, as far as can be checked before the work."""
        if self._edit.in_place:
            places.ensure_replaceable(self.target, append=self._edit.append)

    def add(self, key: ChunkKey, bloom: BloomFilter) -> None:
        """Write this filter for a chunk. Raises WriteError."""
        self.filters[key] = SpooledFilter.of(NewFilter(bloom, 0, 0), self.spool, self.file.filter_parts(*key, bloom.bitset))

    def build(self, sizes: Mapping[ChunkKey, Sizing]) -> None:
        """Build the filters of these chunks from their values, and verify each against them.

        Raises UnreadableError, WriteError, and RefusedError where the target cannot be written or values cannot be read with certainty.
        """
        edit, file, prebuilt = self._edit, self.file, self._prebuilt.filters
        if sizes:
            self.ensure_replaceable()
        missing = {key: size for key, size in sizes.items() if key not in prebuilt}
        bytes_to_read, bytes_to_verify = (sum(chunk_bytes(file, key) for key in keys) for keys in (missing, sizes))
        self._meter = Meter(edit.progress, bytes_to_read if edit.dry_run else bytes_to_read + bytes_to_verify)
        prebuilt |= build_filters(file, missing, self.spool, edit.jobs, self._meter, edit.cross_checks)
        self.built_filters = {key: prebuilt[key] for key in sizes}
        self.filters |= self.built_filters
        self.warnings += statistics_warnings(file, self.built_filters)

    @property
    def data_bytes_read(self) -> int:
        return sum(spooled_filter.bytes_read for spooled_filter in self.built_filters.values())

    @property
    def cross_checked(self) -> int:
        return sum(spooled_filter.verdict.is_cross_checked for spooled_filter in self.built_filters.values())

    @property
    def not_cross_checked(self) -> int:
        return sum(spooled_filter.verdict.is_undecodable for spooled_filter in self.built_filters.values())

    def patch(self, drop: Iterable[ChunkKey] = (), correct: Mapping[ChunkKey, FilterPlace] | None = None) -> Patch:
        """Return the patch that puts the filters after the whole old file, as `plan_append` does; an empty one where nothing is to do."""
        dropped, size = tuple(drop), self.file.source.size
        if not (self.filters or dropped or correct):
            return Patch(size, (), self.file.footer.raw, {})
        return plan_append(
            self.file.footer, size, {key: spooled_filter.pieces for key, spooled_filter in self.filters.items()}, dropped, correct
        )

    def publish(self, patch: Patch, report: Callable[..., Report], compare: Callable[[ParquetFile], None] | None = None) -> Report:
        """Make the target what `patch` says, once `compare` accepts the new file; return the completed report.

        Nothing is written in a dry run, and in place where nothing changes. `report` takes the fields that all such reports have;
        without `compare` it is `ensure_as_planned`. Raises RefusedError, WriteError and what `compare` raises; the old file is whole in
        every case.
        """
        edit, file = self._edit, self.file
        is_new, growth = edit.output is not None, patch.size - file.source.size
        completed = report(
            file=file.name, output=redact(self.target), dry_run=edit.dry_run, old_bytes=file.source.size, new_bytes=patch.size
        )
        if not edit.dry_run and (is_new or patch.pieces or growth):
            self.warnings += publish(file, self.target, patch, compare or partial(self.ensure_matches_plan, patch), append=edit.append)
        if edit.allow_table_files:
            self.warnings += table_warnings(self.target, is_new=is_new, growth=growth, tables=edit.tables)
        return replace(completed, warnings=tuple(self.warnings))

    def ensure_matches_plan(self, patch: Patch, fresh: ParquetFile, chunks: Iterable[ChunkKey] | None = None) -> None:
        """Raise SbbfError unless the new file is the old one apart from the filters of the `changed` chunks (those written, where None).

        It must also have the filters that were built, and the pages against which they were verified.
        """
        ensure_same_footer(self.file, fresh, patch.places if chunks is None else chunks)
        ensure_new_filters(self.file, fresh, patch, self.filters)
        # Where nothing is copied, or a store copies the version that was read, they are the same bytes that were read already.
        is_copy = not (self._edit.append or places.is_url(self.target))
        for key in self.built_filters:
            if is_copy:
                ensure_same_pages(self.file, fresh, key)
            self._meter.advance(f"verifying {self.file.footer.columns[key[1]].name}", chunk_bytes(self.file, key))
