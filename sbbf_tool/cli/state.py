"""The option `--state`: a run that works only on new and changed files."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import ChangeOptions
from sbbf_tool.cli.files import Files

if TYPE_CHECKING:
    from sbbf_tool.running.state import State

_HELP = "Keep outcomes in this file; skip unchanged files."


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
            files.state = _open(state, writes=not is_dry)
        return function(first, *args, **options)

    return click.option("--state", metavar="FILE", help=_HELP)(command)


def _open(path: str, *, writes: bool) -> State:
    from sbbf_tool.running.state import State
    from sbbf_tool.storage.whole import find_writer

    if path == "-":
        raise click.UsageError("a state is a file: give its name instead of -")
    if (writer := find_writer(path)) is not None:
        render.warn(f"{path}: the state can be changed by {writer}, who can thus choose the outcomes of files")
    return State(path, writes=writes)
