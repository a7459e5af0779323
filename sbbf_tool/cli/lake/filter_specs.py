"""From the options of `sbbf lake add-filter` to the filter spec that they mean: columns named, a plan, or advice taken at once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say
from sbbf_tool.cli.plans import plan_in

if TYPE_CHECKING:
    from sbbf_tool.editing.filter_spec import FilterSpec
    from sbbf_tool.runner.engine import Engine, Lake


def spec_of(
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
) -> FilterSpec:
    """Raises click.UsageError unless exactly one says which columns, UsageError for a plan that is none."""
    from sbbf_tool.editing.filter_spec import FilterSpec
    from sbbf_tool.editing.plan_file import plan_of_document
    from sbbf_tool.runner.advise import advise_lake

    if bool(columns) + bool(plan_path) + advised != 1:
        raise click.UsageError("say which columns: one of --column, --plan and --advise")
    if columns:
        return FilterSpec(columns, 0.01 if fpp is None else fpp, ndv, max_bytes, replace)
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
    spec = FilterSpec.of_plan(plan)
    return spec if not replace else dataclasses.replace(spec, replace=True)
