"""`sbbf paimon remove-index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.tables import BYTES, NAME, WORD, Heading
from sbbf_tool.extensions.paimon.commands.options import outside_option, show_change
from sbbf_tool.extensions.paimon.rules import UNREADABLE_INDEX

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import RemoveIndexReport


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@click.option(
    "-c",
    "--column",
    "columns",
    multiple=True,
    metavar="COL",
    help="Column whose Bloom filters to remove (repeat for more); m[key] is an entry of the map m.  [default: all columns]",
)
@click.option(
    "--select",
    "rule",
    type=click.Choice((UNREADABLE_INDEX,)),
    help="Remove the whole indexes with this finding: they contradict the format or are missing, and Paimon fails on them.",
)
@outside_option
@click.option("-n", "--dry-run", is_flag=True, help="Show what would be removed, but write nothing.")
@output_options()
def command(table: str, columns: tuple[str, ...], rule: str | None, outputs: Outputs, **options: Any) -> int:
    """Remove Bloom filters from the indexes of a table, in a new snapshot. Data files stay unchanged, and no row changes.

    \b
    $ sbbf paimon remove-index orders --dry-run
    $ sbbf paimon remove-index orders -c customer

    TABLE is the folder of a table on a local disk. Use the current names of columns. Indexes of other columns and types stay as they are.
    Index files stay on disk for the older snapshots; Paimon's remove_orphan_files deletes those that no snapshot needs. Exit code 3: an
    index was skipped because it could not be read.
    """
    from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index

    report = remove_paimon_index(table, columns, unreadable=rule is not None, **options)
    outputs.print("paimon-remove-index", report, _show_report)
    return render.say_unreadable([(file.data_file, None, file.reason) for file in report.unreadable])


def _show_report(page: Page, report: RemoveIndexReport) -> None:
    removed = Heading("removed", NAME, of=lambda index: ", ".join(index.columns) or "unreadable index")
    page.table((Heading("data file", NAME), removed, Heading("place", WORD, 2), Heading("bytes", BYTES, 1, "size")), report.removed_indexes)
    show_change(
        page,
        report,
        report.removed_indexes,
        "indexes would be removed from {}",
        "removed indexes from {}",
        "no data file has such an index",
    )
