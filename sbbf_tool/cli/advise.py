"""`sbbf advise`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.bloom.sizing import NEAR
from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files, over_files, page_limit_option
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, RATIO, engines_option
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import SCREEN_ROWS, Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.report import NO_PARTITION
from sbbf_tool.cli.resize import describe_share, describe_smaller, show_sizes
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, WORD, Heading
from sbbf_tool.cli.values import read_queries
from sbbf_tool.errors import UnreadableError
from sbbf_tool.extension import named
from sbbf_tool.numbers import format_count, format_number, format_percent
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE

if TYPE_CHECKING:
    from sbbf_tool.verbs.advise import AdviceReport, ColumnAdvice

WRITERS = (
    "spark",
    "parquet-java",
    "pyarrow",
    "duckdb",
    "datafusion",
    "polars",
    "iceberg",
    "trino",
    *named("writers"),
    "sbbf",
)


@over_files(
    COLUMNS.option(
        "--query",
        "queries",
        "An expected query: \"user_id = 42 AND day >= '2026-01-31'\" (repeat for more). "
        "@FILE has one a line; -- begins a comment.",
        multiple=True,
        metavar="QUERY",
    ),
    COLUMNS.option(
        "--fpp",
        "Target false-positive rate.  [default: 0.01, or that of the next smaller size where a "
        "lookup then reads less]",
        type=RATIO,
        metavar="RATE",
    ),
    engines_option,
    COLUMNS.option(
        "--writer",
        f"Print settings of a writer for new files. WRITER is {', '.join(WRITERS[:-1])} or "
        f"{WRITERS[-1]}.",
        place=COMMAND_LINE,
        type=click.Choice(WRITERS),
        metavar="WRITER",
    ),
    page_limit_option,
)
def command(
    files: Files,
    queries: tuple[str, ...],
    fpp: float | None,
    engines: tuple[str, ...],
    writer: str | None,
) -> int:
    """Recommend which columns deserve a filter and at what size, estimate the savings, and print
    the command that adds the filters.

    \b
    $ sbbf advise events.parquet
    $ sbbf advise lake --query "user_id = 42 AND country = 'DE'"

    The advice covers all files together. The command reads the footers, filters and dictionaries of
    all files, and the data of a few row groups. If queries are given, only columns that they use
    are recommended. Without queries, floating-point measures, decimal fractions, points in time and
    documents are left out unless --all is given.
    """
    from sbbf_tool.verbs.advise import Advise

    outputs = files.outputs
    formats_of_rows = outputs.formats & {"csv", "parquet"}
    if writer is not None and formats_of_rows:
        message = (
            f"the settings of a writer are text, for which {formats_of_rows.pop()} has no "
            "room: use --format table, markdown or json"
        )
        raise click.UsageError(message)
    verb = Advise(read_queries(queries), fpp, engines, terminal().shows_all, writer)
    with show_progress("counting distinct values"):
        plan = files.plan(verb)
        report: AdviceReport = plan.combine()
    if not report.files and files.where is not None:
        raise UnreadableError(NO_PARTITION)
    document = render.document("advise", report)
    command: tuple[str, ...] = ()
    if report.fix is not None:
        command = command_of(report.fix)
        if files.where is not None:
            command = (*command, "--where", files.where)
        document["fix"]["command"] = command
    refusal = None if plan.table is None else plan.table.why_unchangeable
    # Without a target, filters of a size that advice may choose are not weak.
    weak_above = FPP_TOLERANCE * (fpp or NEAR * DEFAULT_FPP)
    show = partial(_show, command=command, refusal=refusal, weak_above=weak_above)
    outputs.print("advise", report, show, document)
    for reason in report.unreadable:
        complain(f"sbbf: {reason}")
    return report.exit_code


def _bytes_of(column: ColumnAdvice) -> int | None:
    """Return the size of a column's filters: of those that it keeps, else of new ones."""
    return column.filter_bytes if column.verdict == "keep" else column.cost_bytes


def _share_of(column: ColumnAdvice) -> float | None:
    num_bytes = _bytes_of(column)
    if num_bytes is None or not column.bytes:
        return None
    return num_bytes / column.bytes


def _ndv_of(column: ColumnAdvice) -> float | str | None:
    """Return the number of distinct values: as text, without the mark of estimates, if exact."""
    if column.ndv is not None and column.ndv_is_exact:
        return f"{column.ndv:,.0f}"
    return column.ndv


def _remaining_of(column: ColumnAdvice) -> str:
    return f"{format_number(column.after_statistics, exact=True)} of {column.row_groups:,}"


_COLUMNS = (
    Heading("column", NAME),
    Heading("type", WORD, 5),
    Heading("verdict", WORD),
    Heading("ndv", ESTIMATE, 3, _ndv_of),
    Heading("remaining", WORD, 4, _remaining_of),
    Heading("with value", ESTIMATE, 6, "row_groups_with_value"),
    Heading("bitset", BYTES, 2, lambda row: None if row.verdict == "keep" else row.bitset_bytes),
    Heading("all filters", BYTES, of=_bytes_of),
    Heading("of data", RATE, 1, _share_of),
    Heading("skipped if absent", BYTES),
    Heading("if present", BYTES, 1, "skipped_if_present"),
)
_QUERIES = (
    Heading("query", NAME),
    Heading("row groups", COUNT),
    Heading("after min and max", COUNT, 2, "after_statistics"),
    Heading("after dictionaries", COUNT, 3, "after_dictionary"),
    Heading("after filters", COUNT, 1),
    Heading("after advised filters", ESTIMATE, of="after_advice"),
)


