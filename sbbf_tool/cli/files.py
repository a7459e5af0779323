"""The files that a command line names, one after the other; one that fails does not stop the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from sbbf_tool.errors import SbbfError, UsageError


def each_file(names: tuple[str, ...], work: Callable[[str], int]) -> Iterator[int]:
    """The exit code of `work` on every file that the names mean: a file, the Parquet files below a folder, those of a glob.

    The error of one file is told and its code yielded, and the next file follows; what is wrong with the request itself ends it.
    """
    from sbbf_tool.storage.local import parquet_files

    for name in names:
        for path in parquet_files(name):
            try:
                yield work(path)
            except UsageError:
                raise
            except SbbfError as error:
                if len(names) == 1 and path == name:
                    raise
                click.echo(f"sbbf: {error}", err=True)
                yield error.exit_code
