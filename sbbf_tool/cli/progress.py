"""Progress on standard error: of the bytes of one file, or of the number of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sbbf_tool.cli.terminal import terminal
from sbbf_tool.display import escape

if TYPE_CHECKING:
    from sbbf_tool.cli.files import Files


@contextmanager
def show_progress(files: Files) -> Iterator[tuple[Any, Callable[[], None]]]:
    """Show, if standard error is a terminal, how many bytes of a single file, or how many of several files, are processed.

    Yield the function to call with the step, the bytes so far and all bytes of a file, and the one to call after each file.
    """
    if not terminal().shows_progress():
        yield None, lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if files.file is not None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("opening", total=None)
            yield (lambda step, done, total: bar.update(task, description=escape(step), completed=done, total=total)), lambda: None
    else:
        with Progress(
            SpinnerColumn(), TextColumn("files"), MofNCompleteColumn(), TimeElapsedColumn(), console=console, transient=True
        ) as bar:
            task = bar.add_task("files", total=None)
            yield None, lambda: bar.advance(task)
