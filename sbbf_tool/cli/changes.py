"""The options of every command that changes files: where the results go, what is allowed, and where
a report on the files is saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import (
    COMMAND_LINE,
    CONDITIONAL_PUT,
    SAFETY,
    TABLE_FILES,
    WEAK_FILTERS,
    Decorator,
    allow_option,
    pure_setting,
)
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.frozen import replace
from sbbf_tool.hints import Fix
from sbbf_tool.reports.rows import LINK, NOT_APPLICABLE, OK, OTHER_NAME, REFUSED, Row

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.reports.change import ChangeReport
    from sbbf_tool.running.selection import Selection
    from sbbf_tool.verbs.verb import Verb


_OPTIONS = (
    SAFETY.flag(
        "--in-place",
        "Replace each file. That is one step, after the new file has been verified.",
        place=COMMAND_LINE,
    ),
    SAFETY.flag("-n", "--dry-run", "Report what would be done; build and write nothing."),
    pure_setting(
        "--files-per-commit",
        "Of a table: commit every N files.  [default: once]",
        type=click.IntRange(min=1),
        metavar="N",
    ),
)
_output_option = SAFETY.option(
    "-o",
    "--output",
    "Write the new file here; it must not exist. OUT/ is a folder for many: names below PATH stay.",
    place=COMMAND_LINE,
    metavar="OUT",
)
_ALLOW_TABLE_FILES = ("--allow", TABLE_FILES)


class ChangedFiles(Files):
    """Files that a command changes: where the results go, and what is allowed."""

    output: str | None = None
    in_place: bool = False
    files_per_commit: int | None = None
    allow: frozenset[str] = frozenset()
    """The risks that the command line accepts."""

    def edit(self, *, append: bool) -> Edit:
        """Return how each file is changed."""
        from sbbf_tool.editing.edit import Edit

        return Edit(
            self.output,
            self.in_place,
            append,
            self.dry_run,
            allow_table_files=TABLE_FILES in self.allow,
            force=WEAK_FILTERS in self.allow,
            files_per_commit=self.files_per_commit,
            conditional_put=CONDITIONAL_PUT in self.allow,
        )

    def undo(self, reason: str, *, is_partial: bool = False) -> Undo | None:
        """Return how to undo what is done in place; `reason` is why some changes have no undo.

        `is_partial` is whether the command takes only some of the files of its PATHs.
        """
        if not self.in_place or self.dry_run:
            return None
        options = []
        if self.as_files:
            options.append("--as-files")
        if self.table_format is not None:
            options += ["--as", self.table_format]
        if TABLE_FILES in self.allow:
            options += _ALLOW_TABLE_FILES
        if self.files_from is not None and not is_partial:
            options += ["--files-from", self.files_from]
        if self.where is not None and not is_partial:
            options += ["--where", self.where]
        paths = () if is_partial else tuple(dict.fromkeys(self.arguments))
        keys = None if self.keys is None else self.keys.path
        return Undo(paths, options, reason, keys)

    def change(
        self,
        verb: Verb[Any],
        view: View[Any],
        selection: Selection | None = None,
        *,
        append: bool = False,
    ) -> int:
        """Change the files, or those that were selected before, and report each; return the exit
        code."""
        plan = self.plan(verb, selection, edit=self.edit(append=append))
        tables = [part for part in plan.parts if part.change is not None]
        if not tables:
            view.undo = self.undo(view.not_undone, is_partial=plan.is_declared)
            return report_files(self.outputs, plan, view)
        from sbbf_tool.cli.commits import Commits, show_cost

        if not plan.is_dry_run:
            view.commits = Commits(plan.changes, has_undo=verb.name == "add-filter")
        if not (plan.is_dry_run and plan.is_declared):
            for part in tables:
                show_cost(part)
        return report_files(self.outputs, plan, view)


def over_changed_files(
    own: Sequence[Decorator],
    *options: Decorator,
    metavar: str = "PATH...",
    has_output: bool = True,
    risks: tuple[str, ...] = (),
) -> Callable[[Callable[..., int]], Command]:
    """Turn `function(files, ...)` into a command that changes files, with its own options, those
    for changes, and these, which other commands have too."""
    allow = allow_option(TABLE_FILES, CONDITIONAL_PUT, *risks)
    if has_output:
        own = (*own, _output_option)
    return over_files(*own, *_OPTIONS, allow, *options, metavar=metavar, kind=ChangedFiles)


_LABEL = "undo: "
_MOST_PATHS = 8


@dataclass
class Undo:
    """How to undo what a command did to its files, from the rows of all files."""

    paths: Sequence[str]
    """The PATHs of the command."""
    options: Sequence[str]
    """Other options of the command that the command that undoes it needs too."""
    reason: str
    """Why the command has no undo, for changes without one."""
    keys: str | None
    """Path of the file with the keys of encrypted files."""
    _rest: Counter[bool] = field(default_factory=Counter)
    _changed: list[str] = field(default_factory=list)
    _are_first: bool = True
    """Whether no changed file had a change by `sbbf` before."""
    _fixes: set[Fix | None] = field(default_factory=set)

    def add(self, row: Row[Any]) -> None:
        """Add the row of a file, also of one that was skipped, refused or failed."""
        report: ChangeReport | None = row.report
        if report is not None and row.status in (OK, REFUSED) and _has_changes(report):
            if len(self._changed) <= _MOST_PATHS:
                self._changed.append(report.file)
            # What `repair` has repaired does not come back.
            self._are_first &= report.is_first_change and not hasattr(report, "steps")
            fix: Fix | None = getattr(report, "undo", None)
            self._fixes.add(None if fix is None else replace(fix, files=()))
        elif row.reason not in (LINK, OTHER_NAME):  # whether the file has a column of the command
            self._rest[not (row.reason or "").startswith(NOT_APPLICABLE)] += 1

    def show(self, page: Page) -> None:
        """Print the line; print nothing if no file was changed."""
        if not self._changed:
            return
        fix = next(iter(self._fixes)) if len(self._fixes) == 1 else None
        has_paths = bool(self.paths) or "--files-from" in self.options
        has_rest = self._rest[True] if fix else self._rest
        options = list(self.options)
        allow = [option for option in self.options if option in _ALLOW_TABLE_FILES]
        if not fix:
            options.insert(0, "--ours")
            allow.insert(0, "--ours")
            if self._are_first:
                fix = Fix("remove_filters", (), keys=self.keys)
        if fix and has_paths and not has_rest:
            self._show_command(page, fix, self.paths, options)
        elif fix and len(self._changed) <= _MOST_PATHS:
            # With the PATHs of the command, filters that other files had before would be removed
            # too.
            self._show_command(page, fix, self._changed, allow)
        elif None in self._fixes and self._are_first:
            page.say(
                f"{_LABEL}sbbf remove-filter --ours, on each changed file; --report saves them"
            )
        elif None in self._fixes:
            page.say(f"{_LABEL}{self.reason}")
        else:
            page.say(
                f"{_LABEL}sbbf remove-filter, with the columns that were added to each changed "
                "file; --report saves them"
            )

    def lines_so_far(self) -> Iterator[str]:
        """Yield the line for a run that has ended early: the PATHs have files that it did not come
        to, which may have filters of their own."""
        self._rest[True] += 1
        text: list[str] = []
        self.show(Page(text.append))
        yield from "".join(text).splitlines()

    def _show_command(
        self, page: Page, fix: Fix, paths: Sequence[str], options: Sequence[str]
    ) -> None:
        label = _LABEL
        if len(paths) > _MOST_PATHS:
            label += "with the same PATHs: "
        else:
            fix = replace(fix, files=tuple(paths))
        page.command(command_of(fix, options), label)


def _has_changes(report: ChangeReport) -> bool:
    """Return whether a file was changed."""
    if report.dry_run:
        return False
    has_parts = any(getattr(report, name, ()) for name in ("filters", "steps"))
    return has_parts or report.old_bytes != report.new_bytes
