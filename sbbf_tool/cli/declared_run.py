"""The run of `sbbf apply`: the declared files, then each declared table, with a commit of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.cli.files import Files
from sbbf_tool.cli.output import complain
from sbbf_tool.extensions.tables.table_changes import Commits, show_cost
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.storage.globs import matches_any

if TYPE_CHECKING:
    from sbbf_tool.cli.page import Page
    from sbbf_tool.extensions.tables.table import Table
    from sbbf_tool.extensions.tables.table_run import TableRun
    from sbbf_tool.runner.declared_files import DeclaredFiles
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)


class DeclaredRun(Files):
    """Files and tables with their work; the interface is that of the files of any command."""

    def __init__(
        self,
        files: Files,
        work: Mapping[DeclaredFiles, Work[Any]],
        *,
        changes: bool,
        files_per_commit: int | None,
        conditional_put: bool,
        paths: Iterable[tuple[str, str]] = (),
    ) -> None:
        """Take the work on each part, and the declared paths, which should each match a file, with the folders that they start from."""
        super().__init__((), None, None, files.keys, files.jobs, files.spark, each_file=files.each_file)
        self.state = files.state
        self._unmatched = list(paths)
        """Declared paths that no file has matched so far, with their folders."""
        self._work = {files.of_selection(part.selection): own for part, own in work.items()}
        self.commits: Commits | None = None
        """The commits of all tables, if the command changes tables."""
        tables = [(part, table) for part in self._work if (table := part.selection.table) is not None]
        for part, table in tables:
            if changes:
                table.ensure_changeable(conditional_put=conditional_put)
            part.table_run = self._table_run(part, table, changes, files_per_commit, conditional_put)
        if changes and tables:
            self.commits = _AllCommits([part.table_run for part, _ in tables if part.table_run is not None])

    @property
    def file(self) -> None:
        """No file: the output is about all declared files together."""

    def rows(self, work: Work[Row]) -> Generator[Row, None, None]:
        """Yield the row of each file, from its own work."""
        for part, own in self._work.items():
            for row in part.rows(own):
                self._unmatched = [(path, folder) for path, folder in self._unmatched if not matches_any((path,), folder, row.path)]
                yield row
        for path, _ in self._unmatched:
            complain(f"sbbf: no file matches the declared path {path!r}", kind="warning")

    def _table_run(self, part: Files, table: Table, changes: bool, files_per_commit: int | None, conditional_put: bool) -> TableRun:
        from sbbf_tool.extensions.tables.table import Change
        from sbbf_tool.extensions.tables.table_cost import estimate_cost
        from sbbf_tool.extensions.tables.table_run import TableRun

        run = TableRun(
            table,
            Change("APPLY BLOOM FILTERS"),
            part.selection.where,
            files_per_commit=files_per_commit,
            conditional_put=conditional_put,
            dry_run=not changes,
            keys=self.keys,
            may_lack_columns=True,
            on_cluster=self.spark is not None,
        )
        if changes:
            show_cost(run, estimate_cost(part.selection, None, self.keys))
        return run


class _AllCommits(Commits):
    """The last lines of a run that changed tables."""

    def __init__(self, runs: Sequence[TableRun]) -> None:
        self._commits = [Commits(run, has_undo=False) for run in runs]

    def add(self, path: str, sums: Mapping[str, int]) -> None:
        for commits in self._commits:
            commits.add(path, sums)

    @property
    def vanished(self) -> int:
        return sum(commits.vanished for commits in self._commits)

    def withdraw(self, total: Counter[str]) -> None:
        for commits in self._commits:
            commits.withdraw(total)

    @property
    def exit_code(self) -> int:
        return max(commits.exit_code for commits in self._commits)

    @property
    def may_leave_copies(self) -> bool:
        return any(commits.may_leave_copies for commits in self._commits)

    def show(self, page: Page) -> None:
        for commits in self._commits:
            commits.show(page)

    def lines(self) -> Iterator[str]:
        for commits in self._commits:
            yield from commits.lines()

    def document(self) -> dict[str, Any]:
        documents = [commits.document() for commits in self._commits]
        return {name: [item for document in documents for item in document[name]] for name in ("commits", "vanished")}
