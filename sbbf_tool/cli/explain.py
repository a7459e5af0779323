"""`sbbf explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.choice import chosen_verb
from sbbf_tool.cli.files import Files, page_limit_option
from sbbf_tool.cli.options import engines_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.query import AnswerView, over_query, read_query
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.tables import BYTES, COUNT, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.numbers import format_count, format_row_groups
from sbbf_tool.reports.probe import CONDITION
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.verbs.explain import ExplainReport, RowGroupExplanation


def _format_bound(text: str | None) -> str | None:
    return None if text is None else render.value(text)


def _reason_of(row: RowGroupExplanation) -> str | None:
    return row.statistics_reason or row.dictionary_reason or row.filter_reason


_COLUMNS = (
    Heading("row group", COUNT),
    Heading("bytes", BYTES, 5),
    Heading("of column", BYTES, 6, "column_bytes"),
    Heading("min", NAME, 3, lambda row: _format_bound(row.min_value)),
    Heading("max", NAME, 3, lambda row: _format_bound(row.max_value)),
    Heading("statistics", WORD),
    Heading("dictionary", WORD, of=lambda row: row.dictionary or "-"),
    Heading("filter", WORD),
    Heading("reason", SENTENCE, 4, _reason_of),
)


def _name_means(row: RowGroupExplanation) -> str:
    """Return what excludes a row group by a part of a condition."""
    if row.excluded_by is None:
        return "-"
    for name in ("dictionary", "filter"):
        if getattr(row, name) == "absent":
            return name
    return "statistics"


_PARTS = (
    Heading("row group", COUNT),
    Heading("bytes", BYTES, 3),
    Heading("of columns", BYTES, 4, "column_bytes"),
    Heading("excluded by", SENTENCE, of=lambda row: row.excluded_by or "-"),
    Heading("means", WORD, 1, _name_means),
    Heading("reason", SENTENCE, 2, _reason_of),
)
"""Columns for a condition."""
_ENGINES = (
    Heading("engine", SENTENCE, of="name"),
    Heading("statistics", COUNT, of="skipped_by_statistics"),
    Heading("dictionary", COUNT, 3, "skipped_by_dictionary"),
    Heading("filter", COUNT, of="skipped_by_filter"),
    Heading("read", COUNT, 1, "row_groups_read"),
    Heading("bytes skipped", RATE, 2, "share_skipped"),
    Heading("of column", RATE, 4, "share_of_column_skipped"),
    Heading("harm", WORD),
)
_EXCLUSIONS = (
    Heading("excluded by", SENTENCE),
    Heading("means", WORD),
    Heading("row groups", COUNT),
)
"""Columns for a condition in many files."""
_SUMS = (
    Heading("engine", SENTENCE),
    Heading("row groups", COUNT, 1),
    Heading("skipped", COUNT),
    Heading("read", COUNT),
    Heading("bytes skipped", RATE),
)


@over_query(engines_option, page_limit_option)
def command(
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    ask_null: bool,
    engines: tuple[str, ...],
) -> int:
    """Show which row groups a query for COLUMN = VALUE reads, and whether the statistics, the
    dictionary or the filter excludes each of the others.

    \b
    $ sbbf explain events.parquet user_id 42
    $ sbbf explain lake "user_id IN (42, 43)" --engines duckdb

    The arguments are those of `sbbf probe`: PATH COLUMN VALUE... takes one PATH, PATH... -c COLUMN
    --value VALUE takes many, and the last argument may be a condition: "user_id IN (42, 43)". If it
    has several parts, the table shows which of them excludes each row group. Otherwise, a second
    table shows, for each engine, how many row groups it skips by each of these means, and
    the share of bytes skipped. For several files, the command prints a line per file that may hold
    the value, and the totals. Exit code 0: some row group may hold the value; 1: it is certainly
    absent.

    In STRING and other BYTE_ARRAY columns, the value `null` is text; in other columns it means
    null, as --null does.
    """
    from sbbf_tool.verbs.explain import Explain

    files, column, values, condition = read_query(files, column, named_values, ask_null=ask_null)
    verb = Explain(column, values, engines)
    if condition is not None:
        verb = Explain.of(condition, engines)
    choice = chosen_verb()
    if choice is not None:
        if verb.column is None:
            raise click.UsageError("engines are run for a condition on one column with =")
        return choice.carry(files, verb.column, verb.values)
    plan = files.plan(verb)
    return report_files(files.outputs, plan, _ExplainView())


def _group(rows: Iterable[Sequence[object]]) -> list[tuple[object, ...]]:
    """Return rows, of which the first cell is the name of an engine, with one row for all engines
    with the same results."""
    names_of = render.group((tuple(cells), str(name)) for name, *cells in rows)
    if len(names_of) == 1:
        ((cells, names),) = names_of.items()
        if len(names) > 1:
            return [(f"all {len(names)} engines", *cells)]
    return [(", ".join(names), *cells) for cells, names in names_of.items()]


def _answer(report: ExplainReport) -> str:
    """Return the answer as a sentence."""
    value = render.value(report.value)
    row_groups = report.row_groups
    possible = 0
    for row in row_groups:
        possible += not row.is_absent
    place = f"the {format_count(len(row_groups), 'row group')} of {report.file}"
    if not possible:
        return f"{report.column} = {value} is certainly in none of {place}"
    return f"{report.column} = {value} may be in {possible:,} of {place}"


def _describe_remaining(row_groups: int, excluded: int) -> str:
    total = format_count(row_groups, "row group")
    return f"{row_groups - excluded:,} of {total} may have rows that satisfy the condition"


_MOST_CHARACTERS = 60
"""Characters of the names of engines in one line."""


def _fold_names(rows: Iterable[tuple[object, ...]]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table; names of engines that are too long for one line continue in the
    next, whose other cells are empty."""
    for names, *cells in rows:
        lines = wrap(str(names), _MOST_CHARACTERS, break_on_hyphens=False, break_long_words=False)
        first, *others = lines or [""]
        yield (first, *cells)
        for line in others:
            yield (line, *[None] * len(cells))


