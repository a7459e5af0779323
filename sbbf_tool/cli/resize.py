"""`sbbf resize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.changes import Change, over_changed_files
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.report import View
from sbbf_tool.cli.sizes import BYTES
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.resize import ResizeReport

_HEADERS = ("row group", "column", "method", "old bitset", "new bitset", "old fpp", "new fpp")


@click.command(cls=Command, short_help="Make filters smaller without reading the data, or larger by rebuilding them.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("--fpp", type=float, metavar="RATE", help="The smallest size with at most this false-positive rate.")
@click.option("--bytes", "num_bytes", type=BYTES, metavar="BYTES", help="This size per row group, such as 64KiB.")
@click.option(
    "--rebuild",
    is_flag=True,
    help="Build from the data where folding does not reach the size: larger filters, and sizes that are not powers of two.",
)
@page_limit_option
@over_changed_files
def command(change: Change, **options: Any) -> int:
    """Resize filters to meet a false-positive rate, or to a given number of bytes.

    Filters are made smaller by folding, which reads no data and gives, bit for bit, the filter that would have been built at that size.
    The new filters and a new footer are written after the old bytes; `remove-filter` truncates the file to the old bytes. Larger filters
    are built from the data with --rebuild; without it, filters that are already smaller stay unchanged; if all are, the command is
    refused.
    """
    from sbbf_tool.file.cross_check import CrossChecks
    from sbbf_tool.runner import works

    return change.report(works.resize(cross_checks=CrossChecks(), **options, **change.options()), _ResizeView())


class _ResizeView(View["ResizeReport"]):
    schema = "resize"
    sums = ("filters", "old_bitset_bytes", "new_bitset_bytes")

    def add(self, report: ResizeReport, row: FileRow) -> int:
        old, new = (sum(getattr(row, name) for row in report.filters) for name in ("old_bytes", "new_bytes"))
        self.total.update(filters=len(report.filters), old_bitset_bytes=old, new_bitset_bytes=new)
        for place in report.not_resized:
            render.warn(f"{place}; not resized; --rebuild builds it from the data")
        return 0

    def show(self, report: ResizeReport) -> None:
        sizes = [(render.size(row.old_bytes), render.size(row.new_bytes)) for row in report.filters]
        rates = [(render.percent(row.old_fpp), render.percent(row.new_fpp)) for row in report.filters]
        rows = [
            (str(row.row_group), row.column, row.method, *size, *rate) for row, size, rate in zip(report.filters, sizes, rates, strict=True)
        ]
        if rows:
            render.show_table(_HEADERS, rows, (0, 3, 4, 5, 6))
        self._say(report)

    def show_line(self, report: ResizeReport) -> None:
        if report.filters:
            self._say(report)

    def _say(self, report: ResizeReport) -> None:
        verb = "Would resize" if report.dry_run else "Resized"
        old, new = (sum(getattr(row, name) for row in report.filters) for name in ("old_bytes", "new_bytes"))
        unchanged = f"; {report.unchanged} already have that size" if report.unchanged else ""
        filters = render.format_count(len(report.filters), "filter")
        say(f"{verb} {filters} in {report.output}: {old:,} -> {new:,} bytes of bitsets{unchanged}")
        render.say_not_cross_checked(report.not_cross_checked)

    def summary(self, files: str) -> str:
        filters, old, new = (self.total[name] for name in self.sums)
        return f"{files}; {render.format_count(filters, 'filter')}: {old:,} -> {new:,} bytes of bitsets"
