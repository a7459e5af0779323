"""`sbbf remove-filter`."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say


@click.command(short_help="Take Bloom filters away.")
@click.argument("file", metavar="FILE")
@click.option("-c", "--column", "columns", multiple=True, metavar="COLUMN", help="Only this column's filters (repeat for more).")
@click.option("-o", "--output", metavar="OUT", help="Write the new file here; it must not exist.")
@click.option("--in-place", is_flag=True, help="Replace FILE, in one step and only after the new one was verified.")
@click.option("--compact", is_flag=True, help="Drop bytes behind the data that nothing leads to any more: old footers, old filters.")
@click.option("--allow-table-files", is_flag=True, help="Also change a file of a Delta, Iceberg, Hudi or Paimon table.")
@keys_option
@click.option("-n", "--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(
    file: str,
    columns: tuple[str, ...],
    output: str | None,
    in_place: bool,
    compact: bool,
    allow_table_files: bool,
    keys: Any,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Take Bloom filters away, of all columns or of those named.

    Where they are the tail that `add-filter` wrote, the file becomes, byte for byte, what it was before. Else a new footer that does not
    mention them is appended; their bytes stay, unless --compact drops them.
    """
    from sbbf_tool.operations.remove import remove_filters

    report = remove_filters(
        file,
        columns,
        output=output,
        in_place=in_place,
        compact=compact,
        dry_run=dry_run,
        allow_table_files=allow_table_files,
        keys=keys,
    )
    for warning in report.warnings:
        render.warn(warning)
    if as_json:
        render.show_json(report)
        return
    done = "would be removed from" if dry_run else "removed from"
    filters = render.counted(len(report.removed), "filter")
    say(f"{filters} {done} {report.output} ({report.way}): {report.old_bytes:,} -> {report.new_bytes:,} bytes")
    if report.unreferenced_bytes:
        left = "between bytes that stay where they are" if compact else "--compact drops them"
        say(f"{report.unreferenced_bytes:,} bytes are left that nothing leads to; {left}")
