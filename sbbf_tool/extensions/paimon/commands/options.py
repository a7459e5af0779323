"""Options that several commands of `sbbf paimon` share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.options import OUTSIDE_FILES, allow_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.tables import COUNT, NAME, RATE, WORD, Heading
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import AddIndexReport, RemoveIndexReport

Command = TypeVar("Command", bound=Callable[..., object])

dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Build and verify, but write nothing.")
_snapshot_option = click.option(
    "--snapshot", type=int, metavar="N", help="Read TABLE at this snapshot. It may be the folder of a branch.  [default: the latest]"
)
_BRANCH = re.compile(r"(.+)/branch/branch-([^/]+)/?")
"""The folder of a branch, whose metadata it has; the data files are those of the table."""


def outside_option(command: Command) -> Command:
    """Add the option that passes `allow_outside` to a command."""

    @wraps(command)
    def wrapped(*args: Any, allow: frozenset[str], **options: Any) -> object:
        return command(*args, allow_outside=OUTSIDE_FILES in allow, **options)

    return cast("Command", allow_option(OUTSIDE_FILES)(wrapped))


def table_options(command: Command) -> Command:
    """Add the options that pass `snapshot` and `allow_outside` to a command, and `branch` if its table is the folder of one."""

    @wraps(command)
    def wrapped(*args: Any, **options: Any) -> object:
        name = "table" if "table" in options else "target"
        if match := _BRANCH.fullmatch(options[name]):
            options[name], options["branch"] = match.groups()
        return command(*args, **options)

    return _snapshot_option(outside_option(cast("Command", wrapped)))


COLUMNS = (
    Heading("column", NAME),
    Heading("type", WORD, 5),
    Heading("rows", COUNT, 3),
    Heading("nulls", COUNT, 4),
    Heading("ndv", COUNT),
    Heading("items", COUNT, 2),
    Heading("target fpp", RATE, 1, "fpp"),
    Heading("k", COUNT, 6),
    Heading("bits", COUNT, 7, "num_bits"),
    Heading("fill", RATE, 4, "fill_ratio"),
    Heading("fpp", RATE, 0, "estimated_fpp"),
)


def columns_option(source: str) -> Callable[[Any], Any]:
    """Build the option that passes `columns` to a command; `source` names the default columns in its help text."""
    return click.option(
        "-c",
        "--column",
        "columns",
        multiple=True,
        metavar="COL[:items=N,fpp=P]",
        help=f"Column to index (repeat for more); m[key] is an entry of the map m.  [default: the columns named by {source}]",
    )


def show_change(
    page: Page, report: AddIndexReport | RemoveIndexReport, changed: Sequence[object], would: str, did: str, nothing: str
) -> None:
    """Print the end of a report of a commit: skipped files, notes and the outcome, whose words hold the data files as `{}`."""
    for reason, names in render.group((file.reason, file.data_file) for file in report.skipped).items():
        page.say(f"skipped {names[0] if len(names) == 1 else format_count(len(names), 'data file')}: {reason}")
    page.say_all(f"note: {note}" for note in report.notes)
    files = format_count(len(changed), "data file")
    if report.dry_run:
        outcome = f"{would.format(files)}; nothing was written"
    elif report.snapshot_after is None:
        outcome = f"{nothing}; nothing was written"
    else:
        outcome = f"{did.format(files)}; committed as snapshot {report.snapshot_after}"
    page.say(f"{report.table}: {outcome}")
