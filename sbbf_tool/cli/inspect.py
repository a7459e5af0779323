"""`sbbf inspect`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.output import say
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.cli.spelling import spell
from sbbf_tool.errors import UnreadableError
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.inspect import FilterReport, InspectReport

_HEADERS = ("row group", "column", "type", "offset", "header", "bitset", "blocks", "fill", "est. fpp", "est. ndv", "bits/value", "of chunk")
_NUMBERS = (0, 3, 4, 5, 6, 7, 8, 9, 10, 11)
_SUM_HEADERS = ("column", "files", "row groups", "of", "filter bytes", "data bytes", "mean est. fpp")


@click.command(cls=Command, short_help="Show which columns have Bloom filters, and how selective they are.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--all", "all_chunks", is_flag=True, help="Also show column chunks without a filter.")
@click.option("--standalone", is_flag=True, help="PATH is a standalone filter: a header and a bitset, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document per file and, for several files, a summary.")
@over_files()
def command(files: Files, columns: tuple[str, ...], all_chunks: bool, standalone: bool, as_json: bool) -> int:
    """Show which columns have Bloom filters and how selective they are.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL. For one file, each row is a filter: its offset and
    sizes in bytes, the share of bits set, and the false-positive rate and number of distinct values estimated from it. For several files,
    each row is a column, with the sums over all files.
    """
    if standalone:
        from sbbf_tool.cli.standalone import inspect as inspect_standalone

        return inspect_standalone(files, as_json)
    from sbbf_tool.runner import works

    return report_files(files, works.inspect(columns, all_chunks=all_chunks, keys=files.keys), _InspectView(), as_json=as_json)


class _InspectView(View["InspectReport"]):
    schema = "inspect"

    def __init__(self) -> None:
        from sbbf_tool.runner.totals import InspectTotals

        super().__init__()
        self._totals = InspectTotals()

    def add(self, report: InspectReport, row: FileRow) -> int:
        self._totals.add(report)
        for unreadable in report.unreadable_filters:
            say(f"sbbf: {row.path}: {unreadable.unreadable}", err=True)
        return UnreadableError.exit_code if report.unreadable_filters else 0

    def show(self, report: InspectReport) -> None:
        rows, row_groups = render.format_count(report.rows, "row"), render.format_count(report.row_groups, "row group")
        say(f"{report.file}: {report.file_bytes:,} bytes, {rows} in {row_groups}, written by {report.created_by or 'an unknown writer'}")
        if report.filters:
            render.show_table(_HEADERS, [_row(row) for row in report.filters], _NUMBERS)
        for total in report.columns:
            say(
                f"{total.column}: {total.row_groups_with_filter} of {total.row_groups} row groups have a filter, "
                f"{total.filter_bytes:,} bytes for {total.chunk_bytes:,} bytes of data"
                + (f"; mean est. fpp {render.percent(total.mean_fpp)}" if total.mean_fpp is not None else "")
            )
        if not any(row.has_filter for row in report.filters) and "the file has no columns" not in report.notes:
            which = "column whose metadata can be read" if report.locked_columns else "column"
            say(f"no {which} has a Bloom filter; `sbbf add-filter` adds one")
        if report.locked_columns:
            say(f"locked columns (their key was not given): {', '.join(report.locked_columns)}")
        if encrypted := dict.fromkeys(row.column for row in report.filters if row.encrypted):
            say(f"encrypted: {', '.join(encrypted)}")
        for row in report.filters:
            for warning in row.warnings:
                say(f"warning: column {row.column}, row group {row.row_group}: {warning}")
        for note in report.notes:
            say(f"note: {spell(note)}")
        for unreferenced in report.unreferenced:
            say(f"unreferenced: {unreferenced.length:,} bytes at byte {unreferenced.offset}: {unreferenced.kind}")

    def show_sums(self) -> None:
        rows = [
            (
                *(total.column, render.size(total.files), render.size(total.row_groups_with_filter), render.size(total.row_groups)),
                *(render.size(total.filter_bytes), render.size(total.chunk_bytes), render.percent(total.mean_fpp)),
            )
            for total in self._totals.columns()
        ]
        render.show_table(_SUM_HEADERS, rows, tuple(range(1, len(_SUM_HEADERS)))) if rows else say("no column has a Bloom filter")

    def summary(self, files: str) -> str:
        totals = self._totals
        return f"{files}; {totals.rows:,} rows in {totals.row_groups:,} row groups, {totals.bytes:,} bytes"

    def totals(self) -> dict[str, Any]:
        totals = self._totals
        columns = [asdict(column) | {"mean_fpp": column.mean_fpp} for column in totals.columns()]
        return {"rows": totals.rows, "row_groups": totals.row_groups, "bytes": totals.bytes, "columns": columns}


def _row(row: FilterReport) -> tuple[str, ...]:
    kind = f"{row.physical_type} {row.logical_type}" if row.logical_type else row.physical_type
    status = "unreadable" if row.unreadable else "" if row.has_filter else "none"
    return (
        str(row.row_group),
        row.column,
        kind,
        render.size(row.offset) or status,
        render.size(row.header_bytes) or (status if row.unreadable else ""),
        render.size(row.bitset_bytes),
        render.size(row.blocks),
        render.percent(row.fill_ratio),
        render.percent(row.estimated_fpp),
        render.estimate(row.estimated_ndv),
        render.estimate(row.bits_per_value),
        render.percent(row.share_of_chunk),
    )
