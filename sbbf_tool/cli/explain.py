"""`sbbf explain`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import warn_of_append
from sbbf_tool.cli.keys import keys_option
from sbbf_tool.cli.output import say, stop_if_unread
from sbbf_tool.cli.page_limit import page_limit_option
from sbbf_tool.cli.probe import ABSENT, MAYBE, NegativeValues

if TYPE_CHECKING:
    from sbbf_tool.reports.explain import EngineExplanation, ExplainReport

_HEADERS = ("row group", "bytes", "of column", "min", "max", "statistics", "dictionary", "filter", "reason")
_EFFECTS = ("engine", "by statistics", "by dictionary", "by filter", "read", "bytes skipped", "of column", "harm")


@click.command(cls=NegativeValues, short_help="Show what would skip each row group, and for which engines.")
@click.argument("file", metavar="FILE")
@click.argument("column", metavar="COLUMN")
@click.argument("value", required=False, metavar="[VALUE]")
@click.option("--null", "ask_null", is_flag=True, help="Ask for null, in place of VALUE: what IS NULL reads.")
@click.option("--engine", "engine_name", metavar="NAME", help="Only this engine, or the one that a system of this name reads through.")
@keys_option
@page_limit_option
@click.option("--json", "as_json", is_flag=True, help="The report as one JSON document.")
def command(
    file: str,
    column: str,
    value: str | None,
    ask_null: bool,
    engine_name: str | None,
    keys: Any,
    max_page_bytes: int | None,
    as_json: bool,
) -> int:
    """Show what a query for COLUMN = VALUE reads, row group by row group: what min and max, the dictionary and the filter say.

    Below, what each engine makes of it: how many row groups each means skips, and the share of bytes it need not read. Exit code 0:
    some row group may hold the value; 1: it is certainly absent from all.

    The value `null` is text in a column of text or of bytes without a fixed length, and in any other column asks for null, as --null does.
    """
    from sbbf_tool.operations.explain import explain

    if (value is None) != ask_null:
        raise click.UsageError("give VALUE or --null, not both" if ask_null else "no value to ask for; --null asks for null")
    warn_of_append(file)
    report = explain(file, column, value, engine_name=engine_name, keys=keys, max_page_bytes=max_page_bytes)
    render.show_json(report) if as_json else _show(report)
    stop_if_unread()
    return ABSENT if report.absent else MAYBE


def _show(report: ExplainReport) -> None:
    say(f"{report.file}: column {report.column}, {report.type}, value {render.value(report.value)}")
    groups = [
        (
            *(str(row.row_group), render.size(row.bytes), render.size(row.column_bytes), row.low or "", row.high or "", row.statistics),
            *(row.dictionary or "-", row.filter, row.statistics_reason or row.dictionary_reason or row.filter_reason or ""),
        )
        for row in report.row_groups
    ]
    render.show_table(_HEADERS, groups, (0, 1, 2))
    alike: dict[tuple[str, ...], list[EngineExplanation]] = {}
    for one in report.engines:
        counts = (one.skipped_by_statistics, one.skipped_by_dictionary, one.skipped_by_filter, one.read)
        shares = (render.percent(one.share_skipped), render.percent(one.share_of_column_skipped))
        alike.setdefault((*map(str, counts), *shares, one.harm or ""), []).append(one)
    rows = [(", ".join(one.name for one in engines), *cells) for cells, engines in alike.items()]
    render.show_table(_EFFECTS, rows, (1, 2, 3, 4, 5, 6))
    if len(report.engines) == 1:
        say(f"{report.engines[0].name}: {report.engines[0].says}")
    if report.note:
        say(f"note: {report.note}")
