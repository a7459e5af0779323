"""`sbbf explain`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files, over_files, page_limit_option, strict_option
from sbbf_tool.cli.formats import Outputs, View, output_options
from sbbf_tool.cli.options import engines_option
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.probe import (
    ABSENT,
    MAYBE,
    NegativeValues,
    choose_exit_code,
    ensure_column,
    keep_unfit,
    say_unfit,
    say_without_column,
    split_condition,
)
from sbbf_tool.cli.report import report_files
from sbbf_tool.cli.tables import BYTES, COUNT, NAME, RATE, SENTENCE, WORD, Heading
from sbbf_tool.cli.values import unmark
from sbbf_tool.extension import INSTEAD
from sbbf_tool.numbers import format_row_groups
from sbbf_tool.reports.rows import Row

if TYPE_CHECKING:
    from sbbf_tool.reports.probe import UnfitValue
    from sbbf_tool.verbs.explain import ExplainReport

_COLUMNS = (
    Heading("row group", COUNT),
    Heading("bytes", BYTES, 5),
    Heading("of column", BYTES, 6),
    Heading("min", NAME, 3),
    Heading("max", NAME, 3),
    Heading("statistics", WORD),
    Heading("dictionary", WORD),
    Heading("filter", WORD),
    Heading("reason", SENTENCE, 4),
)
_ENGINES = (
    Heading("engine", SENTENCE),
    Heading("statistics", COUNT),
    Heading("dictionary", COUNT, 3),
    Heading("filter", COUNT),
    Heading("read", COUNT, 1),
    Heading("bytes skipped", RATE, 2),
    Heading("of column", RATE, 4),
    Heading("harm", WORD),
)
_SUMS = (
    Heading("engine", SENTENCE),
    Heading("row groups", COUNT, 1),
    Heading("skipped", COUNT),
    Heading("read", COUNT),
    Heading("bytes skipped", RATE),
)


@click.command(cls=NegativeValues)
@click.option("-c", "--column", metavar="COLUMN", help="Query this column; all arguments are then PATHs.")
@click.option("--value", "named_values", multiple=True, metavar="VALUE", help="Query this value (with -c; repeat for more).")
@click.option("--null", "ask_null", is_flag=True, help="Query null, as IS NULL does.")
@engines_option
@strict_option
@page_limit_option
@output_options()
@over_files("PATH... [COLUMN VALUE | CONDITION]")
def command(
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    ask_null: bool,
    engines: tuple[str, ...],
    max_page_bytes: int | None,
    strict: bool,
    outputs: Outputs,
) -> int:
    """Show which row groups a query for COLUMN = VALUE reads, and whether the statistics, the dictionary or the filter excludes each of the
    others.

    \b
    $ sbbf explain events.parquet user_id 42
    $ sbbf explain lake "user_id IN (42, 43)" --engines duckdb

    The last two arguments are column and value, or the last is a condition: "user_id IN (42, 43)". With -c COLUMN --value VALUE, all
    arguments are PATHs. A second table shows, for each engine, how many row groups it skips by each of these means, and the share of bytes
    skipped. For several files, the command prints a line per file that may hold the value, and the totals. Exit code 0: some row group may
    hold the value; 1: it is certainly absent.

    In STRING and other BYTE_ARRAY columns, the value `null` is text; in other columns it means null, as --null does.
    """
    from sbbf_tool.running.work import Work
    from sbbf_tool.verbs.explain import Explain

    files, column, values = _split_arguments(files, column, named_values, ask_null)
    instead: Callable[..., int] | None = click.get_current_context().meta.get(INSTEAD)
    if instead is not None:
        if len(values) > 1:
            raise click.UsageError("engines are run for one value")
        return instead(files, column, values[0], outputs)
    verb = Explain(column, values, engines)
    work = Work(verb, keys=files.keys, max_page_bytes=max_page_bytes, strict=files.is_strict(strict))
    return report_files(files, work, _ExplainView(is_empty_table=files.is_empty_table), outputs, (column,))


def _split_arguments(
    files: Files, column: str | None, values: tuple[str, ...], ask_null: bool
) -> tuple[Files, str, tuple[str | None, ...]]:
    """Return the files, the column and the values; None stands for null."""
    condition = None if column or values or ask_null else split_condition(files)
    if condition is not None:
        files, ((column, sought_values), *others) = condition
        if others:
            raise click.UsageError("explain takes a condition on one column; probe takes several")
        return files, column, sought_values
    arguments = [unmark(argument) for argument in files.arguments]
    sought: list[str | None] = [*map(unmark, values), *([None] if ask_null else [])]
    if column is None:
        operands = 1 if ask_null else 2
        if files.is_listed or values:
            raise click.UsageError("with --files-from or --value, name the column with -c COLUMN")
        if len(arguments) <= operands:
            raise click.UsageError(
                "no file was given: give PATH or --files-from"
                if not arguments
                else "no column was given"
                if len(arguments) == 1
                else "no value to query: give VALUE or --null"
            )
        arguments, (column, *literals) = arguments[:-operands], arguments[-operands:]
        ensure_column(column)
        if ask_null and len(arguments) > 1 and _is_missing(arguments[-1]):
            raise click.UsageError("give VALUE or --null, not both")
        if not ask_null and len(arguments) > 1 and os.path.splitext(arguments[-1])[1] != ".parquet" and _is_missing(arguments[-1]):
            raise click.UsageError(f"{arguments[-1]} is not a file: explain takes one value after the column; use probe for several")
        sought += literals
    elif not sought:
        raise click.UsageError("no value to query: give --value or --null")
    return files.of(tuple(arguments)), column, tuple(sought)


def _is_missing(name: str) -> bool:
    """Return whether a PATH is not an existing local file; it is then probably a column followed by a value."""
    from sbbf_tool.storage.places import find_single_file, is_url

    return not is_url(name) and find_single_file(name) is not None and not os.path.lexists(name)


def _label(names: list[str], engines: int) -> str:
    """Return the names of engines with the same results, of so many engines."""
    return f"all {engines} engines" if len(names) == engines > 1 else ", ".join(names)


def _bound(text: str | None) -> str | None:
    return None if text is None else render.value(text)


class _ExplainView(View["ExplainReport"]):
    schema = "explain"
    lists_answers = True

    def __init__(self, *, is_empty_table: bool) -> None:
        super().__init__()
        self._is_empty_table = is_empty_table
        self._bytes = self._row_groups = self._files_without_column = 0
        self._sums: dict[str, list[int]] = {}
        self._unfit: dict[str, UnfitValue] | None = None
        self._warnings: dict[str, None] = {}

    def add(self, report: ExplainReport, row: Row[object]) -> int:
        self._files_without_column += report.type is None
        self._unfit = keep_unfit(self._unfit, report)
        self._warnings.update(dict.fromkeys(report.warnings))
        if report.engines:
            self._bytes += report.bytes
            self._row_groups += len(report.row_groups)
        for engine in report.engines:
            sums = self._sums.setdefault(engine.name, [0, 0, 0])
            skipped = engine.skipped_by_statistics + engine.skipped_by_dictionary + engine.skipped_by_filter
            for index, count in enumerate((skipped, engine.row_groups_read, engine.bytes_skipped)):
                sums[index] += count
        return render.say_unreadable([(row.path, None, place) for place in report.unreadable]) or (ABSENT if report.absent else MAYBE)

    def answer(self, codes: set[int]) -> int:
        codes |= say_unfit(self._unfit)
        return choose_exit_code(codes, self._warnings, is_empty_table=self._is_empty_table)

    def show(self, page: Page, report: ExplainReport) -> None:
        page.say(f"{report.file}: column {report.column}, {report.type}, value {render.value(report.value)}")
        page.table(
            _COLUMNS,
            [
                (
                    *(row.row_group, row.bytes, row.column_bytes, *map(_bound, (row.min_value, row.max_value))),
                    *(row.statistics, row.dictionary or "-", row.filter),
                    row.statistics_reason or row.dictionary_reason or row.filter_reason,
                )
                for row in report.row_groups
            ],
            matters=lambda row: "absent" not in row[-4:-1],
        )
        engines_by_cells: dict[tuple[object, ...], list[str]] = {}
        for engine in report.engines:
            counts = (engine.skipped_by_statistics, engine.skipped_by_dictionary, engine.skipped_by_filter, engine.row_groups_read)
            cells = (*counts, engine.share_skipped, engine.share_of_column_skipped, engine.harm)
            engines_by_cells.setdefault(cells, []).append(engine.name)
        page.say("row groups that each engine skips by statistics, dictionary or filter, and reads:")
        page.table(_ENGINES, [(_label(names, len(report.engines)), *cells) for cells, names in engines_by_cells.items()])
        if len(report.engines) == 1:
            page.say(f"{report.engines[0].name}: {report.engines[0].explanation}")
        if report.note:
            page.say(f"note: {report.note}")

    def show_line(self, page: Page, report: ExplainReport) -> None:
        numbers = [row.row_group for row in report.row_groups if not row.is_absent]
        if numbers:
            page.say(f"{report.file}: {render.value(report.value)}: {format_row_groups(numbers)}")

    def show_end(self, page: Page, files: str) -> None:
        names_by_sums: dict[tuple[int, ...], list[str]] = {}
        for name, sums in self._sums.items():
            names_by_sums.setdefault(tuple(sums), []).append(name)
        rows = [
            (_label(names, len(self._sums)), self._row_groups, skipped, read, size / self._bytes if self._bytes else None)
            for (skipped, read, size), names in names_by_sums.items()
        ]
        if rows:
            page.table(_SUMS, rows)
        page.say(f"{files}{say_without_column(self._files_without_column)}")

    def totals(self) -> dict[str, Any]:
        engines = [
            {"name": name, "row_groups_skipped": skipped, "row_groups_read": read, "bytes_skipped": size}
            for name, (skipped, read, size) in self._sums.items()
        ]
        sums = {"row_groups": self._row_groups, "bytes": self._bytes, "files_without_column": self._files_without_column}
        return {**sums, "engines": engines}
