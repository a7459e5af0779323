"""Print the report of `sbbf advise`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.formats import Outputs, Run
from sbbf_tool.cli.output import complain, stop_if_unread
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import View
from sbbf_tool.cli.resize import MOST_SIZES, SIZES
from sbbf_tool.cli.spelling import command_of
from sbbf_tool.cli.tables import BYTES, COUNT, ESTIMATE, NAME, RATE, WORD, Column
from sbbf_tool.numbers import format_count, format_number

if TYPE_CHECKING:
    from sbbf_tool.reports.advise import AdviceReport, ColumnAdvice, QueryAdvice

_COLUMNS = (
    Column("column", NAME),
    Column("type", WORD, 5),
    Column("verdict", WORD),
    Column("ndv", ESTIMATE, 3),
    Column("remaining", WORD, 4),
    Column("with value", ESTIMATE, 6),
    Column("bitset", BYTES, 2),
    Column("all filters", BYTES),
    Column("of data", RATE, 1),
    Column("skipped if absent", BYTES),
    Column("if present", BYTES, 1),
)
_QUERIES = (
    Column("query", NAME),
    Column("row groups", COUNT),
    Column("after min and max", COUNT, 2),
    Column("after dictionaries", COUNT, 3),
    Column("after filters", COUNT, 1),
    Column("after advised filters", ESTIMATE),
)

_HISTORY = (
    Column("queried columns", NAME),
    Column("scans", COUNT),
    Column("bytes read", BYTES),
    Column("skipped", RATE, 1),
    Column("bytes skipped", BYTES),
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


def show_report(report: AdviceReport, where: str | None, outputs: Outputs) -> int:
    """Print the report and return the exit code."""
    from sbbf_tool.reports.advise import AdviceReport

    document = render.document("advise", report)
    command: tuple[str, ...] = ()
    if report.fix is not None:
        command = (*command_of(report.fix), *(() if where is None else ("--where", where)))
        document["fix"]["command"] = command
    outputs.print(Run(_AdviceView(command), AdviceReport, is_single=True), "advise", report, document)
    for reason in report.unreadable:
        complain(f"sbbf: {reason}")
    stop_if_unread()
    return report.exit_code


class _AdviceView(View["AdviceReport"]):
    schema = "advise"

    def __init__(self, command: tuple[str, ...]) -> None:
        super().__init__()
        self._command = command
        """The command that adds the filters; empty if none is advised."""

    def show(self, page: Page, report: AdviceReport) -> None:
        if report.emit is not None:
            page.code(report.emit.text)
            return
        files = f"{report.paths[0]}" if report.files == 1 else format_count(report.files, "file")
        size = f"{page.bytes(report.bytes)}, {format_count(report.row_groups, 'row group')}"
        page.say(f"{files}: {size}; target FPP {report.fpp * 100:g} %")
        page.table(_COLUMNS, map(_format_row, report.columns), most_rows=MOST_SIZES, matters=lambda row: row[2] == "add")
        page.say_all(_reasons(page, report))
        page.table(_QUERIES, map(_format_query, report.queries))
        _show_history(page, report)
        _show_sizes(page, report)
        if self._command:
            page.command(self._command)
        else:
            page.say("no filter to add")


def _reasons(page: Page, report: AdviceReport) -> Iterator[str]:
    """Yield the reason for the advice on each column, and its cautions; columns with the same reason share a line."""
    columns: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for column in sorted(report.columns, key=lambda column: column.verdict != "add"):
        source = f" [distinct values: {column.ndv_source}]" if column.ndv_source else ""
        hint = "; --all-types includes it" if column.verdict == "left out" else ""
        columns.setdefault((f"{column.verdict}: {column.reason}{hint}{source}", tuple(column.cautions)), []).append(column.column)
    for (reason, cautions), names in columns.items():
        joined_names = page.join_names(names)
        yield f"{joined_names}: {reason}"
        for caution in cautions:
            yield f"note: {'columns' if len(names) > 1 else 'column'} {joined_names}: {caution}"


def _show_history(page: Page, report: AdviceReport) -> None:
    """Print what the advised filters would have saved in real queries."""
    history = report.history
    if history is None:
        return
    rows = [(", ".join(row.columns), row.scans, row.bytes_read, row.share_skipped, row.bytes_skipped) for row in history.groups]
    page.table(_HISTORY, rows)
    scans, logs = format_count(history.scans, "scan"), format_count(history.logs, "log")
    num_filters = sum(column.verdict == "add" for column in report.columns)
    read, skipped = page.bytes(history.bytes_read), page.bytes(history.bytes_skipped)
    if num_filters:
        filters = "this filter" if num_filters == 1 else f"these {num_filters:,} filters"
        page.say(f"{filters} would have skipped {skipped} of the {read} that these queries read ({scans} of these files in {logs})")
    else:
        page.say(f"no filter is advised for what these queries read: {read} ({scans} of these files in {logs})")
    if history.scans_by_file_size:
        number = format_count(history.scans_by_file_size, "scan")
        page.say(f"note: {number} counted with all bytes of the files, as the logs do not say how many were read")
    if history.scans_without_bytes:
        page.say(f"note: {format_count(history.scans_without_bytes, 'scan')} counted as 0 bytes, as the logs do not say how many were read")
    rest = [
        f"{format_count(history.scans_without, 'scan')} of them without = or IN" if history.scans_without else "",
        f"{format_count(history.other_scans, 'scan')} of other files" if history.other_scans else "",
        f"{format_count(history.skipped_lines, 'line')} that could not be read" if history.skipped_lines else "",
    ]
    if history.unreadable_logs:
        number = format_count(len(history.unreadable_logs), "log")
        page.say(f"note: {number} could not be read, or not to the end; the first: {history.unreadable_logs[0]}")
    if any(rest):
        page.say(f"not counted: {', '.join(filter(None, rest))}")


def _show_sizes(page: Page, report: AdviceReport) -> None:
    """Print what the bitsets of existing filters take, and what they would take at every half of their size and at the target."""
    rows = []
    for column in report.filter_sizes:
        for size in column.sizes:
            name = f"1/{1 << size.halvings}" if size.halvings else "as it is"
            rows.append((column.column, name, size.bytes, size.mean_fpp, size.worst_fpp))
            if size.mean_fpp > _USELESS:
                break
    page.table(SIZES, rows, most_rows=MOST_SIZES)
    present = sum(column.sizes[0].bytes for column in report.filter_sizes)
    at_target = sum(column.bytes_at_target for column in report.filter_sizes)
    if present > at_target:
        target = f"{report.fpp * 100:g} %"
        folded = f"folded to {target} (sbbf resize --fpp {report.fpp:g}), the bitsets would take {page.bytes(at_target)}"
        page.say(f"the bitsets of existing filters take {page.bytes(present)}; {folded}")
    elif present:
        page.say(f"the bitsets of existing filters take {page.bytes(present)}; none can be folded further at {report.fpp * 100:g} %")


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