def _show(
    page: Page,
    report: AdviceReport,
    command: tuple[str, ...],
    refusal: Exception | None,
    weak_above: float,
) -> None:
    """Print the report, and the command that adds the filters, which is empty if none is advised,
    or why it would be refused. Kept filters with an FPP above `weak_above` are named."""
    if report.emit is not None:
        page.code(report.emit.text)
        return
    files = report.paths[0] if report.files == 1 else format_count(report.files, "file")
    size = f"{page.bytes(report.bytes)}, {format_count(report.row_groups, 'row group')}"
    page.say(f"{files}: {size}; target FPP {report.fpp * 100:g} %")
    page.say_all(_total(page, report))
    page.say_all(_size_options(page, report))
    page.table(
        _COLUMNS,
        report.columns,
        most_rows=SCREEN_ROWS,
        matters=lambda column: column.verdict == "add",
    )
    page.say_all(_reasons(page, report, weak_above))
    page.table(_QUERIES, report.queries)
    _show_sizes(page, report)
    if command and refusal:
        page.say(f"no command adds them: {refusal}")
    elif command:
        label = "next: " if page.is_terminal else ""
        page.command(command, label)
    else:
        page.say("no filter to add")


def _total(page: Page, report: AdviceReport) -> Iterator[str]:
    """Yield what all advised filters take, and what a lookup reads then in the column that gains
    the most; nothing without any."""
    added = [column for column in report.columns if column.verdict == "add"]
    if not added:
        return
    best = sorted(added, key=lambda column: column.skipped_if_absent)[-1]
    before = best.after_statistics / best.row_groups
    after = before
    if best.row_group_bytes:
        after = max(0.0, before - best.skipped_if_absent / best.row_group_bytes)
    share = format_percent(report.added_bytes / report.bytes)
    yield (
        f"{page.bytes(report.added_bytes)} of new filters and footers, +{share}; a lookup of an "
        f"absent {best.column} then reads {format_percent(after)} of its row groups instead of "
        f"{format_percent(before)}"
    )


def _size_options(page: Page, report: AdviceReport) -> Iterator[str]:
    """Yield what the filters would cost at the sizes that were not chosen."""
    if len(report.size_options) < 2:
        return
    target, *smaller = report.size_options
    if report.fpp == target.fpp:
        option = smaller[0]
        yield describe_smaller(page, option.fpp, option.filter_bytes, target.filter_bytes)
        return
    (chosen,) = [option for option in smaller if option.fpp == report.fpp]
    share = describe_share(chosen.filter_bytes, target.filter_bytes)
    yield (
        f"{chosen.fpp * 100:g} % at {share} the bytes of {target.fpp * 100:g} %: a lookup reads "
        f"{page.bytes(chosen.lookup_bytes)} of filters and row groups instead of "
        f"{page.bytes(target.lookup_bytes)}; --fpp {target.fpp * 100:g}% takes the larger size"
    )


def _reasons(page: Page, report: AdviceReport, weak_above: float) -> Iterator[str]:
    """Yield the reason for the advice on each column, and the cautions; columns with the same one
    share a line."""
    types = Counter(column.column for column in report.columns)
    sources = {column.ndv_source for column in report.columns if column.ndv_source}
    columns: dict[str, list[str]] = {}
    with_caution: dict[str, list[str]] = {}
    for column in sorted(report.columns, key=lambda column: column.verdict != "add"):
        label = column.column
        if types[label] > 1:
            label += f" ({column.type})"
        reason = f"{column.verdict}: {column.reason}"
        if column.ndv_source and len(sources) > 1:
            reason += f" [distinct values: {column.ndv_source}]"
        columns.setdefault(reason, []).append(label)
        for caution in column.cautions:
            with_caution.setdefault(caution, []).append(label)
    for reason, labels in columns.items():
        yield f"{page.join_names(labels)}: {reason}"
    for caution, labels in with_caution.items():
        noun = "columns" if len(labels) > 1 else "column"
        yield f"note: {noun} {page.join_names(labels)}: {caution}"
    if len(sources) == 1:
        yield f"distinct values: {sources.pop()}"
    weak = _weak_columns(report, weak_above)
    if weak:
        yield (
            f"weaker than the target: filters of {page.join_names(sorted(weak))}; "
            "add-filter --rebuild weak rebuilds them"
        )
    if any(column.verdict == "left out" for column in report.columns):
        yield "--all judges the columns that are left out too"


def _weak_columns(report: AdviceReport, weak_above: float) -> set[str]:
    """Return the columns that keep filters weaker than the target."""
    kept = {column.column for column in report.columns if column.verdict == "keep"}
    weak = {each.column for each in report.filter_sizes if each.sizes[0].worst_fpp > weak_above}
    return kept & weak


def _show_sizes(page: Page, report: AdviceReport) -> None:
    """Print what existing filters would take at every half of their size and at the target, if any
    is larger than the target needs."""
    larger = {}
    present = 0
    at_target = 0
    for column in report.filter_sizes:
        largest = column.sizes[0].bytes
        if largest > column.bytes_at_target:
            larger[column.column] = column.sizes
            present += largest
            at_target += column.bytes_at_target
    show_sizes(page, larger)
    if larger:
        folded = (
            f"folded to {report.fpp * 100:g} % (sbbf resize --fpp {report.fpp:g}), they "
            f"would take {page.bytes(at_target)}"
        )
        page.say(f"the bitsets of these filters take {page.bytes(present)}; {folded}")
