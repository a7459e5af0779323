"""Options that several commands of `sbbf paimon` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

outside_option = click.option(
    "--allow-outside",
    is_flag=True,
    help="Read files outside the folder of the table that its metadata refers to. By default they are skipped.",
)
dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Build and verify, but write nothing.")
_snapshot_option = click.option("--snapshot", type=int, metavar="N", help="Read the table at this snapshot.  [default: the latest]")
_branch_option = click.option("--branch", metavar="NAME", help="Read this branch of the table.")


def table_options(command: Command) -> Command:
    """Add the options that pass `snapshot`, `branch` and `allow_outside` to a command."""
    return _snapshot_option(_branch_option(outside_option(command)))
