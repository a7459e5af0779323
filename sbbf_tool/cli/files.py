"""The options that every command has: the files, the keys of encrypted files, and the runner."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import FORMATS, TEXT, Outputs, output_options
from sbbf_tool.cli.options import (
    COLUMNS,
    COMMAND_LINE,
    FILES,
    KEYS,
    READING,
    RUNNER,
    SIZE,
    TABLES,
    Decorator,
    pure_setting,
    with_options,
)
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.settings import index_of, spark_settings
from sbbf_tool.cli.values import read_names

if TYPE_CHECKING:
    from sbbf_tool.running.plan import Plan
    from sbbf_tool.running.request import RunRequest
    from sbbf_tool.running.selection import ListedNames, Selection
    from sbbf_tool.spark.runner import Spark
    from sbbf_tool.verbs.verb import Verb

_IN_CATALOG = "spark:"
"""The beginning of a PATH that is a table in Spark's catalog."""


class _Count(click.IntRange):
    name = "whole number"


def _read_keys(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    if ctx.resilient_parsing:
        return None
    from sbbf_tool.file.keys import exposure_of, read_keys

    keys = read_keys(value)
    if keys is not None and keys.path is not None:
        warning = exposure_of(keys.path)
        if warning is not None:
            render.warn(warning)
    return keys


_OPTIONS = (
    FILES.option(
        "--files-from",
        "Read PATHs from this file, which lines or NUL bytes end; - is standard input.",
        place=READING,
        metavar="FILE",
        introduction="PATH is a Parquet file, a folder of them, a quoted glob, a URL or a table.",
    ),
    TABLES.flag(
        "--as-files",
        "Take the files below the root, those of old versions too.",
        introduction="Files of a table change in one commit: see sbbf help tables.",
    ),
    TABLES.option(
        "--as",
        "table_format",
        "The format of the table, if a folder has two.",
        metavar="FORMAT",
    ),
    FILES.option(
        "--where",
        "Only files of these partitions: \"dt >= '2026-01-01' and region = 'eu'\".",
        metavar="PREDICATE",
    ),
    KEYS.option(
        "--keys",
        "JSON file with keys.  [default: the one that SBBF_KEYS_FILE names, or the JSON in "
        "SBBF_KEYS]",
        place=COMMAND_LINE,
        metavar="FILE",
        callback=_read_keys,
        introduction="A key is never a word of the command line, which other users can read.",
    ),
    RUNNER.option(
        "--jobs",
        "Workers on this machine, for all files together.  [default: one per core]",
        type=_Count(min=1),
        metavar="N",
    ),
    RUNNER.option(
        "--on",
        "runner",
        "Let Spark do the work. MASTER is local[4], spark://host:port, yarn, k8s://..., or a "
        "Connect server: sc://host:port.  [default: local]",
        metavar="spark[:MASTER]",
        introduction="Processes of this machine do the work, or Spark: see sbbf help spark.",
    ),
)


strict_option = FILES.flag("--strict", "Fail for each file that lacks a column.")
state_option = FILES.option(
    "--state",
    "state_path",
    "Keep outcomes in this file; skip unchanged files.",
    place=COMMAND_LINE,
    metavar="FILE",
)


def columns_option(text: str) -> Decorator:
    """Build the option that passes `columns` to a command, with this help text."""
    return COLUMNS.option(
        "-c",
        "--column",
        "columns",
        f"{text} (repeat for more).",
        place=READING,
        multiple=True,
        metavar="COLUMN",
    )


page_limit_option = pure_setting(
    "--max-page-bytes",
    "The largest uncompressed page to read, such as 1GiB.  [default: see SECURITY.md]",
    type=SIZE,
    metavar="SIZE",
)


class Files:
    """The files named on a command line, how they are read and reported, and the runner that works
    on them: the values of options, and the request of a run that follows from them."""

    arguments: tuple[str, ...] = ()
    """The arguments that are not options: PATHs, and other arguments of the command."""
    files_from: str | None = None
    """The file that lists the PATHs."""
    where: str | None = None
    keys: Any = None
    jobs: int | None = None
    spark: tuple[str | None, dict[str, str]] | None = None
    """Master and settings, if Spark is the runner."""
    as_files: bool = False
    """Whether the root of a table means the files below it."""
    table_format: str | None = None
    """Format of the table that is meant where a folder has two."""
    strict: bool = False
    """Whether a file that lacks a column fails."""
    max_page_bytes: int | None = None
    state_path: str | None = None
    """The file with the outcomes of earlier runs."""
    outputs: Outputs = TEXT
    dry_run: bool = False
    keeps_outcomes = True

    needs_paths = True
    """Whether the command has no files of its own."""
    asks_index = False
    """Whether an index that the settings name says which files are opened."""

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)

    def of(self, names: tuple[str, ...]) -> Files:
        """Return a copy with these arguments as the PATHs."""
        files = copy(self)
        files.arguments = names
        return files

    @property
    def is_listed(self) -> bool:
        """Whether the PATHs come from a file; no argument is then a PATH."""
        return self.files_from is not None

    def request(self, **options: Any) -> RunRequest:
        """Return the request of a run over the files; `options` are fields that the command
        adds."""
        from sbbf_tool.running.request import RunRequest

        if self.state_path == "-":
            raise click.UsageError("a state is a file: give its name instead of -")
        return RunRequest(
            self._paths(),
            where=self.where,
            keys=self.keys,
            max_page_bytes=self.max_page_bytes,
            strict=self.strict,
            jobs=self.jobs,
            on=self._runner(),
            state=self.state_path,
            keeps_outcomes=self.keeps_outcomes,
            as_files=self.as_files,
            index=self._find_index(),
            table_format=self.table_format,
            watch=lambda plan, part: show_progress(
                has_bytes=part.work.reads_data, listing=plan.lister(part)
            ),
            **options,
        )

    def plan(self, verb: Verb[Any], selection: Selection | None = None, **options: Any) -> Plan:
        """Return the plan of a run over the files, or over what was selected of them, and warn of
        other users who can change what decides about it."""
        plan = self.request(**options).plan(verb, selection)
        for part in plan.parts:
            if part.selection.table is not None and part.selection.table.notice is not None:
                render.warn(part.selection.table.notice)
        if self.state_path is not None:
            render.warn_of_writers(self.state_path, "state", "the outcomes of files")
        if plan.index is not None:
            render.warn_of_writers(plan.index.name, "index", "the files that are opened")
        return plan

    def _find_index(self) -> str | None:
        """Return the index of the only PATH that the settings name, and print that it is used."""
        if not self.asks_index or self.is_listed or len(self.arguments) != 1:
            return None
        lake = self.arguments[0]
        index = index_of(click.get_current_context(), lake)
        if index is not None:
            render.note(
                f"sbbf: {index} is asked which files of {lake} to open (--config none: all)"
            )
        return index

    def _paths(self) -> tuple[str, ...] | ListedNames:
        """Return the PATHs. Raises click.UsageError if there are none, or if they come from two
        places."""
        if self.files_from is None:
            if not self.arguments and self.needs_paths:
                raise click.UsageError("no file was given: give PATH or --files-from")
            return self._catalog_paths() or self.arguments
        if self.arguments:
            raise click.UsageError(
                "give PATHs either with --files-from or on the command line, not both: "
                f"{self.arguments[0]}"
            )
        return read_names(self.files_from, as_files=self.as_files)

    def _catalog_paths(self) -> tuple[str, ...] | ListedNames | None:
        """Return the root of the table in Spark's catalog that the only PATH names, such as
        `spark:db.events`, or its files if the tool does not know its format; None for other
        PATHs."""
        path = next((path for path in self.arguments if path.startswith(_IN_CATALOG)), None)
        if path is None:
            return None
        what_it_is = f"{path} is a table in Spark's catalog"
        runner = self._runner()
        if runner is None:
            raise click.UsageError(f"{what_it_is}: give --on spark too")
        if len(self.arguments) > 1:
            raise click.UsageError(f"{what_it_is}: give it as the only PATH")
        from sbbf_tool.running.selection import ListedNames, is_table
        from sbbf_tool.spark.listing import list_catalog_table

        with runner:
            paths = list_catalog_table(runner.spark, path.removeprefix(_IN_CATALOG))
        if len(paths) == 1 and is_table(paths[0]):
            return paths
        return ListedNames(partial(iter, paths))

    def _runner(self) -> Spark | None:
        """Return the runner on Spark, which all work of a command shares; None for this machine."""
        if self.spark is None:
            return None
        context = click.get_current_context()
        runner: Spark | None = context.meta.get("sbbf.runner")
        if runner is None:
            from sbbf_tool.spark.runner import Spark

            runner = Spark(*self.spark, stays=True)
            context.meta["sbbf.runner"] = runner
            context.call_on_close(runner.close)
        return runner


