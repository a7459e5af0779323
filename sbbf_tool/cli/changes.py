"""The options of every command that changes files: where the results go, what is allowed, and where a report on the files is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.runner.works import Work

Row = TypeVar("Row", bound=FileRow)

_OPTIONS = (
    click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist. For one PATH."),
    click.option("--in-place", is_flag=True, help="Replace each file, in one step and only after the new one has been verified."),
    click.option("--allow-table-files", is_flag=True, help="Also change files of Delta, Iceberg, Hudi or Paimon tables."),
    click.option("-n", "--dry-run", is_flag=True, help="Do everything except write."),
)


@dataclass(frozen=True)
class Change:
    """How to change files, as stated on the command line."""

    files: Files
    output: str | None
    in_place: bool
    allow_table_files: bool
    dry_run: bool
    outputs: Outputs

    def options(self) -> dict[str, Any]:
        """Return the parameters of the operations that change one file."""
        return {
            "output": self.output,
            "in_place": self.in_place,
            "allow_table_files": self.allow_table_files,
            "dry_run": self.dry_run,
            "keys": self.files.keys,
        }

    def _options_of_files(self) -> list[str]:
        """Return the options by which another command changes the same files."""
        options = ["--allow-table-files"] if self.allow_table_files else []
        if self.files.names_from is not None:
            name, end = self.files.names_from
            options += ["--files0-from" if end == b"\0" else "--files-from", name]
        return options if self.files.where is None else [*options, "--where", self.files.where]

    def ensure_target(self) -> None:
        """Raise a usage error, before any file is read, unless exactly one option states where the results go."""
        from sbbf_tool.editing.targets import ensure_one_way

        ensure_one_way(self.output, self.in_place, self.dry_run)
        if self.output is not None and self.files.file is None:
            raise click.UsageError("--output is for one file; change many with --in-place")

    def report(self, work: Work[Row], view: View[Any]) -> int:
        """Change the files and report each; return the exit code. Raises the errors of `ensure_target`."""
        self.ensure_target()
        if self.in_place and not self.dry_run:
            from sbbf_tool.cli.undo import Undo

            view.undo = Undo(self.files.arguments, self._options_of_files(), view.not_undone)
        return report_files(self.files, work, view, self.outputs)


def over_changed_files(function: Callable[..., int]) -> Callable[..., int]:
    """Turn `function(change, ...)` into a command that changes files, with the options for files and for changes."""

    @output_options()
    @over_files()
    @wraps(function)
    def command(
        files: Files,
        output: str | None,
        in_place: bool,
        allow_table_files: bool,
        dry_run: bool,
        outputs: Outputs,
        **options: Any,
    ) -> int:
        return function(Change(files, output, in_place, allow_table_files, dry_run, outputs), **options)

    decorated: Callable[..., int] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
