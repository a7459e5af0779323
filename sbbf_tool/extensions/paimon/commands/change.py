"""`sbbf paimon add-index`, `build` and `remove-index`: the commands that write indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import page_limit_option
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import (
    COLUMNS,
    COMMAND_LINE,
    OUTSIDE_FILES,
    READING,
    RULES,
    SAFETY,
    WEAK_FILTERS,
    Decorator,
    allow_option,
)
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.tables import BYTES, COUNT, NAME, RATE, WORD, Heading
from sbbf_tool.errors import RefusedError
from sbbf_tool.extensions.paimon.commands.options import outside_option
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.paimon.reports import AddIndexReport, BuildReport, RemoveIndexReport


_dry_run_option = SAFETY.flag("-n", "--dry-run", "Build and verify, but write nothing.")
_COLUMNS = (
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


def _columns_option(source: str) -> Decorator:
    """Build the option that passes `columns` to a command; `source` names the default columns in
    its help text."""
    return COLUMNS.option(
        "-c",
        "--column",
        "columns",
        "Column to index (repeat for more); m[key] is an entry of the map m.  [default: the "
        f"columns named by {source}]",
        place=READING,
        multiple=True,
        metavar="COL[:items=N,fpp=P]",
    )


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@_columns_option("the table's options")
@COLUMNS.option(
    "--rebuild",
    "Rebuild the filters of data files that have one for the column.",
    place=COMMAND_LINE,
    type=click.Choice(("all",)),
)
@allow_option(WEAK_FILTERS, OUTSIDE_FILES)
@_dry_run_option
@page_limit_option
@output_options()
def add_index(
    table: str, columns: tuple[str, ...], allow: frozenset[str], outputs: Outputs, **options: Any
) -> int:
    """Add an index to the data files of a table that have none for a column, in a new snapshot.
    Data files stay unchanged.

    \b
    $ sbbf paimon add-index orders -c customer --dry-run
    $ sbbf paimon add-index orders -c customer:fpp=0.01

    TABLE is the folder of a table on a local disk. Use the current names of columns; filters are
    sized as in sbbf paimon build. Indexes of other columns and types stay as they are. An index is
    stored in the manifest or in DATAFILE.index, depending on the table's
    file-index.in-manifest-threshold. The snapshot is created atomically and only if no other commit
    came first; otherwise the commit is planned again on top of that one. Older snapshots stay
    unchanged. Exit code 3: a data file was skipped because it, or its index, could not be read.
    Exit code 4: a filter was left out that would exclude hardly any value.
    """
    from sbbf_tool.extensions.paimon.verbs.add_index import add_paimon_index

    with show_progress("adding indexes"):
        report = add_paimon_index(
            table,
            columns,
            force=WEAK_FILTERS in allow,
            allow_outside=OUTSIDE_FILES in allow,
            **options,
        )
    outputs.print("paimon-add-index", report, _show_add_index)
    code = _say_unreadable(report)
    return max(code, RefusedError.exit_code) if report.refused else code


def _say_unreadable(report: AddIndexReport | RemoveIndexReport) -> int:
    """Complain of files that could not be read; return the exit code."""
    return render.say_unreadable(
        [(file.data_file, None, file.reason) for file in report.unreadable]
    )


def _show_add_index(page: Page, report: AddIndexReport) -> None:
    headings = (
        Heading("data file", NAME),
        Heading("place", WORD, 8),
        Heading("bytes", BYTES, 9),
        *_COLUMNS,
    )
    rows = []
    for index in report.new_indexes:
        for column in index.columns:
            cells = [heading.cell_of(column) for heading in _COLUMNS]
            rows.append((index.data_file, index.place, index.size, *cells))
    page.table(headings, rows)
    _show_change(
        page,
        report,
        report.new_indexes,
        "{} would get an index",
        "added an index to {}, all values verified",
        "no data file needs an index",
    )


@click.command(cls=Command)
@click.argument("data_file", metavar="DATAFILE")
@_columns_option("the options of the table that the data file belongs to")
@SAFETY.option(
    "-o",
    "--output",
    "Write the index to this file, which must not exist.  [default: DATAFILE.index]",
    place=COMMAND_LINE,
    metavar="OUT",
)
@_dry_run_option
@page_limit_option
@output_options()
def build(data_file: str, columns: tuple[str, ...], outputs: Outputs, **options: Any) -> None:
    """Build an index file for a Parquet, ORC or Avro data file, byte for byte as Paimon writes it.

    \b
    $ sbbf paimon build events.parquet -c user_id
    $ sbbf paimon build events.parquet -c user_id:fpp=0.01 -o events.index

    Each filter is sized for the distinct values in the file and a false-positive rate of 0.1;
    items=N and fpp=P size it as Paimon's options of these names do. After a column, type=TYPE
    states its Paimon type if neither a table nor the file determines it. Use the column names of
    the data file. All values are verified before the index is written.
    """
    from sbbf_tool.extensions.paimon.verbs.build import build_paimon_index

    with show_progress("building the index"):
        report = build_paimon_index(data_file, columns, **options)
    outputs.print("paimon-build", report, _show_build)


def _show_build(page: Page, report: BuildReport) -> None:
    page.table(_COLUMNS, report.columns)
    outcome = "written; all values verified"
    if report.dry_run:
        outcome = "would be written; nothing was written"
    page.say(f"{report.output}: {page.bytes(report.size)} {outcome}")
    if report.table is not None and not report.dry_run:
        page.say(
            f"note: table {report.table} does not refer to this file; sbbf paimon add-index adds "
            "an index that Paimon uses"
        )


@click.command(cls=Command)
@click.argument("table", metavar="TABLE")
@COLUMNS.option(
    "-c",
    "--column",
    "columns",
    "Column whose Bloom filters to remove (repeat for more); m[key] is an entry of the map m.  "
    "[default: all columns]",
    place=READING,
    multiple=True,
    metavar="COL",
)
@RULES.option(
    "--select",
    "rule",
    "Remove the whole indexes with this finding: they contradict the format or are missing, and "
    "Paimon fails on them.",
    type=click.Choice(("unreadable-index",)),
)
@outside_option
@SAFETY.flag("-n", "--dry-run", "Show what would be removed, but write nothing.")
@output_options()
def remove_index(
    table: str, columns: tuple[str, ...], rule: str | None, outputs: Outputs, **options: Any
) -> int:
    """Remove Bloom filters from the indexes of a table, in a new snapshot. Data files stay
    unchanged, and no row changes.

    \b
    $ sbbf paimon remove-index orders --dry-run
    $ sbbf paimon remove-index orders -c customer

    TABLE is the folder of a table on a local disk. Use the current names of columns. Indexes of
    other columns and types stay as they are. Index files stay on disk for the older snapshots;
    Paimon's remove_orphan_files deletes those that no snapshot needs. Exit code 3: an index was
    skipped because it could not be read.
    """
    from sbbf_tool.extensions.paimon.verbs.remove_index import remove_paimon_index

    report = remove_paimon_index(table, columns, unreadable=rule is not None, **options)
    outputs.print("paimon-remove-index", report, _show_remove_index)
    return _say_unreadable(report)


def _removed_of(index: Any) -> str:
    return ", ".join(index.columns) or "unreadable index"


def _show_remove_index(page: Page, report: RemoveIndexReport) -> None:
    headings = (
        Heading("data file", NAME),
        Heading("removed", NAME, of=_removed_of),
        Heading("place", WORD, 2),
        Heading("bytes", BYTES, 1, "size"),
    )
    page.table(headings, report.removed_indexes)
    _show_change(
        page,
        report,
        report.removed_indexes,
        "indexes would be removed from {}",
        "removed indexes from {}",
        "no data file has such an index",
    )


def _show_change(
    page: Page,
    report: AddIndexReport | RemoveIndexReport,
    changed: Sequence[object],
    would: str,
    did: str,
    nothing: str,
) -> None:
    """Print the end of a report of a commit: skipped files, notes and the outcome.

    The words of the outcome hold the data files as `{}`.
    """
    skipped = render.group((file.reason, file.data_file) for file in report.skipped)
    for reason, names in skipped.items():
        where = names[0] if len(names) == 1 else format_count(len(names), "data file")
        page.say(f"skipped {where}: {reason}")
    page.say_all(f"note: {note}" for note in report.notes)
    files = format_count(len(changed), "data file")
    if report.dry_run:
        outcome = f"{would.format(files)}; nothing was written"
    elif report.snapshot_after is None:
        outcome = f"{nothing}; nothing was written"
    else:
        outcome = f"{did.format(files)}; committed as snapshot {report.snapshot_after}"
    page.say(f"{report.table}: {outcome}")
