"""`sbbf inspect`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_report
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.spelling import spell

if TYPE_CHECKING:
    from sbbf_tool.reports.inspect import FilterReport, InspectReport

_HEADERS = ("row group", "column", "type", "offset", "header", "bitset", "blocks", "fill", "est. fpp", "est. ndv", "bits/value", "of chunk")
_NUMBERS = (0, 3, 4, 5, 6, 7, 8, 9, 10, 11)


@click.command(short_help="Show which columns have a Bloom filter, and what it is worth.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column (repeat for more).")
@click.option("--all", "all_chunks", is_flag=True, help="Show column chunks without a filter too.")
@click.option("--bare", is_flag=True, help="FILE is one filter, header and bitset, and nothing else.")
@keys_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(files: tuple[str, ...], columns: tuple[str, ...], all_chunks: bool, bare: bool, keys: Any, as_json: bool) -> int:
    """Show which columns have a Bloom filter and what it is worth.

    FILE is a Parquet file, a folder (all *.parquet below it) or a glob. One row a filter: its place and size in bytes, bits that are
    set, the share of absent values it lets pass and the distinct values it holds, both estimated from those bits.
    """
    if bare:
        from sbbf_tool.cli.bare import inspect as inspect_bare

        return inspect_bare(files, as_json)
    from sbbf_tool.operations.inspect import broken_filter_error, inspect

    def show(report: InspectReport) -> int:
        render.show_json(report) if as_json else _show(report)
        for row in report.broken:
            say(f"sbbf: {broken_filter_error(report, row)}", err=True)
        return broken_filter_error(report, report.broken[0]).exit_code if report.broken else 0

    return max(each_report(files, partial(inspect, columns=columns, all_chunks=all_chunks, keys=keys), show))


def _show(report: InspectReport) -> None:
    say(
        f"{report.file}: {report.file_bytes:,} bytes, {report.rows:,} rows in {report.row_groups} row groups, "
        f"written by {report.created_by or 'an unnamed writer'}"
    )
    if report.filters:
        render.show_table(_HEADERS, [_row(row) for row in report.filters], _NUMBERS)
    for total in report.columns:
        say(
            f"{total.column}: {total.row_groups_with_filter} of {total.row_groups} row groups have a filter, "
            f"{total.filter_bytes:,} bytes for {total.chunk_bytes:,} of data"
            + (f"; mean est. fpp {render.percent(total.mean_fpp)}" if total.mean_fpp is not None else "")
        )
    if not any(row.has_filter for row in report.filters) and "the file has no columns" not in report.notes:
        which = "column whose metadata can be read" if report.closed else "column"
        say(f"no {which} has a Bloom filter; `sbbf add-filter` gives it one")
    if report.closed:
        say(f"not to be seen without their keys: {', '.join(report.closed)}")
    if sealed := dict.fromkeys(row.column for row in report.filters if row.encrypted):
        say(f"encrypted: {', '.join(sealed)}")
    for row in report.filters:
        for oddity in row.oddities:
            say(f"odd: column {row.column}, row group {row.row_group}: {oddity}")
    for note in report.notes:
        say(f"note: {spell(note)}")
    for unused in report.unused:
        say(f"unreferenced: {unused.length:,} bytes at byte {unused.offset}: {unused.what}")


def _row(row: FilterReport) -> tuple[str, ...]:
    kind = f"{row.physical_type} {row.logical_type}" if row.logical_type else row.physical_type
    status = "broken" if row.broken else "" if row.has_filter else "none"
    return (
        str(row.row_group),
        row.column,
        kind,
        render.size(row.offset) or status,
        render.size(row.header_bytes) or (status if row.broken else ""),
        render.size(row.bitset_bytes),
        render.size(row.blocks),
        render.percent(row.fill_ratio),
        render.percent(row.estimated_fpp),
        render.estimate(row.estimated_ndv),
        render.estimate(row.bits_per_value),
        render.percent(row.share_of_chunk),
    )
