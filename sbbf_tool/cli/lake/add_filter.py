"""`sbbf lake add-filter`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.lake.engines import over_a_lake
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.cli.sizes import BYTES

if TYPE_CHECKING:
    from sbbf_tool.reports.rows import FileRow
    from sbbf_tool.runner.engine import Engine, Lake

_REMEMBERED_WARNINGS = 1000


@click.command(short_help="Give columns of all files Bloom filters.")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Column to give a filter (repeat for more).")
@click.option("--plan", "plan_path", metavar="PLAN", help="Columns and sizes that sbbf lake advise planned.")
@click.option("--advise", "advised", is_flag=True, help="Columns and sizes as sbbf lake advise would have them.")
@click.option("--fpp", type=float, help="Share of absent values that may pass.  [default: 0.01]")
@click.option("--ndv", type=int, help="Size for this many distinct values a row group, rather than for those that are found.")
@click.option("--max-bytes", type=BYTES, help="Largest bitset a row group, such as 1MiB.  [default: 128MiB]")
@click.option("--replace", is_flag=True, help="Build filters that are there already anew.")
@click.option("--allow-table-files", is_flag=True, help="Also change files of a Delta, Iceberg, Hudi or Paimon table.")
@click.option("-n", "--dry-run", is_flag=True, help="Tell what each file would get from its footer, and write nothing.")
@click.option("--report", "report_path", type=click.Path(), metavar="OUT", help="Save what became of each file as a Parquet file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
@over_a_lake
def command(
    engine: Engine, lake: Lake, dry_run: bool, report_path: str | None, allow_table_files: bool, as_json: bool, **named: object
) -> int:
    """Give columns of all files Bloom filters, in place; no data page is touched.

    A file that has every filter is passed over, so that a second run goes on where a first one was stopped. Each file is replaced in one
    step, after its filters were asked for every value. Exit code 0 where every file has its filters now, else the highest of any file.
    """
    from sbbf_tool.cli.lake.filter_specs import spec_of
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.reports.add import AddRow
    from sbbf_tool.reports.lake import PlannedFile
    from sbbf_tool.runner.save import saved

    spec = spec_of(engine, lake, **named)  # type: ignore[arg-type]
    edit = Edit(in_place=True, allow_table_files=allow_table_files, keys=lake.keys, limit=lake.limit)
    row_type: type[FileRow] = PlannedFile if dry_run else AddRow
    filters = size = not_cross_checked = 0
    warned: set[str] = set()

    def show(row: FileRow) -> int:
        nonlocal filters, size, not_cross_checked
        if isinstance(row, PlannedFile):
            filters += row.filters
            size += row.data_bytes
        elif isinstance(row, AddRow) and row.report is not None:
            filters += len(row.report.filters)
            size += row.report.bytes_added
            not_cross_checked += row.report.not_cross_checked
            for warning in row.report.warnings:
                # One about a table is the same for each of its files.
                if warning not in warned:
                    render.warn(warning)
                if len(warned) < _REMEMBERED_WARNINGS:
                    warned.add(warning)
        if as_json:
            render.show_json(row)
        save(row)
        return 0

    with saved(report_path, row_type) if report_path is not None else nullcontext(lambda row: None) as save:
        files = each_row(engine.plan(lake, spec, edit) if dry_run else engine.add_filters(lake, spec, edit), show, writes=not dry_run)
    if not as_json:
        told = f"{filters:,} filters would be built from {size:,} bytes" if dry_run else f"{filters:,} filters added, {size:,} bytes"
        say(f"{files}; {told}")
        render.say_not_cross_checked(not_cross_checked)
    return files.exit_code
