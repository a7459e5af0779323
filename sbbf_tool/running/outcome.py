"""What a run amounts to: its files by outcome, the columns that they have, and the commits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import NothingToDoError
from sbbf_tool.frozen import Frozen
from sbbf_tool.reports.rows import (
    FAILED,
    HAS_EVERY_FILTER,
    LEFT_OUT,
    LINK,
    NOT_APPLICABLE,
    REFUSED,
    SKIPPED,
    Row,
)
from sbbf_tool.running.named_columns import NamedColumns
from sbbf_tool.storage.globs import matches_any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sbbf_tool.running.table import Commit, TableChange

NOTHING_TO_DO = "nothing to do"
"""The outcome of a file that is skipped because it is as it should be."""
_MOST_ERRORS = 20


class Summary(Frozen):
    """What a run did that changed files."""

    files: Mapping[str, int]
    """Number of files by status: `ok`, `skipped`, `refused` and `failed`."""
    errors: tuple[str, ...]
    """The first 20 files that were refused or failed, each with the reason."""
    commits: tuple[Commit, ...] = ()
    """The commits of a table."""
    vanished: tuple[str, ...] = ()
    """Files of a table that other commits replaced or removed before this run could."""


class Outcome:
    """What a run did so far; complete when all rows were taken."""

    def __init__(
        self,
        columns: Iterable[str],
        changes: Sequence[TableChange],
        unmatched: Iterable[tuple[str, str]],
    ) -> None:
        self._changes = changes
        self.statuses = Counter[str]()
        """Number of files by status."""
        self.counts = Counter[str]()
        """Number of files by status; of skipped ones by why, as far as people count that apart."""
        self.unchanged = 0
        """Number of files whose outcome the state has."""
        self.errors: list[str] = []
        """The first files that were refused or failed, each with the reason."""
        self.columns = NamedColumns(tuple(columns))
        """What files have under the names of the columns."""
        self.unmatched = list(unmatched)
        """Declared paths that no file has matched so far, with their folders."""
        self.last_path: str | None = None

    @property
    def summary(self) -> Summary:
        commits: list[Commit] = []
        vanished: list[str] = []
        for change in self._changes:
            commits += change.commits
            vanished += change.vanished
        return Summary(dict(self.statuses), tuple(self.errors), tuple(commits), tuple(vanished))

    def add(self, row: Row[Any], *, in_table: bool) -> None:
        """Count the row of a file."""
        self.statuses[row.status] += 1
        self.counts[_kind_of(row, in_table=in_table)] += 1
        self.unchanged += row.is_unchanged
        self.columns.add(row)
        self.last_path = row.path
        if row.status in (REFUSED, FAILED) and len(self.errors) < _MOST_ERRORS:
            self.errors.append(f"{row.path}: {row.reason}")
        for path, folder in [*self.unmatched]:
            if matches_any((path,), folder, row.path):
                self.unmatched.remove((path, folder))


def has_nothing_to_do(row: Row[Any]) -> bool:
    """Return whether that is why a file is skipped: files of a table are skipped for more
    reasons."""
    if row.reason == HAS_EVERY_FILTER or row.report is not None:
        return True
    return isinstance(row.error, NothingToDoError)


def _kind_of(row: Row[Any], *, in_table: bool) -> str:
    """Return the status of a file; of a skipped one, why."""
    if row.reason in (LINK, *LEFT_OUT):
        return str(row.reason)
    if row.status != SKIPPED:
        return row.status
    if (row.reason or "").startswith(NOT_APPLICABLE):
        return NOT_APPLICABLE
    return NOTHING_TO_DO if not in_table or has_nothing_to_do(row) else SKIPPED
