"""`sbbf advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.cli.advice import ensure_text, read_queries, show_report
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import NO_PARTITION, Files, over_files, page_limit_option
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import engines_option
from sbbf_tool.cli.output import limit_complaints
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.sizes import RATIO
from sbbf_tool.cli.terminal import terminal
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extension import named

if TYPE_CHECKING:
    from sbbf_tool.verbs.advise import AdviceReport

WRITERS = ("spark", "parquet-java", "pyarrow", "duckdb", "datafusion", "polars", "iceberg", "trino", *named("writers"), "sbbf")


@click.command(cls=Command)
@click.option(
    "--query",
    "queries",
    multiple=True,
    metavar="QUERY",
    help="An expected query: \"user_id = 42 AND day IN ('2026-01-31')\" (repeat for more).",
)
@click.option(
    "--queries", "queries_file", type=click.Path(), help="Read expected queries from this file, one per line. -- begins a comment."
)
@click.option("--fpp", type=RATIO, default=DEFAULT_FPP, show_default=True, help="Target false-positive rate.")
@engines_option
@click.option(
    "--emit",
    type=click.Choice(WRITERS),
    metavar="WRITER",
    help=f"Print settings of a writer for new files. WRITER is {', '.join(WRITERS[:-1])} or {WRITERS[-1]}.",
)
@page_limit_option
@output_options()
@over_files()
def command(
    files: Files,
    queries: tuple[str, ...],
    queries_file: str | None,
    fpp: float,
    engines: tuple[str, ...],
    emit: str | None,
    max_page_bytes: int | None,
    outputs: Outputs,
) -> int:
    """Recommend which columns deserve a filter and at what size, estimate the savings, and print the command that adds the filters.

    \b
    $ sbbf advise events.parquet
    $ sbbf advise lake --query "user_id = 42 AND country = 'DE'"

    The advice covers all files together. The command reads the footers, filters and dictionaries of all files, and the data of a few row
    groups. If queries are given, only columns that they use are recommended. Without queries, floating-point measures, decimal fractions,
    points in time and documents are left out unless --all is given.
    """
    from sbbf_tool.running.work import Work
    from sbbf_tool.verbs.advise import Advise

    if emit is not None:
        ensure_text(outputs)
    verb = Advise([*queries, *read_queries(queries_file)], fpp, engines, terminal().shows_all, emit)
    with limit_complaints(files.most_files):
        with show_progress("counting distinct values"):
            report: AdviceReport = files.combine(Work(verb, keys=files.keys, max_page_bytes=max_page_bytes))
        if not report.files and files.where is not None:
            raise UnreadableError(NO_PARTITION)
        return show_report(report, files, outputs)
