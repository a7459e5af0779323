"""`undo`: restore the files that a run changed, from the report that it saved."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.targets import ensure_one_way
from sbbf_tool.errors import SbbfError
from sbbf_tool.runner import works
from sbbf_tool.runner.discover import list_file
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.open_files import reports_of
from sbbf_tool.runner.past_run import read_changes
from sbbf_tool.runner.selection import Selection

if TYPE_CHECKING:
    from sbbf_tool.editing.past_change import PastChange
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.reports.remove import RemoveReport


def undo(
    report: str | os.PathLike[str],
    *,
    in_place: bool = False,
    dry_run: bool = False,
    allow_table_files: bool = False,
    keys: KeysLike = None,
    jobs: int | None = None,
) -> Iterator[RemoveReport | SbbfError]:
    """Restore the files that one run changed, byte for byte; yield a report or an error per file.

    `report` is the file that the run saved with `--report`, as JSON, JSON lines or Parquet; relative names of files in it are relative to
    the current folder. A file that has changed since is left as it is: its error is a ChangedError. So is a file whose old end the
    run replaced. Raises UsageError if the file is no such report, and RefusedError if the run changed a table.
    """
    ensure_one_way(None, in_place, dry_run)
    changes = read_changes(report)
    edit = Edit(in_place=in_place, dry_run=dry_run, allow_table_files=allow_table_files, keys=keys)
    return reports_of(LocalRunner(jobs).run(select_changes(changes), works.undo(changes, edit)))


def select_changes(changes: dict[str, PastChange]) -> Selection:
    """Select the files that a run changed; none is listed."""
    return Selection(()).only(map(list_file, changes))
