"""The files that a command line names, one after the other; one that fails does not stop the rest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say, stop_if_unread
from sbbf_tool.cli.spelling import spell
from sbbf_tool.errors import SbbfError, UsageError
from sbbf_tool.storage.temporary import listing_once

Report = TypeVar("Report")


def each_file(names: tuple[str, ...], work: Callable[[str], int], *, changes: bool = False) -> Iterator[int]:
    """The exit code of `work` on every file that the names mean: a file, the Parquet files below a folder, those of a glob.

    The error of one file is told and its code yielded, and the next file follows; what is wrong with the request itself ends it. Work
    that `changes` files gets none that a folder or glob leads to by a link: others may have put it there. Such links are counted.
    """
    links: list[str] = []
    with listing_once():
        for path in paths_of(names, links if changes else None):
            try:
                yield work(path)
            except UsageError:
                raise
            except SbbfError as error:
                yield _told(names, path, error)
    if links:
        count = f"{len(links):,} link{'s' * (len(links) > 1)}"
        say(f"sbbf: skipped {count} in folders, such as {links[0]}: name a link to change the file that it leads to", err=True)
        yield 0


def each_report(names: tuple[str, ...], work: Callable[[str], Report], show: Callable[[Report], int]) -> Iterator[int]:
    """As `each_file`, of work that only reads: many files at a time. `show` gets each report, in order, and answers with its code.

    What some files can be asked and others cannot, such as for a column that not all have, is told of the latter; what no file can be
    asked ends the command.
    """
    from sbbf_tool.runner.many import over_files

    unfit: list[UsageError] = []
    none_fits = True
    with counter() as count:
        for path, report in over_files(paths_of(names), work):
            if isinstance(report, UsageError) and none_fits:
                unfit.append(report)
            elif isinstance(report, SbbfError):
                yield _told(names, path, report)
            else:
                none_fits = False
                yield from (_told(names, path, error) for error in unfit)
                unfit.clear()
                yield show(report)
            count()
            stop_if_unread(at_end=False)
    if unfit:
        raise unfit[0]
    stop_if_unread()


def paths_of(names: tuple[str, ...], links: list[str] | None = None) -> Iterator[str]:
    """The files that the names mean, in order; links that folders and globs lead to are added to `links` instead, where it is given."""
    from sbbf_tool.storage.places import entries

    for name in names:
        for entry in entries(name, linked_folders=links is not None):
            if links is not None and entry.is_link:
                links.append(entry.path)
            else:
                yield entry.path


def _told(names: tuple[str, ...], path: str, error: SbbfError) -> int:
    if names == (path,):
        raise error
    say(f"sbbf: {spell(str(error))}", err=True)
    return error.exit_code


def warn_of_append(path: str) -> None:
    """Warn of an append to a file that was not finished, or of a journal beside it that is not to be trusted: for commands that read."""
    from sbbf_tool.file.interrupted import warning_of

    if (warning := warning_of(path)) is not None:
        render.warn(f"{path}: {spell(warning)}")


@contextmanager
def counter() -> Iterator[Callable[[], None]]:
    """To be called once a file: shows on stderr how many there were, where that is a terminal and stdout is not."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("files"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("files", total=None)
        yield lambda: bar.advance(task)
