"""`sbbf advise`."""

from __future__ import annotations

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.cli.advice import read_queries, show_report
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.output import limit_complaints
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.progress import show_progress


@click.command(cls=Command, short_help="Recommend columns for filters, and estimate the savings.")
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="QUERY",
    help="An expected query: \"user_id = 42 AND day IN ('2026-01-31')\" (repeat for more).",
)
@click.option(
    "--queries", "queries_file", type=click.Path(), help="Read expected queries from this file, one per line; -- begins a comment."
)
@click.option("--fpp", default=DEFAULT_FPP, show_default=True, help="Target false-positive rate.")
@click.option("--engine", "engines", multiple=True, metavar="NAME", help="Give advice for this query engine only (repeat for more).")
@click.option("--plan", "plan_path", type=click.Path(), metavar="PLAN", help="Save the advised filters for sbbf add-filter --plan.")
@page_limit_option
@output_options()
@over_files()
def command(
    files: Files,
    queries: tuple[str, ...],
    queries_file: str | None,
    fpp: float,
    engines: tuple[str, ...],
    plan_path: str | None,
    max_page_bytes: int | None,
    outputs: Outputs,
) -> int:
    """Recommend which columns deserve a filter and at what size, estimate the savings, and print the command that adds the filters.

    PATH is a Parquet file, a folder (all *.parquet below it), a quoted glob or a URL; the advice covers all files together. The command
    reads the footers, filters and dictionaries of all files, and the data of a few row groups. If queries are given, only columns
    that they use are recommended.
    """
    from sbbf_tool.runner.advise import advise_files

    names = tuple(files.names)
    all_queries = [*queries, *read_queries(queries_file)]
    with limit_complaints(files.most_files):
        with show_progress("counting distinct values"):
            report = advise_files(
                files.rows,
                names,
                queries=all_queries,
                fpp=fpp,
                engine_names=engines,
                keys=files.keys,
                max_page_bytes=max_page_bytes,
            )
        return show_report(report, names, plan_path, files.where, outputs)
