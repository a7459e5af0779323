"""`sbbf probe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import click

from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.formats import ANSWER_FORMATS
from sbbf_tool.cli.options import COLUMNS, READING, TABLES, VIEW, pure_setting
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.query import AnswerView, over_query, read_query
from sbbf_tool.cli.report import report_files
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count, format_percent, format_row_groups, some_of
from sbbf_tool.reports.probe import (
    CANNOT_SAY,
    NO_FILTER,
    PRESENT,
    LongSequence,
    ProbeReport,
    RowsReport,
)
from sbbf_tool.reports.rows import FAILED, LINK, NOT_QUERIED, REFUSED, UNFINISHED, VANISHED, Row

if TYPE_CHECKING:
    from sbbf_tool.reports.probe import InconclusiveRowGroups
    from sbbf_tool.verbs.probe import Probe

_UNANSWERED = "nothing answers"
_MANY_VALUES = 100
"""Of so many values, a filter of the default rate lets one through by chance."""


@over_query(
    COLUMNS.option(
        "--values-file",
        "Query the values in this file too, one per line, or in a column: keys.csv:COLUMN. Empty "
        "lines do not count; - reads standard input.",
        place=READING,
        type=click.Path(),
        metavar="FILE[:COLUMN]",
    ),
    pure_setting(
        "--dialect",
        "Query filters of this draft of the format too. Without it, they give no answer.",
        metavar="NAME",
    ),
    COLUMNS.flag("--filters-only", "Query filters alone, no statistics or dictionaries."),
    COLUMNS.flag(
        "--confirm",
        "Read the column where values may be. Answers are as certain as statistics and filters.",
    ),
    VIEW.flag(
        "--rows",
        "List the rows that have a value: file, row group, row number in the file (from 0), "
        "value and column.",
    ),
    TABLES.flag(
        "--all-versions",
        "Of a table: search the files of all retained versions, with the rows that are deleted.",
    ),
    VIEW.flag("--quick", "Of an index: list no files. New and changed ones are missed."),
    formats=ANSWER_FORMATS,
)
def command(  # noqa: PLR0913  click passes an argument for each option
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    values_file: str | None,
    ask_null: bool,
    dialect: str | None,
    filters_only: bool,
    confirm: bool,
    rows: bool,
    all_versions: bool,
    quick: bool,
) -> int:
    """Test whether files may hold a value, by statistics, filters, dictionaries.

    \b
    $ sbbf probe events.parquet user_id 42
    $ sbbf probe lake "user_id IN (42, 43) AND country = 'DE'" --format names

    `sbbf probe PATH COLUMN VALUE...` takes one PATH. `sbbf probe PATH... -c COLUMN` takes many, and
    reads values from --value and --values-file. `sbbf probe PATH CONDITION` looks for rows. The
    column '*' stands for every one that can hold a value. BYTE_ARRAY values are written in
    hexadecimal after 0x: 0x00ff; `-` as VALUE reads values from standard input, one per line.

    Exit code 0: some row group may hold one of the values; 1: all are certainly absent. With
    --confirm, the answers are certain, if no filter and no statistics are wrong: sbbf verify and
    sbbf check --select wrong-statistics find such.
    """
    from sbbf_tool.verbs.probe import Probe

    files, column, values, condition = read_query(
        files, column, named_values, values_file, ask_null=ask_null
    )
    options: dict[str, Any] = {
        "dialect": dialect,
        "filters_only": filters_only,
        # Rows are found by reading the column.
        "confirm": confirm or rows,
        "rows": rows,
    }
    if condition is not None:
        verb = Probe.of(condition, **options)
    else:
        verb = Probe(None if column == "*" else column, values, **options)
    view = _ProbeView(verb, values_file)
    plan = files.plan(verb, all_versions=all_versions, quick=quick)
    code = report_files(files.outputs, plan, view)
    if terminal().verbose:
        view.say_costs()
    return code


class _ProbeView(AnswerView["ProbeReport"]):
    """Lines of the values that a file may hold, with their row groups, or of their rows."""

    def __init__(self, verb: Probe, values_file: str | None) -> None:
        super().__init__(values_file)
        self._column = verb.column
        self._values = len(cast("Sequence[object]", verb.values)) or 1
        self._confirms = verb.confirm
        self._lists_rows = verb.rows
        if verb.rows:
            self.row = Row[RowsReport]
        self._values_with_hits: set[str] = set()
        self._is_condition = verb.column is None and bool(verb.also)
        self._unanswered: dict[str, None] = {}
        """Notes on the parts of a condition that nothing answers."""

    def prepare(self, report: ProbeReport) -> ProbeReport:
        return RowsReport(**vars(report)) if self._lists_rows else report

    def add(self, report: ProbeReport, row: Row[object]) -> int:
        if self._confirms:
            self._count_certain(report)
        else:
            self._values_with_hits.update(map(itemgetter(0), _rows_of(report)))
        for note in report.notes:
            if note.startswith(_UNANSWERED):
                self._unanswered[note] = None
        # `Counter.update` would take longer than the scan of a file.
        total = self.total
        total["bytes_read"] += report.bytes_read
        total["requests"] += report.requests
        total["hits"] += bool(report.hits)
        if report.inconclusive:
            total["inconclusive"] += 1
            total["without_filter"] += any(
                _has_no_filter(report, each) for each in report.inconclusive
            )
        return self.take_answer(report, row, is_absent=report.is_absent)

    def _count_certain(self, report: ProbeReport) -> None:
        """Count whether a file that was read has a value, and whether reading does not show it."""
        is_unsure = bool(report.inconclusive)
        is_present = False
        for value, _, answer, *_ in _rows_of(report):
            if answer == PRESENT:
                is_present = True
                self._values_with_hits.add(value)
            else:
                is_unsure = True
        self.total.update(present=is_present, unsure=is_unsure)

    def answer(self, codes: set[int]) -> int:
        if self.total["unprintable"]:
            codes = {*codes, UsageError.exit_code}
        return super().answer(codes)

    def show(self, page: Page, report: ProbeReport) -> None:
        self.show_line(page, report)
        notes = [note for note in report.notes if note not in self._unanswered]
        page.say_all(f"note: {note}" for note in notes)
        self.show_end(page, "")

    def show_line(self, page: Page, report: ProbeReport) -> None:
        for match in report.rows:
            place = f"{_name(report, match.column)}row group {match.row_group}, row {match.row:,}"
            page.say(f"{place}: {render.value(match.value)}")
        if self._lists_rows:
            uncertain = [hit for hit in report.hits if hit.answer != PRESENT]
            report = replace(report, hits=tuple(uncertain))
        page.say_all(_describe(report, confirms=self._confirms))

    def show_end(self, page: Page, files: str) -> None:
        without_filter = self.total["without_filter"]
        if without_filter:
            has = "has" if without_filter == 1 else "have"
            column = self._column or "some columns"
            num_files = format_count(without_filter, "file")
            page.say(f"any of the values: {num_files} {has} no filter for {column}")
        page.say_all(f"note: {note}" for note in self._unanswered)
        parts = [*self._describe_queried(), *self._describe_outcomes()]
        if self.plan.index is not None:
            excluded = format_count(self.plan.index.excluded, "other file")
            parts.append(f"the index excludes {excluded}")
        values = format_count(self._values, "value")
        if self._is_condition:
            values = "the condition"
        num_files = format_count(self.total["files"], "file")
        answer = "; ".join(parts) or "there is none"
        page.say(f"Queried {values} in {num_files}: {answer}{self.say_what_lacks()}")
        page.say_all(self._describe_versions())
        page.say_all(self._judge_number_of_values())

    def _judge_number_of_values(self) -> Iterator[str]:
        """Yield a note if there are so many values that filters leave most files by chance."""
        hits = self.total["hits"]
        if self._confirms or self._values < _MANY_VALUES or 2 * hits <= self.total["files"]:
            return
        rate = format_percent(DEFAULT_FPP)
        by_chance = round(self._values * DEFAULT_FPP)
        yield (
            f"note: a filter with a false-positive rate of {rate} lets about {by_chance:,} of "
            f"{self._values:,} absent values through, and so excludes few row groups; --confirm "
            "reads which values are stored"
        )

    def _describe_queried(self) -> Iterator[str]:
        """Yield how many of the queried files hold values, and how many may."""
        counts = self.total
        if self._confirms:
            hits = counts["present"]
            hold = "holds" if hits == 1 else "hold"
        else:
            hits = counts["files"] - counts["inconclusive"] - counts["absent"]
            hold = "may hold"
        unsure = counts["unsure"]
        inconclusive = 0 if unsure else counts["inconclusive"]
        if hits:
            what = f"{len(self._values_with_hits):,} of the values"
            if self._is_condition:
                what = "rows that satisfy it"
            yield f"{format_count(hits, 'file')} {hold} {what}"
        if unsure:
            num_files = format_count(unsure, "file")
            what = "such rows" if self._is_condition else "some of them"
            yield f"{num_files} may hold {what}, which reading does not show"
        if inconclusive:
            num_files = format_count(inconclusive, "file")
            yield f"{num_files} may hold any of them, because filters gave no answer"
        if hits or unsure or inconclusive:
            if counts["absent"]:
                what = "such rows" if self._is_condition else "any of them"
                yield f"{format_count(counts['absent'], 'file')} cannot hold {what}"
        elif counts["files"] and self._is_condition:
            yield "no file holds rows that satisfy it"
        elif counts["files"]:
            is_certain = self._confirms or counts["without_column"] == counts["files"]
            yield "none of them is in the files" if is_certain else "all of them are excluded"

    def _describe_outcomes(self) -> Iterator[str]:
        """Yield how many files were not queried, by the reason."""
        outcomes = self.outcomes
        left_out = sum(outcomes[status] for status in NOT_QUERIED if status != UNFINISHED)
        failed_file = "more file" if self.total["files"] else "file"
        for number, noun, what in (
            (outcomes[LINK], "linked folder", "skipped, which may hold any of them"),
            (outcomes[UNFINISHED], "unfinished file", "left out, which may hold any of them"),
            (left_out, "file", "left out, which may hold any of them"),
            (outcomes[FAILED] + outcomes[REFUSED], failed_file, "could not be queried"),
        ):
            if number:
                yield f"{format_count(number, noun)} {what}"

    def notes(self) -> Iterator[str]:
        yield from self._describe_unsure()
        yield from self._describe_versions()

    def unlisted(self) -> Iterable[str]:
        return self._describe_unsure() if self._lists_rows else ()

    def _describe_unsure(self) -> Iterator[str]:
        if self.total["unsure"]:
            num_files = format_count(self.total["unsure"], "file")
            yield f"of {num_files}, reading does not show whether they hold values"

    def _describe_versions(self) -> Iterator[str]:
        """Describe what the versions of a table do not show: files that are gone, and files that no
        version lists."""
        table = self.plan.table
        if table is None or not self.plan.selection.all_versions:
            return
        gone = self.outcomes[VANISHED]
        if gone:
            verb = "is" if gone == 1 else "are"
            yield f"{format_count(gone, 'file')} of earlier versions {verb} gone"
        verb = "is" if self._unlisted == 1 else "are"
        hint = "; --as-files searches that folder" if self._unlisted else ""
        place = f"{format_count(self._unlisted, 'Parquet file')} below {redact(table.location)}"
        yield f"{place} {verb} in no retained version{hint}"

    def say_costs(self) -> None:
        """Print on standard error how much was read."""
        requests = self.total["requests"]
        ending = f" in {requests:,} requests" if requests else ""
        num_files = format_count(self.total["files"], "file")
        complain(f"read {self.total['bytes_read']:,} bytes of {num_files}{ending}", kind="note")

    @cached_property
    def _unlisted(self) -> int:
        return self.plan.selection.count_unlisted()

    def totals(self) -> dict[str, Any]:
        totals = {
            "values": self._values,
            "values_with_hits": len(self._values_with_hits),
            "files_with_hits": self.total["hits"],
            "files_with_inconclusive_row_groups": self.total["inconclusive"],
            "files_without_filter": self.total["without_filter"],
            "files_without_column": self.total["without_column"],
            "bytes_read": self.total["bytes_read"],
        }
        if self.plan.index is not None:
            totals["files_excluded"] = self.plan.index.excluded
        if self.plan.selection.all_versions:
            totals["files_gone"] = self.outcomes[VANISHED]
            totals["files_unlisted"] = self._unlisted
        return totals


def _name(report: ProbeReport, column: str | None = None) -> str:
    """Return the beginning of a line: the file and, in a report on all columns, the column."""
    if report.column is None and column is not None:
        return f"{report.file}: {column}: "
    return f"{report.file}: "


def _has_no_filter(report: ProbeReport, row_groups: InconclusiveRowGroups) -> bool:
    """Return whether no row group of a file has a filter, so that it may hold any of the values."""
    is_whole_file = len(row_groups.row_groups) == report.row_groups
    return is_whole_file and row_groups.answer == NO_FILTER


def _rows_of(report: ProbeReport) -> Iterable[tuple[Any, ...]]:
    """Return the fields of each hit: of many, objects would cost more than the rest of the work."""
    if isinstance(report.hits, LongSequence):
        return report.hits.rows()
    return (tuple(vars(hit).values()) for hit in report.hits)


def _describe(report: ProbeReport, *, confirms: bool) -> Iterator[str]:
    """Yield a line for each value that the file may hold, and for the row groups that may hold any
    of them.

    Columns without a filter in any row group are counted at the end of the output.
    """
    for value, row_groups, answer, reason, count, _, *column in _rows_of(report):
        ending = ""
        if count is not None:
            ending = f" ({format_count(count, 'row')})"
        elif confirms or answer == CANNOT_SAY:
            ending = f" ({answer}: {reason})"
        place = _name(report, *column)
        yield f"{place}{render.value(value)}: {format_row_groups(row_groups)}{ending}"
    columns_of: dict[str, list[str]] = {}
    for each in report.inconclusive:
        if _has_no_filter(report, each):
            continue
        reason = f"{each.answer}: {each.reason}" if each.reason else each.answer
        values = "any of the values"
        if each.values is not None:
            values = ", ".join(map(render.value, each.values))
        text = f"{values}: {format_row_groups(each.row_groups)} ({reason})"
        columns_of.setdefault(text, []).append(each.column or "")
    for text, columns in columns_of.items():
        yield f"{_name(report, some_of(columns))}{text}"
