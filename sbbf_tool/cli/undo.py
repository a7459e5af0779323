"""The last line of a command that has changed files in place: how to undo the change, or that no command does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli.page import Page
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.hints import Fix
from sbbf_tool.reports.rows import OK, REFUSED, Row

if TYPE_CHECKING:
    from sbbf_tool.reports.change import ChangeReport

_LABEL = "undo: "
_MOST_PATHS = 8


class Undo:
    """How to undo what a command did to its files, from the rows of all files."""

    def __init__(self, paths: Sequence[str], options: Sequence[str], reason: str, keys: str | None = None) -> None:
        self._paths = tuple(paths)
        """The PATHs of the command."""
        self._options = tuple(options)
        """Other options of the command that the command that undoes it needs too."""
        self._reason = reason
        """Why the command has no undo, for changes without one."""
        self._keys = keys
        """Path of the file with the keys of encrypted files."""
        self._rest = 0
        self._changed: list[str] = []
        self._are_first = True
        """Whether no changed file had a change by `sbbf` before."""
        self._fixes: set[Fix | None] = set()

    def add(self, row: Row[Any]) -> None:
        """Add the row of a file, also of one that was skipped, refused or failed."""
        report: ChangeReport | None = row.report
        if row.status in (OK, REFUSED) and report is not None and _is_changed(report):
            self._changed += [report.file] if len(self._changed) <= _MOST_PATHS else []
            # What `repair` has repaired does not come back.
            self._are_first &= report.is_first_change and not hasattr(report, "steps")
            fix: Fix | None = getattr(report, "undo", None)
            self._fixes.add(None if fix is None else replace(fix, files=()))
        else:
            self._rest += 1

    def show(self, page: Page) -> None:
        """Print the line; print nothing if no file was changed."""
        if not self._changed:
            return
        fix = next(iter(self._fixes))
        if fix is not None and len(self._fixes) == 1 and not self._rest:
            self._show_command(page, fix, self._paths, self._options)
        elif self._are_first and not self._rest and (self._paths or any(option.startswith("--files") for option in self._options)):
            self._show_command(page, Fix("remove_filters", (), keys=self._keys), self._paths, ("--ours", *self._options))
        elif len(self._changed) <= _MOST_PATHS and (self._are_first or (fix is not None and len(self._fixes) == 1)):
            # With the PATHs of the command, filters that other files had before would be removed too.
            fix, options = (Fix("remove_filters", (), keys=self._keys), ("--ours",)) if self._are_first else (fix, ())
            assert fix is not None
            self._show_command(page, fix, self._changed, (*options, *(each for each in self._options if each == "--allow-table-files")))
        elif None in self._fixes:
            page.say(f"{_LABEL}{self._reason}")
        else:
            page.say(f"{_LABEL}sbbf remove-filter, with the columns that were added to each changed file; --report saves them")

    def _show_command(self, page: Page, fix: Fix, paths: Sequence[str], options: tuple[str, ...]) -> None:
        is_long = len(paths) > _MOST_PATHS
        words = command_of(fix if is_long else replace(fix, files=tuple(paths)))
        # PATHs may follow `--`.
        page.command((*words[:2], *options, *words[2:]), f"{_LABEL}with the same PATHs: " if is_long else _LABEL)


def _is_changed(report: ChangeReport) -> bool:
    is_other = bool(getattr(report, "filters", ()) or getattr(report, "steps", ())) or report.old_bytes != report.new_bytes
    return is_other and not report.dry_run
