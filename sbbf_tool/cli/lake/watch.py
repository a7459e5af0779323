"""`sbbf lake watch`."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.lake.engines import spark_setting
from sbbf_tool.cli.lake.rows import each_row
from sbbf_tool.cli.output import say
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.sizes import BYTES, SECONDS


@click.command(short_help="Give files filters as they arrive.")
@click.argument("path")
@click.option(
    "-c", "--column", "columns", multiple=True, required=True, metavar="COLUMN", help="Column to give a filter (repeat for more)."
)
@click.option("--checkpoint", required=True, type=click.Path(), metavar="DIR", help="Folder that remembers what was done.")
@click.option("--available-now", is_flag=True, help="Do what is there, and end.")
@click.option("--interval", type=SECONDS, metavar="TIME", help="Look for new files so often: 30s, 1m, 2h.  [default: 1m]")
@click.option("--max-files", type=click.IntRange(min=1), default=1000, show_default=True, metavar="N", help="Files in one step.")
@click.option("--where", metavar="PREDICATE", help="Only files of these partitions: \"dt >= '2026-01-01' and region = 'eu'\".")
@click.option("--fpp", type=float, default=0.01, show_default=True, help="Share of absent values that may pass.")
@click.option("--max-bytes", type=BYTES, help="Largest bitset a row group, such as 1MiB.  [default: 128MiB]")
@keys_option
@page_limit_option
@click.option("--master", metavar="URL", help="Spark's master: local[4], spark://host:port, yarn, k8s://...  [default: as configured]")
@click.option("--conf", multiple=True, metavar="KEY=VALUE", help="A setting of Spark (repeat for more).")
@click.option("--json", "as_json", is_flag=True, help="One JSON document a file, one line each.")
def command(
    path: str,
    columns: tuple[str, ...],
    checkpoint: str,
    available_now: bool,
    interval: float | None,
    max_files: int,
    where: str | None,
    fpp: float,
    max_bytes: int | None,
    keys: Any,
    max_page_bytes: int | None,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Give the files of a folder Bloom filters as they arrive, by Spark's Structured Streaming, until it is stopped.

    A file is done once, and is replaced in one step. One that is still being written is told of, and done when it has changed. Stopped
    or killed, it goes on from the checkpoint. Exit code: the highest of any file.
    """
    from sbbf_tool.bloom import sizing
    from sbbf_tool.editing.build import Sizing
    from sbbf_tool.file.page_limit import PageLimit
    from sbbf_tool.reports.lake import FileOutcome
    from sbbf_tool.reports.rows import OK
    from sbbf_tool.runner.partitions import parse_predicate
    from sbbf_tool.runner.plan import Wish
    from sbbf_tool.spark.engine import SparkEngine

    if available_now and interval is not None:
        raise click.UsageError("--available-now ends, --interval goes on: give one of the two")

    def show(row: FileOutcome) -> int:
        if as_json:
            render.show_json(row)
        elif row.status == OK:
            say(f"{row.path}: {row.filters} filters added, {row.bytes_added:,} bytes")
        for warning in row.warnings:
            render.warn(warning)
        return 0

    wish = Wish(
        columns, Sizing(fpp, None, sizing.MAX_BYTES if max_bytes is None else max_bytes), keys=keys, limit=PageLimit(max_page_bytes)
    )
    every = None if available_now else interval or 60.0
    chosen = parse_predicate(where) if where is not None else None
    with SparkEngine(master, dict(map(spark_setting, conf))) as engine:
        files = each_row(engine.watch(path, wish, checkpoint, every=every, most_files=max_files, where=chosen), show, writes=True)
    if not as_json:
        say(str(files))
    return files.exit_code
