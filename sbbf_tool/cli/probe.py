"""`sbbf probe`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files, strict_option
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import View, report_files
from sbbf_tool.cli.tables import COUNT, NAME, SENTENCE, WORD, Column
from sbbf_tool.cli.values import blocks_of
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.numbers import format_count, format_row_groups
from sbbf_tool.reports.rows import FileRow

if TYPE_CHECKING:
    from sbbf_tool.reports.explain import ExplainReport
    from sbbf_tool.reports.lookup import LookupReport
    from sbbf_tool.reports.probe import ProbeReport, UnfitValue, ValueAnswers

MAYBE, ABSENT = 0, 1

MAX_VALUES = 1_000_000
"""Maximum number of values from a file or a pipe, because all are held in memory and a pipe may be endless."""


_COLUMNS = (Column("value", NAME), Column("row group", COUNT), Column("answer", WORD), Column("reason", SENTENCE))

_VALUE_MARK = "\0"
"""Marks an argument as a value that click must not parse as an option; no argument contains it."""


class NegativeValues(Command):
    """A command that accepts as values negative numbers, which click would parse as options, and a `-` after `--`."""

    _NEGATIVE = re.compile(r"-(\d|\.\d|inf|P)", re.IGNORECASE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end_of_options = args.index("--") if "--" in args else len(args)
        numbers = {spelling for option in self.params if option.type in (click.INT, click.FLOAT) for spelling in option.opts}
        marked_args = [
            _VALUE_MARK + arg if (self._NEGATIVE.match(arg) and previous not in numbers) or (arg == "-" and at > end_of_options) else arg
            for at, (previous, arg) in enumerate(zip(["", *args], args, strict=False))
        ]
        remaining_args = super().parse_args(ctx, marked_args)
        for name, value in ctx.params.items():
            if isinstance(value, str):
                ctx.params[name] = unmark(value)
        return remaining_args


def unmark(argument: str) -> str:
    """Return an argument without its mark."""
    return argument.removeprefix(_VALUE_MARK)


@click.command(cls=NegativeValues)
@click.option("-c", "--column", metavar="COLUMN", help="Query this column; all arguments are then PATHs.")
@click.option("--value", "named_values", multiple=True, metavar="VALUE", help="Query this value (repeat for more).")
@click.option(
    "--values-file", type=click.Path(), help="Also query the values in this file, one per line without empty ones; - reads standard input."
)
@click.option("--null", "ask_null", is_flag=True, help="Query null.")
@click.option(
    "--dialect",
    metavar="NAME",
    help="Query filters that follow this draft of the format too; without the option, such filters give no answer.",
)
@click.option("--stats", is_flag=True, help="Print the number of bytes and files read, and of requests, to standard error.")
@strict_option
@output_options()
@over_files("PATH [COLUMN VALUE...] | PATH...")
def command(
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    values_file: str | None,
    ask_null: bool,
    dialect: str | None,
    stats: bool,
    strict: bool,
    outputs: Outputs,
) -> int:
    """Query the Bloom filters of COLUMN to test whether a file may hold a value.

    `sbbf probe PATH COLUMN VALUE...` takes one PATH: a Parquet file, a folder, a quoted glob, a URL or a table. `sbbf probe PATH... -c
    COLUMN` takes many, and reads values from --value and --values-file. The column's type determines how values are written: 42,
    0x00ff, text. The argument `-` as VALUE reads values from standard input, one per line, and skips empty lines; after `--`, and with
    --value, `-` is a value. Exit code 0: some row group may hold one of the values; 1: all values are certainly absent from all files.
    For several files, the command lists those that may hold a value; for more than 1,000 values in one file, the values that it may hold.

    In STRING and other BYTE_ARRAY columns, the value `null` is text; in other columns it means null, as --null does.
    """
    view: _ProbeView | _LookupView
    # Only as an argument does `-` stand for standard input.
    named_values = tuple(_VALUE_MARK + value if value == "-" else value for value in named_values)
    from sbbf_tool.runner import works

    files, column, values = split_arguments(files, column, named_values)
    files.ensure_single_reader(values_file, *values)
    all_values = collect_values(values, values_file, ask_null)
    if files.file is not None:
        view = _ProbeView()
        view.values_file = values_file
        code = report_files(files, works.probe(column, all_values, dialect=dialect, keys=files.keys), view, outputs)
    else:
        view = _LookupView(len(all_values), is_empty_table=files.is_empty_table)
        view.values_file = values_file
        work = works.look_up(column, all_values, dialect=dialect, keys=files.keys, strict=strict)
        code = report_files(files, work, view, outputs, (column,))
    if stats:
        view.show_stats()
    return code


def split_arguments(files: Files, column: str | None, values: tuple[str, ...]) -> tuple[Files, str, tuple[str, ...]]:
    """Return the files, the column and the values of `PATH COLUMN VALUE...` or of `PATH... -c COLUMN --value VALUE`."""
    if column is not None:
        return files.of(tuple(map(unmark, files.arguments))), column, values
    if files.is_listed:
        raise click.UsageError("with --files-from, name the column with -c COLUMN")
    if len(files.arguments) < 2:
        raise click.UsageError("no column was given" if files.arguments else "no file was given: give PATH or --files-from")
    path, column, *rest = files.arguments
    ensure_column(unmark(column))
    return files.of((unmark(path),)), unmark(column), (*rest, *values)


def ensure_column(name: str) -> None:
    """Raise click.UsageError if the column is a file, which happens if the shell expanded a glob."""
    if os.path.isfile(name) or (os.sep in name and os.path.exists(name)):
        raise click.UsageError(f"expected a column, not the file {name}: quote the glob, or use -c COLUMN --value VALUE")


def say_without_column(files: int) -> str:
    """Return the end of the last line that counts the files of a table without the column; empty if there are none."""
    return f"; {format_count(files, 'file')} without the column" if files else ""


def choose_exit_code(codes: set[int], warnings: Iterable[str], *, is_empty_table: bool) -> int:
    """Return the exit code for all files: the highest error code; without errors, 0 if any file may hold a value, otherwise 1, with
    warnings of what may be meant otherwise.
    """
    if not codes and not is_empty_table:
        raise UnreadableError("no file was queried", hint="check the predicate of --where")
    code = max(codes - {MAYBE, ABSENT}, default=MAYBE if MAYBE in codes else ABSENT)
    for warning in warnings if code == ABSENT else ():
        complain(f"sbbf: warning: {warning}", kind="warning")
    return code


_MOST_UNFIT = 5


def keep_unfit(unfit: dict[str, UnfitValue] | None, report: ProbeReport | LookupReport | ExplainReport) -> dict[str, UnfitValue] | None:
    """Return the values that no file so far can hold; None before the first file that has the column."""
    if report.type is None:
        return unfit
    return {each.value: each for each in report.unfit if unfit is None or each.value in unfit}


def say_unfit(unfit: dict[str, UnfitValue] | None, values_file: str | None = None) -> set[int]:
    """Print the values that no file can hold, each with its line; return the exit code of an error, if there are any."""
    for each in islice((unfit or {}).values(), _MOST_UNFIT):
        line = None if values_file in (None, "-") else _find_line(values_file or "", each.value)
        place = f"value {each.position + 1:,}" if line is None else f"values file {values_file}, line {line:,}"
        complain(f"sbbf: {place}: {each.reason}")
    if unfit and len(unfit) > _MOST_UNFIT:
        complain(f"sbbf: {len(unfit) - _MOST_UNFIT:,} more values are in no file's type")
    return {UsageError.exit_code} if unfit else set()


def _find_line(name: str, value: str) -> int | None:
    try:
        with open(name, "rb") as stream:
            lines = enumerate(stream, 1)
            return next((number for number, line in lines if line.rstrip(b"\r\n") == value.encode("utf-8", "surrogateescape")), None)
    except OSError:
        return None


class _Answers(View[Any]):
    """Totals of the answers of all files."""

    def __init__(self, *, is_empty_table: bool = False) -> None:
        super().__init__()
        self._is_empty_table = is_empty_table
        self._files = self._bytes_read = self._requests = 0
        self._warnings: dict[str, None] = {}
        self._unfit: dict[str, UnfitValue] | None = None
        self.values_file: str | None = None
        """The file of the values, for the lines of those that no file can hold."""

    def add(self, report: ProbeReport | LookupReport, row: FileRow | None = None) -> int:
        self._files += 1
        self._warnings.update(dict.fromkeys(report.warnings))
        self._unfit = keep_unfit(self._unfit, report)
        self._bytes_read += report.bytes_read
        self._requests += report.requests
        return render.say_unreadable_parts(report.unreadable, report.file) or (ABSENT if report.is_absent else MAYBE)

    def answer(self, codes: set[int]) -> int:
        codes |= say_unfit(self._unfit, self.values_file)
        return choose_exit_code(codes, self._warnings, is_empty_table=self._is_empty_table)

    def show_stats(self) -> None:
        requests = f" in {self._requests:,} requests" if self._requests else ""
        complain(f"read {self._bytes_read:,} bytes of {format_count(self._files, 'file')}{requests}", kind="note")


class _ProbeView(_Answers):
    """Table of each value in each row group of one file."""

    schema = "probe"

    def show(self, page: Page, report: ProbeReport) -> None:
        from sbbf_tool.reports.probe import ValueAnswers

        page.say(f"{report.file}: column {report.column}, {report.type}")
        if isinstance(report.values, ValueAnswers):
            self._show_many(page, report.values)
            return
        page.table(
            _COLUMNS,
            [
                (
                    *(render.value(value.value), answer.row_group, answer.answer),
                    answer.reason or value.note or "",
                )
                for value in report.values
                for answer in value.row_groups
            ],
            matters=lambda row: row[-2] != "absent",
        )

    show_line = show

    def _show_many(self, page: Page, values: ValueAnswers) -> None:
        """List the values that may be stored, and count the others."""
        count = 0

        def list_values() -> Iterator[str]:
            nonlocal count
            for text, row_groups in values.find_values():
                count += 1
                yield f"{render.value(text)}: {format_row_groups(row_groups)}"

        page.say_all(list_values())
        reasons: dict[str, list[int]] = {}
        for each in values.open_filters:
            reasons.setdefault(f"{each.answer}: {each.reason}" if each.reason else each.answer, []).append(each.row_group)
        for reason, row_groups in reasons.items():
            page.say(f"any of the values: {format_row_groups(row_groups)} ({reason})")
        ending = "; the row groups without an answer may hold any of them" if reasons else f", {len(values) - count:,} are absent"
        page.say(f"{format_count(len(values), 'value')}: {count:,} may be in the file{ending}")


class _LookupView(_Answers):
    """List of the files and row groups that may hold each of many values."""

    schema = "lookup"
    command = "probe"
    lists_answers = True

    def __init__(self, values: int, *, is_empty_table: bool) -> None:
        super().__init__(is_empty_table=is_empty_table)
        self._values = values
        self._values_with_hits: set[str] = set()
        self._files_with_hits = self._inconclusive_files = self._excluded_files = self._files_without_column = 0

    def add(self, report: ProbeReport | LookupReport, row: FileRow | None = None) -> int:
        report = cast("LookupReport", report)
        self._values_with_hits.update(hit.value for hit in report.hits)
        self._files_with_hits += bool(report.hits)
        self._inconclusive_files += bool(report.inconclusive)
        self._excluded_files += report.is_absent
        self._files_without_column += report.type is None
        return super().add(report)

    def show_line(self, page: Page, report: LookupReport) -> None:
        page.say_all(f"{report.file}: {render.value(hit.value)}: {format_row_groups(hit.row_groups)}" for hit in report.hits)
        for inconclusive in report.inconclusive:
            reason = f"{inconclusive.answer}: {inconclusive.reason}" if inconclusive.reason else inconclusive.answer
            page.say(f"{report.file}: any of the values: {format_row_groups(inconclusive.row_groups)} ({reason})")

    show = show_line

    def show_end(self, page: Page, files: str) -> None:
        values, total = format_count(self._values, "value"), format_count(self._files, "file")
        answers = []
        if hits := self._files - self._inconclusive_files - self._excluded_files:
            answers.append(f"{format_count(hits, 'file')} may hold {len(self._values_with_hits):,} of the values")
        if self._inconclusive_files:
            answers.append(f"{format_count(self._inconclusive_files, 'file')} may hold any of them, because filters gave no answer")
        if answers and self._excluded_files:
            answers.append(f"{format_count(self._excluded_files, 'file')} cannot hold any of them")
        elif not answers and self._files_without_column < self._files:
            answers.append("filters exclude all of them")
        elif not answers:
            answers.append("none of them is in the files")
        if self.links:
            answers.append(f"{format_count(self.links, 'linked folder')} skipped, which may hold any of them")
        if self.unfinished:
            answers.append(f"{format_count(self.unfinished, 'unfinished file')} left out, which may hold any of them")
        if self.left_out:
            answers.append(f"{format_count(self.left_out, 'file')} left out, which may hold any of them")
        if self.failures:
            answers.append(f"{format_count(self.failures, 'more file')} could not be queried")
        page.say(f"Queried {values} in {total}: {'; '.join(answers)}{say_without_column(self._files_without_column)}")

    def totals(self) -> dict[str, Any]:
        return {
            "values": self._values,
            "values_with_hits": len(self._values_with_hits),
            "files_with_hits": self._files_with_hits,
            "files_with_inconclusive_row_groups": self._inconclusive_files,
            "files_without_column": self._files_without_column,
            "bytes_read": self._bytes_read,
        }


def collect_values(arguments: tuple[str, ...], values_file: str | None, ask_null: bool) -> Sequence[str | None]:
    """Collect the values of a command line: its arguments, values from standard input or a file, and None for null."""
    if values_file is None and "-" not in arguments:
        values: Sequence[str | None] = (*([None] if ask_null else []), *map(unmark, arguments))
    else:
        from sbbf_tool.file.texts import Texts

        values = Texts.of(_read_values(arguments, values_file), nulls=int(ask_null))
    if not values:
        raise click.UsageError("no value to query")
    return values


def _read_values(arguments: tuple[str, ...], values_file: str | None) -> Iterator[list[bytes]]:
    for argument in arguments:
        yield from _read_file("-") if argument == "-" else [[os.fsencode(unmark(argument))]]
    if values_file is not None:
        yield from _read_file(values_file)


def _read_file(name: str) -> Iterator[list[bytes]]:
    count = 0
    for lines in blocks_of(name):
        count += len(lines)
        if count > MAX_VALUES:
            source = "standard input" if name == "-" else name
            raise click.UsageError(f"more than {MAX_VALUES:,} values in {source}: query them in several runs")
        yield lines
