"""The options of every command that changes files: where the results go, what is allowed, and where a report on the files is saved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbbf_tool.cli.files import Files, over_files
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
    click.option(
        "--report", "report_path", metavar="FILE", help="Save the outcome of each file, as Parquet, or as JSON lines for *.jsonl."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document per file and, for several files, a summary."),
)


@dataclass(frozen=True)
class Change:
    """How to change files, as stated on the command line."""

    files: Files
    output: str | None
    in_place: bool
    allow_table_files: bool
    dry_run: bool
    report_path: str | None
    as_json: bool

    def options(self) -> dict[str, Any]:
        """Return the parameters of the operations that change one file."""
        return {
            "output": self.output,
            "in_place": self.in_place,
            "allow_table_files": self.allow_table_files,
            "dry_run": self.dry_run,
            "keys": self.files.keys,
        }

    def ensure_target(self) -> None:
        """Raise a usage error, before any file is read, unless exactly one option states where the results go."""
        from sbbf_tool.editing.targets import ensure_one_way

        ensure_one_way(self.output, self.in_place, self.dry_run)
        if self.output is not None and self.files.file is None:
            raise click.UsageError("--output is for one file; change many with --in-place")

    def report(self, work: Work[Row], view: View[Any]) -> int:
        """Change the files and report each; return the exit code. Raises the errors of `ensure_target`."""
        self.ensure_target()
        if self.report_path is None:
            return report_files(self.files, work, view, as_json=self.as_json)
        from sbbf_tool.runner.save import save_rows

        return report_files(self.files, work, view, as_json=self.as_json, report_writer=save_rows(self.report_path, work.row))


def over_changed_files(function: Callable[..., int]) -> Callable[..., int]:
    """Turn `function(change, ...)` into a command that changes files, with the options for files and for changes."""

    @over_files()
    @wraps(function)
    def command(
        files: Files,
        output: str | None,
        in_place: bool,
        allow_table_files: bool,
        dry_run: bool,
        report_path: str | None,
        as_json: bool,
        **options: Any,
    ) -> int:
        return function(Change(files, output, in_place, allow_table_files, dry_run, report_path, as_json), **options)

    decorated: Callable[..., int] = command
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated
