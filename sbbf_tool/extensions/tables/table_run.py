"""A run that changes a table: copies of its files with other filters, and commits that put them in
place of the files.

    live files -> rows of the runner, each with a copy -> commit
               -> deletion of copies that are not part of the table

Until a commit, the table is unchanged: copies that are not committed are deleted however the run
ends. If it is unknown whether a commit succeeded, nothing is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool import log
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import RefusedError, SbbfError, UncertainWriteError, UsageError
from sbbf_tool.extensions.tables.copies import RunMarker, copies_of_run, delete_copy
from sbbf_tool.extensions.tables.lake_table import LakeTable, Replacement
from sbbf_tool.file.table_file import new_run
from sbbf_tool.reports.rows import OK, REFUSED, SKIPPED, Row
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import Change, TableChange, change_properties
from sbbf_tool.storage import places
from sbbf_tool.storage.threads import DaemonThreads, result_of

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.partitions import PathPredicate
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")
_CONCURRENT_REQUESTS = 16
_MOST_LISTED = 16
"""Number of prefixes that are listed when a run ends early, which should take no more than a
second."""


class TableRun(TableChange):
    """One change of a table by one verb."""

    table: LakeTable

    def __init__(
        self,
        table: LakeTable,
        change: Change,
        where: PathPredicate | None = None,
        edit: Edit | None = None,
        *,
        may_lack_columns: bool = False,
        on_cluster: bool = False,
    ) -> None:
        """Describe the run; nothing is read or written before `rows`. Without `edit`, the files are
        changed in place.

        With `may_lack_columns`, the table need not have all columns of the change. `on_cluster`
        says that workers may write copies after the run was interrupted. Raises UsageError if the
        table cannot have the change.
        """
        self.edit = edit or Edit(in_place=True)
        files_per_commit = self.edit.files_per_commit
        if files_per_commit is not None and files_per_commit < 1:
            raise UsageError(
                f"the number of files per commit must be at least 1, not {files_per_commit}"
            )
        if change.properties and not table.takes_properties:
            raise UsageError(
                f"{table.format} has no properties by which later writers add filters",
                file=table.name,
                hint="leave the option out, and run the command again for new files: it skips "
                "those that have filters",
            )
        super().__init__(table, change, on_cluster=on_cluster)
        self._where = where
        self._may_lack_columns = may_lack_columns
        self._pending: list[Replacement] = []
        self._bytes_by_path: dict[str, int] = {}
        self._only_removes = True
        """Whether the pending copies differ from the files only in filters that are gone."""
        self._new_names: set[str] = set()
        """The names of the copies and of other new files that commits contain: each is unique, and
        a table may spell one folder in several ways."""
        self._is_commit_uncertain = False

    def rows(
        self,
        run: Callable[[Selection, Work[Report]], Generator[Row[Report], None, None]],
        work: Work[Report],
    ) -> Generator[Row[Report], None, None]:
        """Yield the row of each live file, with the runner's `run`, and commit; the last commit
        follows the last row.

        If the caller stops before the last row, the copies since the last commit are deleted.
        Raises the errors of `Table.commit`, RefusedError if the table cannot be changed, and
        UsageError if it lacks a column of the change.
        """
        if self.table.why_unchangeable is not None:
            raise self.table.why_unchangeable
        self.table.ensure_changeable(conditional_put=self.edit.conditional_put)
        selection = Selection(self.table.name, self._where, table=self.table, run=new_run())
        self.ensure_columns(selection, work.context)
        for live in selection.live_files():
            if live.unchangeable:
                yield Row(live.path, SKIPPED, live.unchangeable)
        recorded = {live.path: live.bytes for live in selection.live_files()}
        if self.edit.dry_run:
            for planned in run(selection, work):
                yield _refuse_other_length(planned, recorded.get(planned.path))
            return
        with ExitStack() as stack:
            stack.enter_context(self._mark(selection))
            # Rows end, and with them the processes that make copies, before copies are deleted.
            stack.push(
                lambda *error: self._delete_copies(selection, ends_early=error[0] is not None)
            )
            for row_of_copy in stack.enter_context(closing(run(selection, work))):
                row = _refuse_other_length(row_of_copy, recorded.get(row_of_copy.path))
                self._collect(row)
                yield row
                if len(self._pending) == self.edit.files_per_commit:
                    self._commit()
            if self._pending:
                self._commit()
            self._set_properties()

    def _mark(self, selection: Selection) -> RunMarker:
        assert selection.run is not None
        return RunMarker(
            self.table.marker_folder,
            selection.run,
            self.table.marker_text,
            stays_after_error=self.on_cluster,
        )

    def ensure_columns(self, selection: Selection, context: Context) -> None:
        """Raise UsageError if the table does not have a column of the change, or has its values
        only as those of partitions.

        Nothing is raised if the table need not have them.
        """
        if self._may_lack_columns:
            return
        selection.ensure_stored(self.change.columns)
        selection.ensure_columns(self.change.columns, context)

    def _collect(self, row: Row[Any]) -> None:
        """Keep the copy of a row for the next commit."""
        report: Any = row.report
        if row.status not in (OK, REFUSED) or report is None or report.output == report.file:
            return
        modified: float | None = None
        if not places.is_url(report.output):
            status = places.size_and_time(report.output)
            modified = None if status is None else status[1]
        modified_ms = int(1000 * (modified or time.time()))
        self._pending.append(Replacement(row.path, report.output, report.new_bytes, modified_ms))
        self._bytes_by_path[row.path] = report.old_bytes
        self._only_removes &= report.only_removes
        self.are_first_changes &= report.is_first_change and not hasattr(report, "steps")

    def _commit(self) -> None:
        """Commit the pending copies; delete those of files that vanished. Raises the errors of
        `Table.commit`."""
        self._leave_out_missing()
        if not self._pending:
            return
        change = self.change
        if self._only_removes:
            change = change._replace(operation="REMOVE BLOOM FILTERS")
        self._is_commit_uncertain = True
        try:
            commit = self.table.commit(tuple(self._pending), change)
        except UncertainWriteError:
            raise
        except SbbfError:
            self._is_commit_uncertain = False
            raise
        if commit.num_files:
            log.info("committed %s files: %s", commit.num_files, commit.version)
            self.commits.append(commit)
        self._new_names.update(commit.new_names)
        self.vanished += commit.vanished
        vanished = set(commit.vanished)
        for path, size in self._bytes_by_path.items():
            if path not in vanished:
                self.old_bytes += size
        self._is_commit_uncertain = False
        committed = self._pending
        self._pending = []
        self._only_removes = True
        self._bytes_by_path.clear()
        _delete([copy.new_path for copy in committed if copy.old_path in vanished])
        for copy in committed:
            if copy.old_path not in vanished:
                self._new_names.add(copy.new_path.rpartition("/")[2])

    def _leave_out_missing(self) -> None:
        """Leave out the files whose copy is gone, or is not the one that was made: a clean-up may
        have deleted it since."""
        paths = [copy.new_path for copy in self._pending]
        pool = DaemonThreads(_CONCURRENT_REQUESTS, "sbbf-size")
        futures = [pool.submit(places.size_and_time, path) for path in paths]
        statuses = list(map(result_of, futures))
        pool.close()
        present = []
        for copy, status in zip(self._pending, statuses, strict=True):
            if status is not None and status[0] == copy.new_bytes:
                present.append(copy)
                continue
            self.files_without_copy.append(copy.old_path)
            self.vanished.append(copy.old_path)
            del self._bytes_by_path[copy.old_path]
        self._pending = present

    def _set_properties(self) -> None:
        """Set the properties of the change if no commit of files has done so, and if the table does
        not have them."""
        properties = self.change.properties
        if not properties or self.commits:
            return
        properties_after = change_properties(self.table.properties, properties)
        self.sets_properties_alone = properties_after != self.table.properties
        if self.sets_properties_alone:
            self.table.commit((), self.change)

    @property
    def changed_properties(self) -> dict[str, str | None]:
        if not self.commits and not self.sets_properties_alone:
            return {}
        before = self.table.properties
        properties = self.change.properties
        return {name: text for name, text in properties.items() if text != before.get(name)}

    def _delete_copies(self, selection: Selection, ends_early: bool) -> None:
        """Delete the copies of this run that no commit contains, also those whose row was lost with
        its process.

        The latter are looked for among objects only if the run ends early, and in few folders:
        listing takes requests.
        """
        if self._is_commit_uncertain:
            return
        _delete([copy.new_path for copy in self._pending])
        self._pending = []
        table_files = selection.table_files()
        folders = set[str]()
        for live in selection.live_files():
            file = table_files.file(live.path)
            folders.add(file.path.rpartition("/")[0] if file.folder is None else file.folder)
        if not (ends_early and len(folders) <= _MOST_LISTED):
            folders = {folder for folder in folders if not places.is_url(folder)}
        for folder in folders:
            copies = copies_of_run(folder, selection.run or "")
            _delete([path for path in copies if path.rpartition("/")[2] not in self._new_names])


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        try:
            delete_copy(path)
        except SbbfError as error:
            # No version refers to it, so that a later clean-up can delete it.
            log.info("%s", error)


def _refuse_other_length(row: Row[Report], recorded: int | None) -> Row[Report]:
    """Return the row, or a refusal if the file has another length than the table records: what it
    records may be of other rows."""
    report: Any = row.report
    if row.status != OK or recorded is None:
        return row
    if getattr(report, "old_bytes", recorded) == recorded:
        return row
    if report.output != report.file and not report.dry_run:
        _delete([report.output])
    reason = (
        f"the file has {report.old_bytes:,} bytes, but the table records {recorded:,}: its "
        "statistics and deletions may be of another file; restore the file, or let a writer of "
        "the table replace it"
    )
    return Row(row.path, REFUSED, reason, RefusedError.exit_code, row.seconds)
