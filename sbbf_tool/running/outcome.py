"""What a run amounts to: its files by outcome, the columns that they have, and the commits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import NothingToDoError
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import (
    FAILED,
    HAS_EVERY_FILTER,
    LEFT_OUT,
    LINK,
    NOT_APPLICABLE,
    REFUSED,
    SKIPPED,
    NamedColumn,
    Row,
)

if TYPE_CHECKING:
    from sbbf_tool.running.table import Commit, TableChange

NOTHING_TO_DO = "nothing to do"
"""The outcome of a file that is skipped because it is as it should be."""
_MOST_ERRORS = 20
_MOST_REASONS = 1000


def _named_columns(row: Row[Any]) -> tuple[NamedColumn, ...]:
    columns: tuple[NamedColumn, ...] = getattr(row.report, "named_columns", ())
    return columns


def is_not_applicable(row: Row[Any]) -> bool:
    """Return whether the file was skipped because it has none of the columns."""
    return row.status == SKIPPED and (row.reason or "").startswith(NOT_APPLICABLE)


def lacks_columns(row: Row[Any]) -> bool:
    """Return whether the file has none of the columns that the command names."""
    if is_not_applicable(row):
        return True
    columns = _named_columns(row)
    return bool(columns) and all(column.type is None for column in columns)


def reason_of(row: Row[Any]) -> str:
    """Return why a row has no result, or why the file lacks the columns."""
    reasons = [column.reason or "" for column in _named_columns(row)]
    return "; ".join(reasons) or (row.reason or "").removeprefix(f"{NOT_APPLICABLE}: ")


class NamedColumns:
    """Number of files by type of each column, and the files that lack it."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = tuple(dict.fromkeys(names))
        self._types = defaultdict[str, Counter[str]](Counter)
        self._missing = defaultdict[str, Counter[str]](Counter)
        """Number of files that lack the column, by the error, which has similar names."""
        self._uncounted = 0
        """Number of files that may have the columns: they failed, or had nothing to do."""

    def add(self, row: Row[Any]) -> None:
        """Count what one file has under the names."""
        if not self._names:
            return
        columns = _named_columns(row)
        if not columns and is_not_applicable(row):
            columns = tuple(NamedColumn(name, None, reason_of(row)) for name in self._names)
        self._uncounted += not columns and row.reason not in (LINK, *LEFT_OUT)
        for column in columns:
            if column.type is not None:
                self._types[column.name][column.type] += 1
            else:
                reasons = self._missing[column.name]
                reason = column.reason or ""
                if reason not in reasons and len(reasons) >= _MOST_REASONS:
                    reason = "other"
                reasons[reason] += 1

    def unknown(self, excluded: int) -> Iterator[str]:
        """Yield the error for each column that certainly no file has. Files that an index has
        excluded may have them."""
        if excluded:
            return
        for name in self._names:
            if self._missing[name] and not self._types[name] and not self._uncounted:
                yield self._missing[name].most_common(1)[0][0]

    def describe(self) -> Iterator[str]:
        """Yield lines about each column that only some files have, or that has several types."""
        for name in self._names:
            types = self._types[name]
            reasons = self._missing[name]
            may_be_in_others = self._uncounted and not types
            if len(types) + bool(reasons) <= (0 if may_be_in_others else 1):
                continue
            counts = types.most_common()
            if reasons:
                counts.append(("missing", reasons.total()))
            parts = [f"{kind} in {format_count(files, 'file')}" for kind, files in counts]
            yield f"column {name}: {', '.join(parts)}"
            if types:
                continue
            for reason, files in reasons.most_common(3):
                if "did you mean" in reason:
                    yield f"{format_count(files, 'file')}: {reason}"

    def documents(self) -> list[dict[str, Any]]:
        """Return the counts for the summary document."""
        documents = []
        for name in self._names:
            missing = self._missing[name].total()
            documents.append({"name": name, "types": dict(self._types[name]), "missing": missing})
        return documents


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

    @property
    def summary(self) -> Summary:
        commits = []
        vanished = []
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
        if row.status in (REFUSED, FAILED) and len(self.errors) < _MOST_ERRORS:
            self.errors.append(f"{row.path}: {row.reason}")
        if self.unmatched:
            from sbbf_tool.storage.globs import matches_any

            self.unmatched = [
                (path, folder)
                for path, folder in self.unmatched
                if not matches_any((path,), folder, row.path)
            ]


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
    if is_not_applicable(row):
        return NOT_APPLICABLE
    return NOTHING_TO_DO if not in_table or has_nothing_to_do(row) else SKIPPED
