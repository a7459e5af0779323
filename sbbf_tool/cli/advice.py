"""How the report of `sbbf advise` is shown, and its plan saved."""

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

_HEADERS = ("column", "type", "verdict", "distinct", "left", "holding", "bitset", "all filters", "of data", "skipped if absent", "if there")


def query_lines(path: str | None) -> list[str]:
    """Read the queries of a file, without comments; return none where no file is named."""
    if path is None:
        return []
    try:
        with click.open_file(path, encoding="utf-8") as stream:
            return [line.strip() for line in stream if line.strip() and not line.lstrip().startswith("--")]
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"queries file {path}: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None


def show_report(report: AdviceReport, paths: Sequence[str], plan_path: str | None, where: str | None, *, as_json: bool) -> int:
    """Show the report on `paths`, save its plan where a path is given, and answer with the exit code. Raises WriteError."""
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
        # The report has the names without their signatures; to carry the plan out takes them.
        for warning in write_plan(plan_path, {**report.plan, "files": list(paths)}):
            render.warn(warning)
        if where is not None:
            render.warn(f"{plan_path} names no partitions: give add-filter --where too")
    elif plan_path is not None:
        render.warn(f"{plan_path} was not written: there is nothing to add")
    if not as_json and command is not None:
        say(shlex.join(command))
    stop_if_unread()
    return report.exit_code


def show_advice(report: AdviceReport) -> None:
    files = f"{report.paths[0]}" if report.files == 1 else f"{report.files:,} files"
    say(f"{files}: {report.bytes:,} bytes, {report.row_groups:,} row groups; filters for an error rate of {report.fpp:g}")
    render.show_table(_HEADERS, [_row(column) for column in report.columns], tuple(range(3, len(_HEADERS))))
    for column in report.columns:
        source = f" [distinct values: {column.ndv_source}]" if column.ndv_source else ""
        say(f"{column.column}: {column.verdict}: {column.reason}{source}")
        for caution in column.cautions:
            say(f"note: column {column.column}: {caution}")
    if report.queries:
        headers = ("query", "row groups", "after min and max", "dictionaries", "filters there", "filters advised")
        rows = [
            (
                *(one.query, render.size(one.row_groups), render.size(one.after_statistics), render.size(one.after_dictionary)),
                *(render.size(one.after_filters), f"{one.after_advice:.3g}"),
            )
            for one in report.queries
        ]
        render.show_table(headers, rows, (1, 2, 3, 4, 5))
    if report.fix is None:
        say("nothing to add")


def _row(column: ColumnAdvice) -> tuple[str, ...]:
    """Return the cells of a column; a ~ marks what is estimated."""
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
