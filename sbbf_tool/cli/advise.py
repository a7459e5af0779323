"""`sbbf advise`."""

from __future__ import annotations

from typing import Any

import click

from sbbf_tool.cli.advice import query_lines, tell
from sbbf_tool.cli.files import paths_of, warn_of_append
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.page_limit import page_limit_option


@click.command(short_help="Say which columns deserve a filter, and what it would save.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--query", "queries", multiple=True, metavar="QUERY", help="To be served: \"user_id = 42 AND day IN ('2026-01-31')\".")
@click.option("--queries", "queries_file", type=click.Path(), help="The queries in this file too, one a line; -- begins a comment.")
@click.option("--fpp", default=0.01, show_default=True, help="Share of absent values that may pass.")
@click.option("--engine", "engines", multiple=True, metavar="NAME", help="Only what this engine gains counts (repeat for more).")
@click.option("--plan", "plan_path", type=click.Path(), metavar="PLAN", help="Save what to add, for sbbf add-filter --plan.")
@keys_option
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(
    paths: tuple[str, ...],
    queries: tuple[str, ...],
    queries_file: str | None,
    fpp: float,
    engines: tuple[str, ...],
    plan_path: str | None,
    keys: Any,
    max_page_bytes: int | None,
    as_json: bool,
) -> int:
    """Say which columns deserve a filter, at what size, and what it would save; then the one command that adds them.

    PATH is a Parquet file, a folder (all *.parquet below it) or a glob; all files together get one answer. Reads footers, filters and
    dictionaries of all, and data of a few row groups. Where queries are given, only columns that they ask for get a filter.
    """
    from sbbf_tool.operations.advise import advise
    from sbbf_tool.storage.places import is_url

    for path in paths_of(tuple(name for name in paths if not is_url(name))):
        warn_of_append(path)
    report = advise(
        paths, queries=[*queries, *query_lines(queries_file)], fpp=fpp, engine_names=engines, keys=keys, max_page_bytes=max_page_bytes
    )
    return tell(report, paths, plan_path, as_json=as_json)
