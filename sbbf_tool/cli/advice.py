"""Print the report of `sbbf advise`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.formats import Outputs, Run, View
from sbbf_tool.cli.output import complain, stop_if_unread
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.resize import MOST_SIZES, SIZES
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, WORD, Heading
from sbbf_tool.numbers import format_count, format_number, format_percent

if TYPE_CHECKING:
    from sbbf_tool.cli.files import Files
    from sbbf_tool.verbs.advise import AdviceReport, ColumnAdvice, QueryAdvice

_COLUMNS = (
    Heading("column", NAME),
    Heading("type", WORD, 5),
    Heading("verdict", WORD),
    Heading("ndv", ESTIMATE, 3),
    Heading("remaining", WORD, 4),
    Heading("with value", ESTIMATE, 6),
    Heading("bitset", BYTES, 2),
    Heading("all filters", BYTES),
    Heading("of data", RATE, 1),
    Heading("skipped if absent", BYTES),
    Heading("if present", BYTES, 1),
)
_QUERIES = (
    Heading("query", NAME),
    Heading("row groups", COUNT),
    Heading("after min and max", COUNT, 2),
    Heading("after dictionaries", COUNT, 3),
    Heading("after filters", COUNT, 1),
    Heading("after advised filters", ESTIMATE),
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


def ensure_text(outputs: Outputs) -> None:
    """Raise UsageError for formats of rows, which have no room for the settings of a writer."""
    form = outputs.format if outputs.report is None else outputs.report_format
    if form in ("csv", "parquet"):
        raise click.UsageError(f"the settings of a writer are text, for which {form} has no room: use --format table, markdown or json")


def show_report(report: AdviceReport, files: Files, outputs: Outputs) -> int:
    """Print the report and return the exit code."""
    from sbbf_tool.verbs.advise import AdviceReport

    document = render.document("advise", report)
    command: tuple[str, ...] = ()
    if report.fix is not None:
        command = (*command_of(report.fix), *(() if files.where is None else ("--where", files.where)))
        document["fix"]["command"] = command
    outputs.print(Run(_AdviceView(command, files.why_unchangeable), AdviceReport, is_single=True), "advise", report, document)
    for reason in report.unreadable:
        complain(f"sbbf: {reason}")
    stop_if_unread()
    return report.exit_code


class _AdviceView(View["AdviceReport"]):
    schema = "advise"

    def __init__(self, command: tuple[str, ...], refusal: str | None) -> None:
        super().__init__()
        self._command, self._refusal = command, refusal
        """The command that adds the filters, which is empty if none is advised; and why it would be refused."""

    def show(self, page: Page, report: AdviceReport) -> None:
        if report.emit is not None:
            page.code(report.emit.text)
            return
        files = f"{report.paths[0]}" if report.files == 1 else format_count(report.files, "file")
        size = f"{page.bytes(report.bytes)}, {format_count(report.row_groups, 'row group')}"
        page.say(f"{files}: {size}; target FPP {report.fpp * 100:g} %")
        page.say_all(_total(page, report))
        page.table(_COLUMNS, map(_format_row, report.columns), most_rows=MOST_SIZES, matters=lambda row: row[2] == "add")
        page.say_all(_reasons(page, report))
        page.table(_QUERIES, map(_format_query, report.queries))
        _show_sizes(page, report)
        if self._command and self._refusal:
            page.say(f"no command adds them: {self._refusal}")
        elif self._command:
            page.command(self._command)
        else:
            page.say("no filter to add")


def _total(page: Page, report: AdviceReport) -> Iterator[str]:
    """Yield what all advised filters take, and what a lookup reads then in the column that gains the most; nothing without any."""
    added = [column for column in report.columns if column.verdict == "add"]
    for best in sorted(added, key=lambda column: column.skipped_if_absent)[-1:]:
        num_bytes = sum(column.cost_bytes or 0 for column in added)
        before = best.after_statistics / best.row_groups
        after = before - best.skipped_if_absent / best.row_group_bytes if best.row_group_bytes else before
        yield (
            f"{page.bytes(num_bytes)} of new filters, +{format_percent(num_bytes / report.bytes)}; a lookup of an absent {best.column} "
            f"then reads {format_percent(max(0.0, after))} of its row groups instead of {format_percent(before)}"
        )


def _reasons(page: Page, report: AdviceReport) -> Iterator[str]:
    """Yield the reason for the advice on each column, and its cautions; columns with the same reason share a line."""
    columns: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for column in sorted(report.columns, key=lambda column: column.verdict != "add"):
        source = f" [distinct values: {column.ndv_source}]" if column.ndv_source else ""
        hint = "; --all includes it" if column.verdict == "left out" else ""
        columns.setdefault((f"{column.verdict}: {column.reason}{hint}{source}", tuple(column.cautions)), []).append(column.column)
    for (reason, cautions), names in columns.items():
        joined_names = page.join_names(names)
        yield f"{joined_names}: {reason}"
        for caution in cautions:
            yield f"note: {'columns' if len(names) > 1 else 'column'} {joined_names}: {caution}"


def _show_sizes(page: Page, report: AdviceReport) -> None:
    """Print what existing filters would take at every half of their size and at the target, if any is larger than the target needs."""
    rows = []
    larger = [column for column in report.filter_sizes if column.sizes[0].bytes > column.bytes_at_target]
    for column in larger:
        for size in column.sizes:
            name = f"1/{1 << size.halvings}" if size.halvings else "as it is"
            rows.append((column.column, name, size.bytes, size.mean_fpp, size.worst_fpp))
            if size.mean_fpp > _USELESS:
                break
    page.table(SIZES, rows, most_rows=MOST_SIZES)
    if larger:
        present, at_target = (sum(sizes) for sizes in zip(*((each.sizes[0].bytes, each.bytes_at_target) for each in larger), strict=True))
        folded = f"folded to {report.fpp * 100:g} % (sbbf resize --fpp {report.fpp:g}), they would take {page.bytes(at_target)}"
        page.say(f"the bitsets of these filters take {page.bytes(present)}; {folded}")


_USELESS = 0.5
"""Mean false-positive rate above which no smaller size is shown."""


def _format_row(column: ColumnAdvice) -> tuple[object, ...]:
    """Format the sizes of the existing filters of a column that keeps them, else those of new ones."""
    is_kept = column.verdict == "keep"
    num_bytes = column.filter_bytes if is_kept else column.cost_bytes
    return (
        *(column.column, column.type, column.verdict),
        f"{column.ndv:,.0f}" if column.ndv is not None and column.ndv_is_exact else column.ndv,
        f"{format_number(column.after_statistics, exact=True)} of {column.row_groups:,}",
        *(column.row_groups_with_value, None if is_kept else column.bitset_bytes, num_bytes),
        num_bytes / column.bytes if num_bytes is not None and column.bytes else None,
        *(column.skipped_if_absent, column.skipped_if_present),
    )


def _format_query(query: QueryAdvice) -> tuple[object, ...]:
    return (
        *(query.query, query.row_groups, query.after_statistics, query.after_dictionary),
        *(query.after_filters, query.after_advice),
    )
