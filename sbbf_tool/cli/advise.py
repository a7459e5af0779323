"""`sbbf advise`."""

from __future__ import annotations

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.cli.advice import query_lines, show_report
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.page_limit import page_limit_option


@click.command(short_help="Say which columns deserve a filter, and what it would save.")
@click.option("--query", "queries", multiple=True, metavar="QUERY", help="To be served: \"user_id = 42 AND day IN ('2026-01-31')\".")
@click.option("--queries", "queries_file", type=click.Path(), help="The queries in this file too, one per line; -- begins a comment.")
@click.option("--fpp", default=DEFAULT_FPP, show_default=True, help="Target false-positive rate.")
@click.option("--engine", "engines", multiple=True, metavar="NAME", help="Only what this engine gains counts (repeat for more).")
@click.option("--plan", "plan_path", type=click.Path(), metavar="PLAN", help="Save what to add, for sbbf add-filter --plan.")
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
@over_files()
def command(
    files: Files,
    queries: tuple[str, ...],
    queries_file: str | None,
    fpp: float,
    engines: tuple[str, ...],
    plan_path: str | None,
    max_page_bytes: int | None,
    as_json: bool,
) -> int:
    """Say which columns deserve a filter, at what size, and what it would save; then the one command that adds them.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL; all files together get one answer. Reads footers,
    filters and dictionaries of all, and data of a few row groups. Where queries are given, only columns in them get a filter.
    """
    from sbbf_tool.runner.advise import advise_files

    names = tuple(files.names)
    report = advise_files(
        files.rows,
        names,
        queries=[*queries, *query_lines(queries_file)],
        fpp=fpp,
        engine_names=engines,
        keys=files.keys,
        max_page_bytes=max_page_bytes,
    )
    return show_report(report, names, plan_path, files.where, as_json=as_json)
