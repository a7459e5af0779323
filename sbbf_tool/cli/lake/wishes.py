"""From the options of `sbbf lake add-filter` to the filters they wish for: columns named, a plan, or advice taken at once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say
from sbbf_tool.cli.plans import plan_in

if TYPE_CHECKING:
    from sbbf_tool.runner.engine import Engine, Lake
    from sbbf_tool.runner.plan import Wish


def wish_of(
    engine: Engine,
    lake: Lake,
    *,
    columns: tuple[str, ...],
    plan_path: str | None,
    advised: bool,
    fpp: float | None,
    ndv: int | None,
    max_bytes: int | None,
    replace: bool,
    allow_table_files: bool,
) -> Wish:
    """Raises click.UsageError unless exactly one says which columns, UsageError for a plan that is none."""
    from sbbf_tool.bloom import sizing
    from sbbf_tool.editing.build import Sizing
    from sbbf_tool.editing.plan_file import plan_of_document
    from sbbf_tool.runner.advise import advise_lake
    from sbbf_tool.runner.plan import Wish

    if bool(columns) + bool(plan_path) + advised != 1:
        raise click.UsageError("say which columns: one of --column, --plan and --advise")
    if columns:
        size = Sizing(0.01 if fpp is None else fpp, ndv, sizing.MAX_BYTES if max_bytes is None else max_bytes)
        return Wish(columns, size, (), replace, allow_table_files, lake.keys, lake.limit)
    if ndv is not None or max_bytes is not None or (plan_path and fpp is not None):
        raise click.UsageError("the plan says how large: leave out --fpp, --ndv and --max-bytes")
    if plan_path:
        plan = plan_in(plan_path)
    else:
        report = advise_lake(engine, lake, fpp=0.01 if fpp is None else fpp)
        if report.plan is None:
            render.warn("no column deserves a filter; sbbf lake advise tells why")
            raise click.exceptions.Exit(0)
        for column in report.columns:
            if column.verdict == "add":
                say(f"{column.column}: {column.reason}", err=True)
        plan = plan_of_document(report.plan)
    wish = Wish.of_plan(plan, allow_table_files=allow_table_files, keys=lake.keys, limit=lake.limit)
    return wish if not replace else dataclasses.replace(wish, replace=True)
