"""Options that several commands of `sbbf paimon` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., object])

outside_option = click.option(
    "--allow-outside",
    is_flag=True,
    help="Read files outside the table's folder that its metadata names; else they are left out.",
)
dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Read and build, and write nothing.")
json_option = click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
_snapshot_option = click.option("--snapshot", type=int, metavar="N", help="The table as this snapshot has it.  [default: the latest]")
_branch_option = click.option("--branch", metavar="NAME", help="This branch of the table.")


def table_options(command: Command) -> Command:
    """Add the options that pass `snapshot`, `branch` and `allow_outside` to a command."""
    return _snapshot_option(_branch_option(outside_option(command)))
