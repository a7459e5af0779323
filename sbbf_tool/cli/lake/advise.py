"""`sbbf lake advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.advice import query_lines, tell
from sbbf_tool.cli.lake.engines import over_a_lake

if TYPE_CHECKING:
    from sbbf_tool.runner.engine import Engine, Lake


@click.command(short_help="Say which columns deserve a filter, and what it would save.")
@click.option("--query", "queries", multiple=True, metavar="QUERY", help="To be served: \"user_id = 42 AND day IN ('2026-01-31')\".")
@click.option("--queries", "queries_file", type=click.Path(), help="The queries in this file too, one a line; -- begins a comment.")
@click.option("--fpp", default=0.01, show_default=True, help="Share of absent values that may pass.")
@click.option("--reader", "readers", multiple=True, metavar="NAME", help="Only what this query engine gains counts (repeat for more).")
@click.option("--plan", "plan_path", type=click.Path(), metavar="PLAN", help="Save what to add, for sbbf lake add-filter --plan.")
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
@over_a_lake
def command(
    engine: Engine,
    lake: Lake,
    queries: tuple[str, ...],
    queries_file: str | None,
    fpp: float,
    readers: tuple[str, ...],
    plan_path: str | None,
    as_json: bool,
) -> int:
    """Say which columns of all files together deserve a filter, at what size, and what it would save.

    Reads footers, filters and dictionaries of all files, and, on this machine, data of a few row groups.
    """
    from sbbf_tool.runner.advise import advise_lake

    report = advise_lake(engine, lake, queries=[*queries, *query_lines(queries_file)], fpp=fpp, readers=readers)
    return tell(report, lake.names, plan_path, as_json=as_json)
