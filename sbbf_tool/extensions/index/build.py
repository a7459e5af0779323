"""Building an index, and keeping it: new and changed files get a segment, and segments are merged
when there are many.

The order of the steps is in `target`: `current.json` is replaced as the last one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom.sizing import ensure_fpp
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.index.contents import Contents, IndexReport, SegmentEntry
from sbbf_tool.extensions.index.identity import meaning_of
from sbbf_tool.extensions.index.lake import ListedLake, mark_dead
from sbbf_tool.extensions.index.new_segment import Collected, merge_segments, write_segment
from sbbf_tool.extensions.index.target import IndexTarget
from sbbf_tool.extensions.index.units import FileUnits, IndexUnits
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.frozen import replace
from sbbf_tool.reports.rows import OK, ListedFile, Row
from sbbf_tool.running.file_times import wait_for_other_times
from sbbf_tool.running.outcome import lacks_columns, reason_of
from sbbf_tool.running.request import RunRequest
from sbbf_tool.running.selection import full_name_of
from sbbf_tool.verbs.verb import as_name

if TYPE_CHECKING:
    Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

MOST_SEGMENTS = 16
"""Number of segments that an update leaves; beyond it they are merged into one."""
_MOST_LINES = 20


def begin_index(
    paths: Paths,
    column: str,
    index: str,
    where: str | None,
    fpp: float | None,
    false_files: float | None,
) -> IndexTarget:
    """Return a new index, of which nothing is written yet. Raises UsageError, and RefusedError if
    it exists."""
    if fpp is not None:
        ensure_fpp(fpp)
    if false_files is not None and (fpp is not None or not false_files > 0):
        raise UsageError("an index has a false-positive rate, or a number of false files above 0")
    names = tuple(map(os.fsdecode, as_iterable(paths)))
    lake = tuple(map(full_name_of, names))
    return IndexTarget(os.fspath(index), Contents(lake, as_name(column), where, fpp, names=names))


def build_index(
    paths: Paths,
    column: str,
    index: str,
    *,
    where: str | None = None,
    fpp: float | None = None,
    false_files: float | None = None,
    dry_run: bool = False,
    **run: Any,
) -> IndexReport:
    """Index a column of all files of these paths, or of a table, in the new folder `index`, whose
    name ends with `.sbbfx`.

    `where` selects partitions, and `fpp` is the highest FPP of a file; `false_files`, the number of
    files that a value leaves besides those that have it, chooses it. The other options are `jobs`,
    `on`, `keys` and `max_page_bytes` of `sbbf_tool.run`. Raises SbbfError.
    """
    with begin_index(paths, column, index, where, fpp, false_files) as target:
        request = RunRequest((), **run)
        report, _ = index_files(target, request, false_files=false_files, dry_run=dry_run)
    return report


def update_index(
    index: str, *, compact: bool = False, dry_run: bool = False, **run: Any
) -> IndexReport:
    """Index the files that are new or have changed since; with `compact`, merge all segments. See
    `build_index` for other options."""
    with IndexTarget(os.fspath(index)) as target:
        report, _ = index_files(target, RunRequest((), **run), compact=compact, dry_run=dry_run)
    return report


def index_files(
    target: IndexTarget,
    request: RunRequest,
    *,
    false_files: float | None = None,
    compact: bool = False,
    dry_run: bool = False,
) -> tuple[IndexReport, list[Row[Any]]]:
    """Index the new and changed files of the lake of an index; return the report, and the rows of
    files that failed. Raises SbbfError.

    `request` says how the files are read. `false_files` is the number of files per key that the
    index is to leave besides those that have it; it chooses the FPP.
    """
    if not dry_run:
        target.begin()
    before = target.before
    request = replace(request, paths=before.lake, where=before.where)
    selection = request.select()
    lake = ListedLake(selection)
    if not lake.files and selection.where is not None:
        raise UnreadableError("no file is in the partitions that are selected")
    meaning = meaning_of(selection.table, before.column)
    # When the table gives the name to another column, no unit is of use.
    is_known = target.is_new or meaning == before.meaning
    former = mark_dead(target, lake if is_known else None)
    new = lake.list_new(former.known)
    fpp = _choose_fpp(before.fpp, false_files, len(lake.files))
    wait_for_other_times(new)
    verb = IndexUnits(before.column, fpp, dry_run, CrossChecks())
    with closing(Collected(target.folder)) as collected:
        update = _Update(lake, former.known, new, collected, dry_run)
        if new:
            with request.plan(verb, selection.only(new)).rows() as rows:
                for row in rows:
                    update.add(row)
        if target.is_new:
            update.ensure_useful()
        segments = former.segments
        gone = former.gone
        if is_known and not update.is_complete:
            segments = list(before.segments)
            gone = 0
        if not dry_run:
            segments = _write_segments(target.folder, segments, collected, compact)
            version = None if selection.table is None else selection.table.version
            after = replace(
                before, fpp=fpp, table_version=version, meaning=meaning, segments=tuple(segments)
            )
            if target.is_new or after != before:
                target.publish(after)
    return update.report(target, segments, gone), update.failed


def _choose_fpp(fpp: float | None, false_files: float | None, num_files: int) -> float | None:
    """Return the FPP of a file by which a value leaves so many of these files without it; `fpp` if
    their number is not chosen."""
    if false_files is None:
        return fpp
    return min(0.5, false_files / max(1, num_files))


class _Update:
    """What the rows of a run bring to an index."""

    def __init__(
        self,
        lake: ListedLake,
        known: AbstractSet[bytes],
        new: Sequence[ListedFile],
        collected: Collected,
        dry_run: bool,
    ) -> None:
        self._lake = lake
        self._known = known
        self._new = {file.path: file for file in new}
        self._collected = collected
        self._dry_run = dry_run
        self._new_files = 0
        self._files_without_filter = len(lake.unread)
        self._filter_bytes = 0
        self._data_bytes = 0
        self._planned_bytes = 0
        self._reasons = dict.fromkeys(lake.unread.values())
        """Why files may hold any value, each reason once."""
        self._errors: list[str] = []
        self.failed: list[Row[Any]] = []
        """The rows of files that failed."""
        self.is_complete = True
        """Whether every file that could not be read is known by its name, and no folder is
        missing."""
        self._has_useful = False
        self._useless: Row[FileUnits] | None = None
        for file in lake.unread_by_identity.values():
            self._add_unread(file)

    def add(self, row: Row[FileUnits]) -> None:
        """Take the row of a file."""
        if row.status == OK and not lacks_columns(row):
            self._has_useful = True
        else:
            self._useless = self._useless or row
        if row.status == OK and row.report is not None:
            self._add_report(self._new[row.path], row.report)
        else:
            self._add_failed(row)

    def _add_report(self, file: ListedFile, report: FileUnits) -> None:
        self._new_files += 1
        self._filter_bytes += report.filter_bytes
        self._data_bytes += report.data_bytes
        self._planned_bytes += report.index_bytes
        if report.reason is not None:
            self._files_without_filter += 1
            self._reasons[report.reason] = None
        fingerprint = self._lake.fingerprints[file.path]
        if fingerprint is None:
            self._add_unread(file)
        elif not self._dry_run:
            self._collected.add(file, report, fingerprint)

    def _add_failed(self, row: Row[FileUnits]) -> None:
        self.failed.append(row)
        self._errors.append(f"{row.path}: {row.reason}")
        del self._errors[_MOST_LINES:]
        has_fingerprint = self._lake.fingerprints.get(row.path) is not None
        # A folder that cannot be listed, or read, stands in the listing instead of its files.
        if has_fingerprint and not os.path.isdir(row.path):
            self._add_unread(self._new[row.path])
        else:
            self.is_complete = False

    def _add_unread(self, file: ListedFile) -> None:
        """Add a unit that says nothing of its file, unless the index has it."""
        identity = self._lake.identify(file)
        if identity not in self._known:
            self._collected.add_unread(file, identity)

    def ensure_useful(self) -> None:
        """Raise the error of the first file if no file has the column. Raises SbbfError."""
        if self._useless is None or self._has_useful:
            return
        if self._useless.status != OK:
            raise self._useless.to_error()
        raise UsageError(f"no file has the column: {reason_of(self._useless)}")

    def report(
        self, target: IndexTarget, segments: Sequence[SegmentEntry], gone: int
    ) -> IndexReport:
        """Return the report of the index with these segments, in which so many files are no
        more."""
        index_bytes = sum(entry.units_bytes + entry.blocks_bytes for entry in segments)
        if self._dry_run:
            index_bytes += self._planned_bytes
        return IndexReport(
            index=target.name,
            column=target.before.column,
            files=len(self._lake.files),
            new_files=self._new_files,
            vanished_files=gone,
            files_without_filter=self._files_without_filter,
            failed_files=len(self.failed),
            errors=tuple(self._errors),
            reasons=tuple(self._reasons)[:_MOST_LINES],
            units=sum(entry.units for entry in segments),
            classes=sum(len(entry.classes) for entry in segments),
            segments=len(segments),
            filter_bytes=self._filter_bytes,
            data_bytes=self._data_bytes,
            index_bytes=index_bytes,
            false_files=sum(entry.false_files for entry in segments),
            dry_run=self._dry_run,
        )


def _write_segments(
    folder: str, segments: Sequence[SegmentEntry], collected: Collected, compact: bool
) -> list[SegmentEntry]:
    """Return the segments of an index with a new one for the collected units; merge them if there
    are many."""
    after = list(segments)
    if collected.units:
        after.append(
            write_segment(folder, collected.classes(), collected.files, collected.false_files)
        )
    is_mergeable = len(after) > 1 or any(entry.dead for entry in after)
    if len(after) > MOST_SEGMENTS or (compact and is_mergeable):
        return [merge_segments(folder, after)]
    return after
