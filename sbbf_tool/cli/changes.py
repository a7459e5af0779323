"""The options of every command that changes files: where the results go, what is allowed, and where a report on the files is saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats import Outputs, View, output_options
from sbbf_tool.cli.options import PureSetting, add_options
from sbbf_tool.cli.report import report_files
from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.hints import Rebuild
    from sbbf_tool.rules.filter_spec import FilterSpec
    from sbbf_tool.running.state import State
    from sbbf_tool.running.table import Table
    from sbbf_tool.running.work import Work


_output_option = click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist. For one PATH.")
_OPTIONS = (
    click.option("--in-place", is_flag=True, help="Replace each file. That is one step, after the new file has been verified."),
    click.option("--allow-table-files", is_flag=True, help="Also change files that belong to tables."),
    click.option("-n", "--dry-run", is_flag=True, help="Report what would be done; build and write nothing."),
    click.option(
        "--files-per-commit",
        cls=PureSetting,
        type=click.IntRange(min=1),
        metavar="N",
        help="Of a table: commit every N files.  [default: once]",
    ),
    click.option(
        "--commit",
        type=click.Choice(("conditional-put",)),
        help="With a log on S3: confirm that all writers create versions by conditional requests.",
    ),
)
change_options = partial(add_options, options=_OPTIONS)
"""Add the options of every command that changes many files: how, and what is allowed."""
force_option = click.option(
    "--force",
    is_flag=True,
    help="Also write filters that exclude too little. Their false-positive rate is above 50 % and above ten times the target.",
)


@dataclass(frozen=True)
class ChangeOptions:
    """How to change files, as stated on the command line."""

    files: Files
    output: str | None
    in_place: bool
    allow_table_files: bool
    dry_run: bool
    outputs: Outputs
    files_per_commit: int | None = None
    conditional_put: bool = False

    def edit(self, **options: Any) -> Edit:
        """Return how each file is changed, with further fields of `Edit`."""
        from sbbf_tool.editing.edit import Edit

        return Edit(
            self.output, self.in_place, dry_run=self.dry_run, allow_table_files=self.allow_table_files, keys=self.files.keys, **options
        )

    def _options_of_files(self) -> list[str]:
        """Return the options by which another command changes the same files."""
        options = ["--allow-table-files"] if self.allow_table_files else []
        if self.files.names_from is not None:
            options += ["--files-from", self.files.names_from]
        return options if self.files.where is None else [*options, "--where", self.files.where]

    def ensure_target(self) -> None:
        """Raise a usage error, before any file is read, unless exactly one option states where the results go."""
        from sbbf_tool.editing.targets import ensure_one_way

        if self.files.table is not None:
            if self.output is not None or not (self.in_place or self.dry_run):
                raise UsageError("a table changes in one commit", hint="change it in place")
            return
        ensure_one_way(self.output, self.in_place, self.dry_run)
        if self.output is not None and self.files.file is None:
            raise click.UsageError("--output is for one file; change many with --in-place")

    def report(
        self,
        work: Work[Any],
        view: View[Any],
        columns: tuple[str, ...] = (),
        *,
        spec: FilterSpec | None = None,
        rebuild: Rebuild | None = None,
        properties: Mapping[str, str | None] | None = None,
        may_lack_columns: bool = False,
    ) -> int:
        """Change the files and report each; return the exit code. Raises the errors of `ensure_target`.

        For a table, its commit records the columns (all if there are none) and sets `properties`; `spec` and `rebuild` are those of new
        filters. `may_lack_columns` is whether no file need have these columns.
        """
        self.ensure_target()
        names = () if may_lack_columns else columns
        if self.files.table is not None:
            self._begin_table_change(self.files.table, work, view, columns, spec, rebuild, properties or {}, may_lack_columns)
            return report_files(self.files, work, view, self.outputs, names)
        if self.in_place and not self.dry_run:
            from sbbf_tool.cli.undo import Undo

            view.undo = Undo(self.files.arguments, self._options_of_files(), view.not_undone, self.files.keys_path)
        return report_files(self.files, work, view, self.outputs, names)

    def _begin_table_change(
        self,
        table: Table,
        work: Work[Any],
        view: View[Any],
        columns: tuple[str, ...],
        spec: FilterSpec | None,
        rebuild: Rebuild | None,
        properties: Mapping[str, str | None],
        may_lack_columns: bool,
    ) -> None:
        """Prepare the change of a table, and print what it costs."""
        from sbbf_tool.running.table import Change

        selection = self.files.selection
        change = table.begin(
            Change(f"{work.verb.operation} BLOOM FILTERS", columns, properties),
            selection.where,
            files_per_commit=self.files_per_commit,
            conditional_put=self.conditional_put,
            dry_run=self.dry_run,
            keys=self.files.keys,
            may_lack_columns=may_lack_columns,
            on_cluster=self.files.spark is not None,
        )
        table.ensure_changeable(conditional_put=self.conditional_put)
        change.ensure_columns(selection)
        if not self.dry_run:
            view.commits = change.outcome(has_undo=view.schema == "add-filter")
        change.show_cost(selection, spec, rebuild)
        self.files.table_change = change


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
        files_per_commit: int | None,
        commit: str | None,
        **options: Any,
    ) -> int:
        change = ChangeOptions(files, output, in_place, allow_table_files, dry_run, outputs, files_per_commit, commit is not None)
        return function(change, **options)

    return _output_option(change_options(command))


def keeps_state(function: Callable[..., int]) -> Callable[..., int]:
    """Add `--state` to a command, whose first argument is `files` or `change`."""

    @wraps(function)
    def command(first: Files | ChangeOptions, *args: Any, state: str | None, **options: Any) -> int:
        if state is not None:
            files, is_dry = (first.files, first.dry_run) if isinstance(first, ChangeOptions) else (first, options.get("dry_run") is True)
            if isinstance(first, ChangeOptions) and first.output is not None:
                raise click.UsageError("--state is for files that are changed in place: leave out --output")
            from sbbf_tool.storage.listing import ensure_unlisted

            ensure_unlisted(state, files.arguments, "state")
            files.state = _open_state(state, writes=not is_dry)
        return function(first, *args, **options)

    return click.option("--state", metavar="FILE", help="Keep outcomes in this file; skip unchanged files.")(command)


def _open_state(path: str, *, writes: bool) -> State:
    from sbbf_tool.running.state import State
    from sbbf_tool.storage.whole import find_writer

    if path == "-":
        raise click.UsageError("a state is a file: give its name instead of -")
    if (writer := find_writer(path)) is not None:
        render.warn(f"{path}: the state can be changed by {writer}, who can thus choose the outcomes of files")
    return State(path, writes=writes)