def over_files(
    *options: Decorator,
    metavar: str = "PATH...",
    kind: type[Files] = Files,
    formats: tuple[str, ...] = FORMATS,
    command_class: type[Command] = Command,
) -> Callable[[Callable[..., int]], Command]:
    """Turn `function(files, ...)` into a command with these options, and those of all commands over
    files.

    The options that are fields of this `kind` of files are in `files`.
    """
    names: set[str] = set()
    for each in kind.__mro__:
        names.update(vars(each).get("__annotations__", ()))
    arguments = click.argument("arguments", nargs=-1, metavar=metavar)

    def decorate(function: Callable[..., int]) -> Command:
        @click.command(cls=command_class)
        @with_options(*options, arguments, *_OPTIONS)
        @output_options(formats)
        @wraps(function)
        def command(runner: str | None, **given: Any) -> int:
            own = {name: given.pop(name) for name in names & given.keys()}
            return function(kind(**own, spark=_spark(runner, own["jobs"])), **given)

        return command

    return decorate


def _spark(runner: str | None, jobs: int | None) -> tuple[str | None, dict[str, str]] | None:
    """Return the master, None for the configured one, and the settings of Spark; None if this
    machine does the work."""
    if runner is None or runner == "local":
        return None
    name, _, master = runner.partition(":")
    if name != "spark":
        raise click.UsageError(f"--on takes local, spark or spark:MASTER, not {runner}")
    if jobs is not None:
        raise click.UsageError(
            "--jobs is for this machine: with --on spark, configure the executors"
        )
    return master or None, spark_settings(click.get_current_context())
