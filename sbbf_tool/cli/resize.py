"""`sbbf resize`."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.sizes import BYTES

_HEADERS = ("row group", "column", "way", "old bitset", "new bitset", "old fpp", "new fpp")


@click.command(short_help="Make filters smaller without reading the data, or larger from it.")
@click.argument("file", metavar="FILE")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--fpp", type=float, metavar="RATE", help="The smallest size at which no larger share of absent values passes.")
@click.option("--bytes", "num_bytes", type=BYTES, metavar="BYTES", help="This size a row group, such as 64KiB.")
@click.option("--rebuild", is_flag=True, help="Build from the data what folding does not give: larger filters, and those of odd sizes.")
@click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist.")
@click.option("--in-place", is_flag=True, help="Replace FILE, in one step and only after the new one was verified.")
@click.option("--jobs", type=int, metavar="N", help="Column chunks to rebuild at a time.  [default: the cores]")
@click.option("--allow-table-files", is_flag=True, help="Also change a file of a Delta, Iceberg, Hudi or Paimon table.")
@keys_option
@page_limit_option
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(file: str, as_json: bool, **options: Any) -> None:
    """Give filters another size, by an error rate or in bytes.

    Smaller ones are folded, without reading the data, and are bit for bit what would have been built at that size. The new filters and
    a new footer go behind the whole old file; `remove-filter` cuts back to it. Larger ones are built from the data, with --rebuild;
    without it, filters that are smaller already stay as they are, and where all are, that is refused.
    """
    from sbbf_tool.operations.resize import resize_filters

    with render.progress_bar() as progress:
        report = resize_filters(file, progress=progress, **options)
    for message in report.warnings:
        render.warn(message)
    for place in report.left:
        render.warn(f"{place}; left as it is, --rebuild builds it anew from the data")
    if as_json:
        render.show_json(report)
        return
    sizes = [(render.size(row.old_bytes), render.size(row.new_bytes)) for row in report.filters]
    rates = [(render.percent(row.old_fpp), render.percent(row.new_fpp)) for row in report.filters]
    rows = [(str(row.row_group), row.column, row.way, *size, *rate) for row, size, rate in zip(report.filters, sizes, rates, strict=True)]
    if rows:
        render.show_table(_HEADERS, rows, (0, 3, 4, 5, 6))
    done = "would be resized in" if report.dry_run else "resized in"
    old, new = (sum(getattr(row, name) for row in report.filters) for name in ("old_bytes", "new_bytes"))
    rest = f"; {report.unchanged} have that size already" if report.unchanged else ""
    say(f"{render.counted(len(rows), 'filter')} {done} {report.output}: {old:,} -> {new:,} bytes of bitsets{rest}")
    render.say_not_cross_checked(report.not_cross_checked)
