"""Options that several commands of `sbbf paimon` share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from sbbf_tool.cli.options import OUTSIDE_FILES, allow_option

Command = TypeVar("Command", bound=Callable[..., object])

dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Build and verify, but write nothing.")
_snapshot_option = click.option("--snapshot", type=int, metavar="N", help="Read the table at this snapshot.  [default: the latest]")
_branch_option = click.option("--branch", metavar="NAME", help="Read this branch of the table.")


def outside_option(command: Command) -> Command:
    """Add the option that passes `allow_outside` to a command."""

    @wraps(command)
    def wrapped(*args: Any, allow: frozenset[str], **options: Any) -> object:
        return command(*args, allow_outside=OUTSIDE_FILES in allow, **options)

    return cast("Command", allow_option(OUTSIDE_FILES)(wrapped))


def table_options(command: Command) -> Command:
    """Add the options that pass `snapshot`, `branch` and `allow_outside` to a command."""
    return _snapshot_option(_branch_option(outside_option(command)))