class _ExplainView(AnswerView["ExplainReport"]):
    def __init__(self) -> None:
        super().__init__()
        self._sums: dict[str, Counter[str]] = {}
        self._exclusions = Counter[tuple[str, str]]()
        """How many row groups each part of a condition excludes, by each means."""
        self._has_condition = False

    def add(self, report: ExplainReport, row: Row[object]) -> int:
        if report.engines or report.type == CONDITION:
            self.total.update(bytes=report.bytes, row_groups=len(report.row_groups))
        if report.type == CONDITION:
            self._has_condition = True
            for row_group in report.row_groups:
                if row_group.is_absent:
                    self._exclusions[row_group.excluded_by or "-", _name_means(row_group)] += 1
        for engine in report.engines:
            by_statistics = engine.skipped_by_statistics
            skipped = by_statistics + engine.skipped_by_dictionary + engine.skipped_by_filter
            self._sums.setdefault(engine.name, Counter()).update(
                row_groups_skipped=skipped,
                row_groups_read=engine.row_groups_read,
                bytes_skipped=engine.bytes_skipped,
            )
        return self.take_answer(report, row, is_absent=report.absent)

    def show(self, page: Page, report: ExplainReport) -> None:
        if report.type == CONDITION:
            self._show_condition(page, report)
            return
        value = render.value(report.value)
        page.say(f"{report.file}: column {report.column}, {report.type}, value {value}")
        page.table(_COLUMNS, report.row_groups, matters=lambda row: not row.is_absent)
        page.say(
            "row groups that each engine skips by statistics, dictionary or filter, and reads:"
        )
        rows = [[heading.cell_of(engine) for heading in _ENGINES] for engine in report.engines]
        page.table(_ENGINES, _fold_names(_group(rows)))
        if len(report.engines) == 1:
            page.say(f"{report.engines[0].name}: {report.engines[0].explanation}")
        if report.note:
            page.say(f"note: {report.note}")
        page.say(_answer(report))

    def _show_condition(self, page: Page, report: ExplainReport) -> None:
        page.say(f"{report.file}: {render.value(report.value)}")
        page.table(_PARTS, report.row_groups, matters=lambda row: not row.is_absent)
        excluded = sum(row.is_absent for row in report.row_groups)
        page.say(_describe_remaining(len(report.row_groups), excluded))
        if report.note:
            page.say(f"note: {report.note}")

    def show_line(self, page: Page, report: ExplainReport) -> None:
        numbers = [row.row_group for row in report.row_groups if not row.is_absent]
        if numbers:
            page.say(f"{report.file}: {render.value(report.value)}: {format_row_groups(numbers)}")

    def show_end(self, page: Page, files: str) -> None:
        row_groups = self.total["row_groups"]
        num_bytes = self.total["bytes"]
        rows = []
        for name, sums in self._sums.items():
            share = sums["bytes_skipped"] / num_bytes if num_bytes else None
            rows.append(
                (name, row_groups, sums["row_groups_skipped"], sums["row_groups_read"], share)
            )
        page.table(_SUMS, _fold_names(_group(rows)))
        if self._has_condition:
            counts = self._exclusions.most_common()
            page.table(_EXCLUSIONS, [(*part_and_means, count) for part_and_means, count in counts])
            page.say(_describe_remaining(row_groups, self._exclusions.total()))
        page.say(f"{files}{self.say_what_lacks()}")

    def totals(self) -> dict[str, Any]:
        return {
            "row_groups": self.total["row_groups"],
            "bytes": self.total["bytes"],
            "files_without_column": self.total["without_column"],
            "engines": [{"name": name, **sums} for name, sums in self._sums.items()],
        }
