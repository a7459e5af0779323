"""Print the report of `sbbf advise`, and save its plan."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.output import say, say_json, stop_if_unread
from sbbf_tool.cli.spelling import command_of, spell

if TYPE_CHECKING:
    from sbbf_tool.reports.advise import AdviceReport, ColumnAdvice

_HEADERS = (
    *("column", "type", "verdict", "distinct", "remaining", "with value", "bitset", "all filters", "of data"),
    *("skipped if absent", "if present"),
)


def read_queries(path: str | None) -> list[str]:
    """Read the queries in a file without their comments; return no queries if `path` is None."""
    if path is None:
        return []
    try:
        with click.open_file(path, encoding="utf-8") as stream:
            return [line.strip() for line in stream if line.strip() and not line.lstrip().startswith("--")]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"cannot read the queries file {path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None


def show_report(report: AdviceReport, paths: Sequence[str], plan_path: str | None, where: str | None, *, as_json: bool) -> int:
    """Print the report on `paths`, save its plan if `plan_path` is given, and return the exit code. Raises WriteError."""
    from sbbf_tool.editing.plan_file import write_plan

    command = None if report.fix is None else [*command_of(report.fix), *(() if where is None else ("--where", where))]
    if as_json:
        document = render.document("advise", report)
        if command is not None:
            document["fix"]["command"] = command
        say_json(document)
    else:
        show_advice(report)
    for reason in report.unreadable:
        say(f"sbbf: {spell(reason)}", err=True)
    if plan_path is not None and report.plan is not None:
        # The names in the report lack URL signatures, which add-filter needs to apply the plan.
        for warning in write_plan(plan_path, {**report.plan, "files": list(paths)}):
            render.warn(warning)
        if where is not None:
            render.warn(f"{plan_path} does not contain --where: repeat it with add-filter --plan")
    elif plan_path is not None:
        render.warn(f"{plan_path} was not written: no filter is advised")
    if not as_json and command is not None:
        say(shlex.join(command))
    stop_if_unread()
    return report.exit_code


def show_advice(report: AdviceReport) -> None:
    files = f"{report.paths[0]}" if report.files == 1 else f"{report.files:,} files"
    say(f"{files}: {report.bytes:,} bytes, {render.format_count(report.row_groups, 'row group')}; target FPP {report.fpp:g}")
    render.show_table(_HEADERS, [_format_row(column) for column in report.columns], tuple(range(3, len(_HEADERS))))
    for column in report.columns:
        source = f" [distinct values: {column.ndv_source}]" if column.ndv_source else ""
        say(f"{column.column}: {column.verdict}: {column.reason}{source}")
        for caution in column.cautions:
            say(f"note: column {column.column}: {caution}")
    if report.queries:
        headers = ("query", "row groups", "after min and max", "after dictionaries", "after filters", "after advised filters")
        rows = [
            (
                *(query.query, render.size(query.row_groups), render.size(query.after_statistics), render.size(query.after_dictionary)),
                *(render.size(query.after_filters), f"{query.after_advice:.3g}"),
            )
            for query in report.queries
        ]
        render.show_table(headers, rows, (1, 2, 3, 4, 5))
    if report.fix is None:
        say("no filter to add")


def _format_row(column: ColumnAdvice) -> tuple[str, ...]:
    """Format the cells of a column; ~ marks an estimate."""
    ndv = render.estimate(column.ndv)
    return (
        *(column.column, column.type, column.verdict),
        ndv if column.ndv_is_exact or not ndv else f"~{ndv}",
        f"{column.after_statistics:.3g} of {column.row_groups:,}",
        "" if column.row_groups_with_value is None else f"{column.row_groups_with_value:.3g}",
        *(render.size(column.bitset_bytes), render.size(column.cost_bytes)),
        render.percent(column.cost_bytes / column.bytes if column.cost_bytes is not None and column.bytes else None),
        *(render.size(column.skipped_if_absent), render.size(column.skipped_if_present)),
    )
