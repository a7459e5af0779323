"""`sbbf verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_file
from sbbf_tool.cli.formats.text import show_findings
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.errors import UnreadableError

if TYPE_CHECKING:
    from sbbf_tool.reports.verify import VerifyReport

_HEADERS = ("row group", "column", "type", "values", "missed", "est. fpp", "measured fpp", "proof")


@click.command(short_help="Prove filters against the data.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@keys_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(paths: tuple[str, ...], columns: tuple[str, ...], keys: Any, as_json: bool) -> int:
    """Prove the filters of files against their data: each filter is asked for every value of its column chunk.

    PATH is a Parquet file, a folder (all *.parquet below it) or a glob. Shows the values that a filter misses, and why where that can
    be found; the error rate measured with keys that are not there; and what is wrong with a filter's place, header, length and size.
    Exit code 0: no filter contradicts its data or the format; 1: some filter does; 3: something could not be read.
    """
    from sbbf_tool.operations.verify import verify

    def work(path: str) -> int:
        with render.progress_bar() as progress:
            report = verify(path, columns, keys=keys, progress=progress)
        render.show_json(report) if as_json else _show(report)
        for place in report.unread:
            click.echo(f"sbbf: {UnreadableError(place, file=report.file)}", err=True)
        return UnreadableError.exit_code if report.unread else int(not report.is_sound)

    return max(each_file(paths, work))


def _show(report: VerifyReport) -> None:
    if report.filters:
        rows = [
            (
                *(str(proof.row_group), proof.column, proof.type, render.size(proof.values), render.size(proof.missed)),
                *(render.percent(proof.estimated_fpp), render.percent(proof.measured_fpp)),
                proof.unproven or ("every value found" if proof.is_proven else "lies"),
            )
            for proof in report.filters
        ]
        render.show_table(_HEADERS, rows, (0, 3, 4, 5, 6))
    show_findings(report.findings)
    proven = sum(proof.is_proven for proof in report.filters)
    click.echo(f"{report.file}: {f'{proven} of {len(report.filters)} filters proven' if report.filters else 'no filter to prove'}")
