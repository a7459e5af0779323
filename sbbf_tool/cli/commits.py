"""A command that changes tables: what it costs, before it starts; at the end, the commits and how
to undo them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli import render
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.display import redact
from sbbf_tool.errors import RefusedError
from sbbf_tool.frozen import replace
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.running.change_cost import ChangeCost, estimate_cost

if TYPE_CHECKING:
    from sbbf_tool.cli.page import Page
    from sbbf_tool.running.plan import PlanPart
    from sbbf_tool.running.table import Commit, Table, TableChange

_MOST_NAMES = 3
"""Number of vanished files whose names are printed."""


def show_cost(part: PlanPart) -> None:
    """Print what the change of a table costs, before it starts, to standard error."""
    table = part.selection.table
    assert table is not None
    cost = estimate_cost(part)
    parts = [f"{format_count(cost.files, 'file')}, {format_size(cost.bytes)}"]
    if cost.filter_bytes:
        parts.append(f"filters of up to about {format_size(cost.filter_bytes)}")
    if cost.filter_bytes != 0:
        parts.append(_describe_copies(table, cost))
    elif cost.sampled_files == cost.files:
        parts.append("nothing to do")
    else:
        parts.append(f"nothing to do in the first {cost.sampled_files} of them that were read")
    render.note(f"sbbf: {redact(table.name)}: {table.format}, {table.version}: {'; '.join(parts)}")


def _describe_copies(table: Table, cost: ChangeCost) -> str:
    if cost.shares_blocks:
        return "copies share the blocks of the old files"
    return (
        f"copies take at most as much again, and at most {format_size(cost.bytes)} of old files "
        f"stay {table.old_files_stay}"
    )


class Commits:
    """The last lines of a command that changed tables, in place of `Undo` of a command that changed
    files."""

    def __init__(self, changes: Sequence[TableChange], *, has_undo: bool) -> None:
        self._changes = changes
        self._has_undo = has_undo
        """Whether `sbbf remove-filter` undoes the change, also of files that `sbbf` had changed."""
        self._sums_by_path: dict[str, Mapping[str, int]] = {}

    def add(self, path: str, sums: Mapping[str, int]) -> None:
        """Take what a file adds to the sums of the command."""
        self._sums_by_path[path] = sums

    @property
    def vanished(self) -> int:
        """Number of files that other commits replaced or removed before this run could."""
        return sum(len(change.vanished) for change in self._changes)

    def withdraw(self, total: Counter[str]) -> None:
        """Subtract from the sums what copies added that no commit contains."""
        for change in self._changes:
            for path in change.vanished:
                total.subtract(self._sums_by_path.get(path, {}))

    @property
    def exit_code(self) -> int:
        """The exit code that the commits call for: that of a refusal if copies were lost, or other
        commits came first for every file."""
        for change in self._changes:
            if change.files_without_copy or (change.vanished and not change.commits):
                return RefusedError.exit_code
        return 0

    @property
    def may_leave_copies(self) -> bool:
        """Whether workers may write copies after the run was interrupted."""
        return any(change.on_cluster for change in self._changes)

    def show(self, page: Page) -> None:
        """Print the commits and how to undo them."""
        for change in self._changes:
            self._show_change(page, change)

    def _show_change(self, page: Page, change: TableChange) -> None:
        table = change.table
        name = f"{redact(table.name)}: " if len(self._changes) > 1 else ""
        if not change.commits:
            what = "no file" if change.sets_properties_alone else "nothing"
            page.say(f"{name}{what} was committed")
        for key, text in change.changed_properties.items():
            if text is None:
                page.say(f"removed property {key} of the table")
            else:
                page.say(f"set property {key} = {text} of the table")
        for line in _lines_of(change):
            page.say(f"{name}{line}")
        if not change.old_bytes:
            return
        page.say(f"{name}{page.bytes(change.old_bytes)} of old files stay {table.old_files_stay}")
        undo = change.commits[0].undo
        if undo is None or table.undo_lacks_names:
            self._show_command(page, change)
        if undo is not None:
            page.say(f"undo: {undo}")

    def _show_command(self, page: Page, change: TableChange) -> None:
        """Print the command of this package that undoes a change, if one does."""
        fix = Fix("remove_filters", (change.table.name,))
        options: tuple[str, ...] = ()
        if change.are_first_changes:
            options = ("--ours",)
        elif self._has_undo:
            fix = replace(fix, columns=change.change.columns)
        else:
            return
        page.command(command_of(fix, options), "undo: ")

    def lines(self) -> Iterator[str]:
        """Yield a line per commit, and one about the files that vanished."""
        for change in self._changes:
            yield from _lines_of(change)

    def document(self) -> dict[str, Any]:
        """Return commits and vanished files for the summary document."""
        commits: list[dict[str, Any]] = []
        vanished: list[str] = []
        for change in self._changes:
            commits += map(_describe, change.commits)
            vanished += map(redact, change.vanished)
        return {"commits": commits, "vanished": vanished}


def _describe(commit: Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "files": commit.num_files,
        "rebuilds": commit.rebuilds,
        "undo": commit.undo,
    }


def _lines_of(change: TableChange) -> Iterator[str]:
    for commit in change.commits:
        files = format_count(commit.num_files, "file")
        place = "as" if commit.is_new_version else "in"
        again = ""
        if commit.rebuilds:
            times = format_count(commit.rebuilds, "time")
            again = f", built again {times} for commits that came first"
        yield f"committed {files} {place} {commit.version}{again}; no row changed"
    without_copy = set(change.files_without_copy)
    replaced = [path for path in change.vanished if path not in without_copy]
    if replaced:
        files = format_count(len(replaced), "file")
        yield f"another commit replaced or removed {files} meanwhile; {_call_for_run(replaced)}"
    if without_copy:
        files = format_count(len(change.files_without_copy), "file")
        again = _call_for_run(change.files_without_copy)
        yield f"the copies of {files} were deleted meanwhile; {again}"


def _call_for_run(paths: Sequence[str]) -> str:
    names = [redact(path) for path in paths[:_MOST_NAMES]]
    if len(paths) > _MOST_NAMES:
        names.append("...")
    return f"run the command again: {', '.join(names)}"
