"""`sbbf add-filter`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import each_file
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.sizes import BYTES

if TYPE_CHECKING:
    from sbbf_tool.editing.plan_file import Plan
    from sbbf_tool.reports.add import AddReport


@click.command(short_help="Give columns of an existing file Bloom filters.")
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Column to give a filter (repeat for more).")
@click.option("--plan", "plan_path", metavar="PLAN", help="Carry out what sbbf advise planned, on FILE or on the files it names.")
@click.option("--fpp", type=float, help="Share of absent values that may pass.  [default: 0.01]")
@click.option("--ndv", type=int, help="Size for this many distinct values a row group, rather than for those that are found.")
@click.option("--max-bytes", type=BYTES, help="Largest bitset a row group, such as 1MiB.  [default: 128MiB]")
@click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist.")
@click.option("--in-place", is_flag=True, help="Replace FILE, in one step and only after the new one was verified.")
@click.option(
    "--append",
    is_flag=True,
    help="With --in-place: write behind FILE itself rather than to a copy. Fast, but readers that "
    "open FILE meanwhile fail; after a crash the next command, or sbbf repair, cuts FILE back.",
)
@click.option("--jobs", type=int, metavar="N", help="Column chunks to work on at a time.  [default: the cores]")
@click.option("--replace", is_flag=True, help="Rebuild filters that are there already.")
@click.option("--allow-table-files", is_flag=True, help="Also change a file of a Delta, Iceberg, Hudi or Paimon table.")
@keys_option
@page_limit_option
@click.option("-n", "--dry-run", is_flag=True, help="Read and build, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(
    files: tuple[str, ...],
    columns: tuple[str, ...],
    plan_path: str | None,
    fpp: float | None,
    ndv: int | None,
    max_bytes: int | None,
    output: str | None,
    in_place: bool,
    append: bool,
    jobs: int | None,
    replace: bool,
    allow_table_files: bool,
    keys: Any,
    max_page_bytes: int | None,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Give columns of existing files Bloom filters; no data page is touched.

    FILE is a Parquet file, a folder or a quoted glob; with --output, one file. Filters and a new footer go behind the whole old file, so
    its first bytes stay the old, valid file, and `remove-filter` cuts back to it. Each filter is sized from the values themselves, and
    every value is asked of it before the file is published.
    """
    from sbbf_tool.file.cross_check import CrossChecks
    from sbbf_tool.operations.add import add_filters

    plan = _plan(plan_path, columns, fpp, ndv, max_bytes)
    paths = files or (plan.files if plan else ())
    if not paths or not (columns or plan):
        raise click.UsageError("no file was named" if not paths else "no column was named: give --column, or --plan")
    if output is not None and len(paths) > 1:
        raise click.UsageError("one --output for several files")
    sizes: int | Mapping[str, int] | None = plan.columns if plan else max_bytes
    cross_checks = CrossChecks()

    def work(path: str) -> int:
        with render.progress_bar() as progress:
            report = add_filters(
                path,
                list(plan.columns) if plan else columns,
                output=output,
                in_place=in_place,
                append=append,
                jobs=jobs,
                fpp=plan.fpp if plan else 0.01 if fpp is None else fpp,
                ndv=ndv,
                max_bytes=sizes,
                replace=replace or (plan is not None and plan.replace),
                dry_run=dry_run,
                allow_table_files=allow_table_files,
                keys=keys,
                max_page_bytes=max_page_bytes,
                progress=progress,
                cross_checks=cross_checks,
            )
        for warning in report.warnings:
            render.warn(warning)
        render.show_json(report) if as_json else _show(report, is_copy=output is not None and not dry_run)
        return 0

    # One output is of one file, so that a folder or a glob is none.
    return work(paths[0]) if output is not None else max(each_file(paths, work, changes=True))


def _plan(path: str | None, columns: tuple[str, ...], *sizes: float | None) -> Plan | None:
    if path is None:
        return None
    if columns or any(size is not None for size in sizes):
        raise click.UsageError("the plan says which columns, and how large: leave out -c, --fpp, --ndv and --max-bytes")
    from sbbf_tool.cli.plans import plan_in

    return plan_in(path)


def _show(report: AddReport, *, is_copy: bool) -> None:
    if not report.filters:
        reason = "it has every filter" if report.skipped else "it has no row group"
        done = f"{report.output} is an exact copy" if is_copy else "nothing was written"
        say(f"{report.file}: {reason}, so there is nothing to add; {done}")
        return
    render.show_table(
        ("row group", "column", "hashed", "est. ndv", "offset", "bitset", "fpp"),
        [
            (
                str(row.row_group),
                row.column,
                render.size(row.values),
                render.estimate(row.estimated_ndv),
                render.size(row.offset),
                render.size(row.bitset_bytes),
                render.percent(row.fpp),
            )
            for row in report.filters
        ],
        (0, 2, 3, 4, 5, 6),
    )
    done, proof = ("would be added to", "nothing was written") if report.dry_run else ("added to", "every value verified")
    share = render.percent(report.bytes_added / report.old_bytes)
    filters = render.counted(len(report.filters), "filter")
    say(f"{filters} {done} {report.output}: {report.bytes_added:,} bytes behind {report.old_bytes:,} ({share}); {proof}")
    if report.skipped:
        say(f"{render.counted(report.skipped, 'column chunk')} skipped: they have a filter")
    render.say_not_cross_checked(report.not_cross_checked)
