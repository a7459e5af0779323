"""The options that every command has: the files, the keys of encrypted files, and the runner."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.formats import FORMATS, TEXT, Outputs, output_options
from sbbf_tool.cli.options import SIZE, PureSetting, add_options
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.settings import spark_settings
from sbbf_tool.cli.values import names_of
from sbbf_tool.errors import RefusedError
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.reports.rows import ListedFile
    from sbbf_tool.running.progress import RunProgress
    from sbbf_tool.running.selection import Index, Selection
    from sbbf_tool.running.state import State
    from sbbf_tool.running.table import Table, TableChange
    from sbbf_tool.running.work import Runner, Work
    from sbbf_tool.spark.runner import Spark
    from sbbf_tool.verbs.verb import Verb

Report = TypeVar("Report")

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
    click.option(
        "--files-from",
        metavar="FILE",
        help="Read PATHs from this file, which lines or NUL bytes end; - is standard input.",
    ),
    click.option(
        "--as-files", is_flag=True, help="Take the files below the root, those of old versions too."
    ),
    click.option(
        "--where",
        metavar="PREDICATE",
        help="Only files of these partitions: \"dt >= '2026-01-01' and region = 'eu'\".",
    ),
    click.option(
        "--keys",
        metavar="FILE",
        callback=_read_keys,
        help="JSON file with keys.  [default: the one that SBBF_KEYS_FILE names, or the JSON "
        "in SBBF_KEYS]",
    ),
    click.option(
        "--jobs",
        type=_Count(min=1),
        metavar="N",
        help="Workers on this machine, for all files together.  [default: one per core]",
    ),
    click.option(
        "--on",
        "runner",
        metavar="spark[:MASTER]",
        help="Let Spark do the work. MASTER is local[4], spark://host:port, yarn, k8s://..., "
        "or a Connect server: sc://host:port."
        "  [default: local]",
    ),
)


NO_PARTITION = "no file is in the partitions that --where selects"
strict_option = click.option(
    "--strict", is_flag=True, help="Fail for each file that lacks a column."
)
state_option = click.option(
    "--state",
    "state_path",
    metavar="FILE",
    help="Keep outcomes in this file; skip unchanged files.",
)


def columns_option(text: str) -> Callable[[Any], Any]:
    """Build the option that passes `columns` to a command, with this help text."""
    return click.option(
        "-c",
        "--column",
        "columns",
        multiple=True,
        metavar="COLUMN",
        help=f"{text} (repeat for more).",
    )


page_limit_option = click.option(
    "--max-page-bytes",
    cls=PureSetting,
    type=SIZE,
    metavar="SIZE",
    help="The largest uncompressed page to read, such as 1GiB.  [default: see SECURITY.md]",
)


class Files:
    """The files named on a command line, how they are read and reported, and the runner that works
    on them."""

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
    strict: bool = False
    """Whether a file that lacks a column fails."""
    max_page_bytes: int | None = None
    state_path: str | None = None
    """The file with the outcomes of earlier runs."""
    outputs: Outputs = TEXT
    dry_run: bool = False

    takes_index = True
    """Whether the command only reads."""
    all_versions = False
    """Whether a table means the files of all its versions."""
    table_change: TableChange | None = None
    """The change of the table, if the command makes one."""
    rest: Sequence[Any] = ()
    """Rows that a run had when it ended early; see `Runner.rest`."""
    _selection: Selection | None = None

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)

    def of(self, names: tuple[str, ...]) -> Files:
        """Return a copy with these arguments as the PATHs."""
        files = copy(self)
        files.arguments = names
        files.table_change = None
        files.rest = ()
        files._selection = None
        for known in ("_paths_of_catalog_table", "_piped_names", "index", "table", "file"):
            files.__dict__.pop(known, None)
        return files

    def of_selection(self, selection: Selection) -> Files:
        """Return a copy with the files of a selection, in place of PATHs."""
        files = self.of(())
        files._selection = selection
        return files

    @property
    def is_listed(self) -> bool:
        """Whether the PATHs come from a file; no argument is then a PATH."""
        return self.files_from is not None

    @property
    def catalog_table(self) -> str | None:
        """The table in Spark's catalog that the only PATH names, such as `spark:db.events`."""
        path = next((path for path in self.arguments if path.startswith(_IN_CATALOG)), None)
        if path is None or self.is_listed:
            return None
        what_it_is = f"{path} is a table in Spark's catalog"
        if self.spark is None:
            raise click.UsageError(f"{what_it_is}: give --on spark too")
        if len(self.arguments) > 1:
            raise click.UsageError(f"{what_it_is}: give it as the only PATH")
        return path.removeprefix(_IN_CATALOG)

    @property
    def names(self) -> tuple[str, ...] | Iterator[str]:
        """The PATHs. Raises click.UsageError if there are none, or if they come from two places."""
        if self.catalog_table is not None:
            return self._paths_of_catalog_table
        if self.files_from is None:
            if not self.arguments:
                raise click.UsageError("no file was given: give PATH or --files-from")
            return self._paths
        if self.arguments:
            raise click.UsageError(
                "give PATHs either with --files-from or on the command line, not both: "
                f"{self.arguments[0]}"
            )
        is_file = self.files_from != "-" and os.path.isfile(self.files_from)
        return names_of(self.files_from) if is_file else self._piped_names

    @cached_property
    def _paths_of_catalog_table(self) -> tuple[str, ...]:
        """The root of the table, or its files if the tool does not know its format."""
        from sbbf_tool.spark.listing import list_catalog_table

        assert self.catalog_table is not None
        return list_catalog_table(self._spark_runner().spark, self.catalog_table)

    @cached_property
    def _piped_names(self) -> tuple[str, ...]:
        """The PATHs from a pipe. They are kept, because a pipe can be read only once and some
        commands list the files twice."""
        assert self.files_from is not None
        return tuple(names_of(self.files_from))

    @cached_property
    def index(self) -> Index | None:
        """The index that the only PATH means, which stands for other paths."""
        from sbbf_tool.extension import is_index
        from sbbf_tool.running.selection import find_index

        if len(self.arguments) > 1:
            name = next(filter(is_index, self.arguments), None)
            if name is not None:
                raise click.UsageError(f"{name} is an index: give it as the only PATH")
        if len(self.arguments) != 1 or self.is_listed:
            return None
        index = find_index(self.arguments[0])
        if index is None:
            return None
        if not self.takes_index:
            raise RefusedError(
                "an index is only read",
                file=index.name,
                hint="change the files themselves, and then update the index",
            )
        if self.as_files:
            raise click.UsageError(
                "an index stands for the files or the table that it names: leave out --as-files"
            )
        render.warn_of_writers(index.name, "index", "the files that are opened")
        return index

    @property
    def _paths(self) -> tuple[str, ...]:
        return self.arguments if self.index is None else self.index.paths

    @cached_property
    def table(self) -> Table | None:
        """The table that the only PATH means; None for files.

        Raises the errors of `find_table`, and click.UsageError for a table among several PATHs.
        """
        from sbbf_tool.running.selection import find_table, is_table

        if self.catalog_table is not None and not self.as_files:
            paths = self._paths_of_catalog_table
            return find_table(paths[0]) if len(paths) == 1 else None
        if self.is_listed or self.as_files:
            return None
        if len(self._paths) == 1:
            return find_table(self._paths[0])
        name = next(filter(is_table, self._paths), None)
        if name is not None:
            raise click.UsageError(
                f"{name} is a table: give it as the only PATH; --as-files takes the files below it"
            )
        return None

    @property
    def roots(self) -> list[str]:
        """The folders of tables, relative to which people read the names of their files, with a
        slash at the end."""
        table = self.selection.table
        return [] if table is None else [f"{table.location}/"]

    @cached_property
    def file(self) -> str | None:
        """The file that the only PATH names; None if there may be several files.

        Its report is the whole output."""
        if len(self.arguments) != 1 or self.is_listed or self.where is not None:
            return None
        if self.catalog_table is not None or self.index is not None or self.table is not None:
            return None
        from sbbf_tool.storage.places import find_single_file

        return find_single_file(self.arguments[0])

    @cached_property
    def state(self) -> State | None:
        """The state with the outcomes of earlier runs."""
        if self.state_path is None:
            return None
        from sbbf_tool.running.state import State
        from sbbf_tool.storage.listing import ensure_unlisted

        ensure_unlisted(self.state_path, self.arguments, "state")
        if self.state_path == "-":
            raise click.UsageError("a state is a file: give its name instead of -")
        render.warn_of_writers(self.state_path, "state", "the outcomes of files")
        return State(self.state_path, writes=not self.dry_run)

    def work(self, verb: Verb[Any], edit: Edit | None = None) -> Work[Any]:
        """Return the work of a verb on these files. A column that a file lacks is an error with
        --strict, and if only one file is named."""
        from sbbf_tool.running.work import Work

        is_strict = self.strict or self.file is not None
        return Work(
            verb, keys=self.keys, max_page_bytes=self.max_page_bytes, strict=is_strict, edit=edit
        )

    @property
    def selection(self) -> Selection:
        """The files as runners take them. Raises UsageError for a malformed predicate."""
        from sbbf_tool.running.selection import Selection

        if self._selection is not None:
            return self._selection
        where = None
        if self.where is not None:
            from sbbf_tool.file.partitions import Predicate

            where = Predicate(self.where)
        selection = Selection(
            self.names,
            where,
            self.file,
            self.table,
            all_versions=self.all_versions,
            index=self.index,
        )
        if self.table is not None:
            self._selection = selection  # it has read the table
        return selection

    def rows(self, work: Work[Report]) -> Generator[Row[Report], None, None]:
        """Yield the row of each file, and show progress; see `Runner.run`."""
        with show_progress(has_bytes=work.reads_data, listing=self._listing(work)) as progress:
            runner = self.runner(progress)
            self.rest = runner.rest
            run = runner.run
            if self.state is not None:
                from sbbf_tool.running.incremental import IncrementalRunner

                run = IncrementalRunner(runner, self.state).run
            if self.table_change is None:
                yield from run(self.selection, work)
            else:
                yield from self.table_change.rows(run, work)

    def combine(self, work: Work[Any]) -> Any:
        """Return the answer of a verb about all files together."""
        return work.combine(self.rows(work), self.selection, self.jobs)

    def _listing(self, work: Work[Any]) -> Callable[[], Iterable[ListedFile]] | None:
        """Return the function that lists the files again; None if they are in a store, where a
        listing costs requests."""
        from sbbf_tool.storage.places import is_url

        has_state = self.state is not None
        is_here = self.spark is None and not any(map(is_url, self.arguments))
        are_many = self.file is None and self.files_from is None and self.index is None
        if has_state or not is_here or not are_many:
            return None
        return lambda: self.selection.files(links=work.changes)

    def runner(self, progress: RunProgress | None = None) -> Runner:
        """Return the runner, which sets `progress`."""
        if self.spark is None:
            from sbbf_tool.running.local import LocalRunner

            return LocalRunner(self.jobs, progress)
        return self._spark_runner(progress)

    def _spark_runner(self, progress: RunProgress | None = None) -> Spark:
        """Return the runner on Spark, which starts its session the first time: all work of a
        command shares it."""
        assert self.spark is not None
        context = click.get_current_context()
        spark_runner: Spark | None = context.meta.get("sbbf.runner")
        if spark_runner is None:
            from sbbf_tool.spark.runner import Spark

            spark_runner = context.with_resource(Spark(*self.spark, progress))
            context.meta["sbbf.runner"] = spark_runner
        spark_runner.progress = progress
        return spark_runner


def over_files(
    metavar: str = "PATH...",
    *options: Callable[[Any], Any],
    kind: type[Files] = Files,
    formats: tuple[str, ...] = FORMATS,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Turn `function(files, ...)` into a command with the options of all commands over files, and
    these; its own options come first.

    The options that are fields of this `kind` of files are in `files`.
    """
    names: set[str] = set()
    for each in kind.__mro__:
        names.update(vars(each).get("__annotations__", ()))

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        @output_options(formats)
        @wraps(function)
        def command(runner: str | None, **given: Any) -> int:
            own = {name: given.pop(name) for name in names & given.keys()}
            return function(kind(**own, spark=_spark(runner, own["jobs"])), **given)

        arguments = click.argument("arguments", nargs=-1, metavar=metavar)
        return add_options(command, (*options, arguments, *_OPTIONS))

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
