"""The last line of a command that has changed files in place: how to undo the change, or that no command does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sbbf_tool.cli.page import Page
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.hints import Fix
from sbbf_tool.reports.rows import OK, REFUSED, FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.change import ChangeReport

_LABEL = "undo: "
_MOST_PATHS = 8


class Undo:
    """How to undo what a command did to its files, from the rows of all files."""

    def __init__(
        self, paths: Sequence[str], options: Sequence[str], reason: str, report: str | None = None, keys: str | None = None
    ) -> None:
        self._paths = tuple(paths)
        """The PATHs of the command."""
        self._options = tuple(options)
        """Other options of the command that the command that undoes it needs too."""
        self._reason = reason
        """Why the command has no undo, for changes without one."""
        self._report = report
        """The saved report of the run, if it can be read back."""
        self._keys = keys
        """Path of the file with the keys of encrypted files."""
        self._changes = self._extensions = self._rest = 0
        self._fixes: set[Fix | None] = set()

    def add(self, row: FileRow) -> None:
        """Add the row of a file, also of one that was skipped, refused or failed."""
        report: ChangeReport | None = getattr(row, "report", None)
        if row.status in (OK, REFUSED) and report is not None and _is_changed(report):
            self._changes += 1
            self._extensions += report.is_extension
            fix: Fix | None = getattr(report, "undo", None)
            self._fixes.add(None if fix is None else replace(fix, files=()))
        else:
            self._rest += 1

    def show(self, page: Page) -> None:
        """Print the line; print nothing if no file was changed."""
        if not self._changes:
            return
        fix = next(iter(self._fixes))
        is_simple = fix is not None and len(self._fixes) == 1 and not self._rest
        if not is_simple and self._report is not None and self._extensions == self._changes:
            # The report names the files.
            options = [option for option in self._options if option == "--allow-table-files"]
            options += [] if self._keys is None else ["--keys", self._keys]
            page.command(("sbbf", "remove-filter", "--undo", self._report, "--in-place", *options), _LABEL)
        elif None in self._fixes:
            page.say(f"{_LABEL}{self._reason}")
        elif fix is None or not is_simple:
            # With the same PATHs, the command would also remove filters that other files had before.
            page.say(f"{_LABEL}run sbbf remove-filter on each changed file; the other files may have had filters before")
        elif len(self._paths) > _MOST_PATHS:
            words = _with_options(command_of(fix), self._options)
            page.command(words, f"{_LABEL}with the same PATHs: ")
        else:
            page.command(_with_options(command_of(replace(fix, files=self._paths)), self._options), _LABEL)


def _is_changed(report: ChangeReport) -> bool:
    is_other = bool(getattr(report, "filters", ()) or getattr(report, "steps", ())) or report.old_bytes != report.new_bytes
    return is_other and not report.dry_run


def _with_options(words: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """Insert options after the name of the command, because PATHs may follow `--`."""
    return (*words[:2], *options, *words[2:])
