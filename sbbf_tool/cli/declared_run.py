"""The run of `sbbf apply`: the declared files, then each declared table, with a commit of its own."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from sbbf_tool.cli.changes import ChangedFiles
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.output import complain
from sbbf_tool.reports.rows import Row
from sbbf_tool.running.table import Change
from sbbf_tool.storage.globs import matches_any

if TYPE_CHECKING:
    from sbbf_tool.running.declared_files import DeclaredFiles
    from sbbf_tool.running.table import Commits
    from sbbf_tool.running.work import Work

Report = TypeVar("Report")


class DeclaredRun(Files):
    """Files and tables with their work; the interface is that of the files of any command."""

    def __init__(self, files: ChangedFiles, work: Mapping[DeclaredFiles, Work[Any]], paths: Iterable[tuple[str, str]] = ()) -> None:
        """Take the work on each part, and the declared paths, which should each match a file, with the folders that they start from."""
        super().__init__(keys=files.keys, jobs=files.jobs, spark=files.spark, outputs=files.outputs)
        self.state = files.state
        self._unmatched = list(paths)
        """Declared paths that no file has matched so far, with their folders."""
        self._work = {files.of_selection(part.selection): own for part, own in work.items()}
        self.commits: Commits | None = None
        """The commits of all tables, if the command changes tables."""
        for part in self._work:
            if (table := part.selection.table) is not None:
                change = files.begin_change(table, Change("APPLY BLOOM FILTERS"), part.selection, may_lack_columns=True)
                if not files.dry_run:
                    change.show_cost(part.selection, None, None)
                part.table_change = change
        changes = [part.table_change for part in self._work if part.table_change is not None]
        if changes and not files.dry_run:
            self.commits = changes[0].outcome(changes[1:])

    @property
    def file(self) -> None:
        """No file: the output is about all declared files together."""

    @property
    def roots(self) -> list[str]:
        return [root for part in self._work for root in part.roots]

    def rows(self, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Yield the row of each file, from its own work."""
        for part, own in self._work.items():
            for row in part.rows(own):
                self._unmatched = [(path, folder) for path, folder in self._unmatched if not matches_any((path,), folder, row.path)]
                yield row
        for path, _ in self._unmatched:
            complain(f"sbbf: no file matches the declared path {path!r}", kind="warning")
