"""What `probe` and `explain` have in common: a column and values on the command line, and one
answer about all files."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files, over_files, strict_option
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import COLUMNS, READING
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.values import as_value, collect_values, is_standard_input
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import is_index
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import PARTITION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sbbf_tool.reports.probe import UnfitValue
    from sbbf_tool.reports.rows import Row

SOME_MAY_BE = 0
ALL_ABSENT = 1
Report = TypeVar("Report")

_SUFFIXES = (".parquet", ".parq", ".pq")
_CONDITION = r"(?i)[=<>]|\s(in|is|not|between|i?like)\b"
_COMPARISON = r"""(?i)\s*["\w.]+\s*([=<>]|\s(in|is|between)\b)"""
"""The beginning of a value that may be meant as a condition."""
_NO_TEXT = r"(?si)'.*|[+-]?[\d.]+(e[+-]?\d+)?|true|false|null"


class NegativeValues(Command):
    """A command that accepts as values negative numbers, which click would parse as options, and a
    `-` after `--`."""

    _NEGATIVE = re.compile(r"-(\d|\.\d|inf|P)", re.IGNORECASE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end_of_options = args.index("--") if "--" in args else len(args)
        options_with_value = set()
        for option in self.params:
            if isinstance(option, click.Option) and not option.is_flag:
                options_with_value.update(option.opts)
        marked_args = []
        previous = ""
        for at, arg in enumerate(args):
            is_number = self._NEGATIVE.match(arg) and previous not in options_with_value
            is_dash = arg == "-" and at > end_of_options
            marked_args.append(_MARK + arg if is_number or is_dash else arg)
            previous = arg
        remaining_args = super().parse_args(ctx, marked_args)
        for name, value in ctx.params.items():
            ctx.params[name] = _unmark(value)
        return remaining_args


_MARK = "\0"
"""Marks an argument as a value that click must not parse as an option; no argument contains it."""


def _unmark(value: Any) -> Any:
    """Return the value of a parameter without marks."""
    if isinstance(value, tuple):
        return tuple(map(_unmark, value))
    if isinstance(value, str) and value.startswith(_MARK):
        return as_value(value.removeprefix(_MARK))
    return value


_OPTIONS = (
    COLUMNS.option(
        "-c",
        "--column",
        "Query this column; all arguments are then PATHs.",
        place=READING,
        metavar="COLUMN",
    ),
    COLUMNS.option(
        "--value",
        "named_values",
        "Query this value (repeat for more).",
        place=READING,
        multiple=True,
        metavar="VALUE",
    ),
    COLUMNS.flag("--null", "ask_null", "Query null.", place=READING),
)


class QueriedFiles(Files):
    """The files of a query."""

    asks_index = True


over_query = partial(
    over_files,
    *_OPTIONS,
    strict_option,
    metavar="PATH [COLUMN VALUE... | CONDITION] | PATH...",
    kind=QueriedFiles,
    command_class=NegativeValues,
)
"""Turn `function(files, ...)` into a command with options for files, a column and its values."""


def read_query(
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    values_file: str | None = None,
    *,
    ask_null: bool,
) -> tuple[Files, str, Sequence[object], str | None]:
    """Return the files, column and values (None is null) of `PATH COLUMN VALUE...` or of `PATH...
    -c COLUMN --value VALUE`; or the files and the condition of `PATH... CONDITION`.
    """
    # Only as an argument does `-` stand for standard input.
    values = tuple(map(as_value, named_values))
    has_values = bool(values) or values_file is not None or ask_null
    if column is None and not has_values and _ends_with_condition(files):
        *paths, text = files.arguments
        _ensure_column(text)
        return files.of(tuple(paths)), "", (), text
    if column is None:
        path, column, *rest = _split_arguments(files)
        files = files.of((path,))
        values = (*rest, *values)
    if sum(map(is_standard_input, (files.files_from, values_file, *values))) > 1:
        raise click.UsageError(
            "only one of --files-from -, --values-file - and the value - can read standard input"
        )
    collected = collect_values(
        values, values_file, ask_null, column, "COLUMN VALUE, or a condition in quotes"
    )
    return files, column, collected, None


def _ends_with_condition(files: Files) -> bool:
    """Return whether the last argument is a condition on the files.

    After the name of a column, the last argument is a value, also if it has the form of a
    condition.
    """
    if not files.arguments or not re.search(_CONDITION, files.arguments[-1]):
        return False
    paths = files.arguments[:-1]
    if not paths:
        return files.is_listed
    return len(paths) == 1 or _is_path(paths[-1])


def _split_arguments(files: Files) -> tuple[str, ...]:
    """Return the arguments `PATH COLUMN VALUE...`. Raises click.UsageError."""
    if files.is_listed:
        raise click.UsageError("with --files-from, name the column with -c COLUMN")
    if len(files.arguments) < 2:
        if any(files.arguments):
            raise click.UsageError("no column was given")
        raise click.UsageError("no file was given: give PATH or --files-from")
    path, column, *values = files.arguments
    _ensure_column(column)
    if len(values) > 1:
        _ensure_no_condition(column, values)
    for value in values:
        if re.match(_COMPARISON, value):
            render.note(
                f"sbbf: {value!r} is taken as a value; a condition is given without a column"
            )
    return path, column, *values


def _ensure_no_condition(column: str, words: Sequence[str]) -> None:
    """Raise click.UsageError if words behind a column are a condition that the shell has split."""
    has_list = words[0].upper() == "IN" and words[1].startswith("(")
    if words[0] != "=" and not has_list:
        return
    sign, value, *rest = words
    if sign == "=" and not re.fullmatch(_NO_TEXT, value):
        value = f"'{value}'"
    condition = " ".join((column, sign, value, *rest))
    raise click.UsageError(f'write the condition in quotes: "{condition}"')


def _ensure_column(name: str) -> None:
    """Raise click.UsageError if the column, or what is in its place, is an index, or a file: the
    shell has expanded a glob."""
    if is_index(name):
        raise click.UsageError(f"{name} is an index: give it as the only PATH")
    if name.endswith(_SUFFIXES):
        raise click.UsageError(
            f"expected a column or a value, not the file {name}: quote the glob, or use -c "
            "COLUMN --value VALUE"
        )


def _is_path(name: str) -> bool:
    """Return whether the form of a name is that of a path: what an argument means does not depend
    on the files that are there."""
    return name.endswith(_SUFFIXES) or "/" in name or os.sep in name


class AnswerView(View[Report]):
    """Whether any file may hold one of the values."""

    lists_answers = True
    sums = ("files",)

    def __init__(self, values_file: str | None = None) -> None:
        super().__init__()
        self._values_file = values_file
        self._warnings: dict[str, None] = {}
        self._unfit: dict[str, UnfitValue] | None = None
        """The values that no file so far can hold; None before the first file that has the
        column."""

    def take_answer(self, report: Any, row: Row[object], *, is_absent: bool) -> int:
        """Count the answer of a file, print what could not be read, and return its exit code."""
        if report.warnings:
            self._warnings.update(dict.fromkeys(report.warnings))
        # Once each value fits one of the files, none is unfit.
        if report.type is not None and self._unfit != {}:
            unfit = {value.value: value for value in report.unfit}
            if self._unfit is not None:
                unfit = {text: value for text, value in unfit.items() if text in self._unfit}
            self._unfit = unfit
        if self.is_single and self._unfit:  # half an answer would look like a whole one
            self._say_unfit(self._unfit)
            raise click.exceptions.Exit(UsageError.exit_code)
        self.total["files"] += 1
        self.total["absent"] += is_absent
        if report.type is None:
            self.total["without_column"] += 1
            self.total["stated_by_folder"] += any(
                column.type == PARTITION for column in report.named_columns
            )
        if report.unreadable:
            places = [(row.path, None, place) for place in report.unreadable]
            return render.say_unreadable(places)
        return ALL_ABSENT if is_absent else SOME_MAY_BE

    def answer(self, codes: set[int]) -> int:
        """Return the highest error code; without errors, 0 if any file may hold a value, otherwise
        1, with warnings of other meanings."""
        if self._unfit:
            self._say_unfit(self._unfit)
            codes.add(UsageError.exit_code)
        if not codes and not self._has_no_files():
            raise UnreadableError("no file was queried", hint="check the predicate of --where")
        errors = codes - {SOME_MAY_BE, ALL_ABSENT}
        if errors:
            return max(errors)
        if SOME_MAY_BE in codes:
            return SOME_MAY_BE
        for warning in self._warnings:
            complain(f"sbbf: warning: {warning}", kind="warning")
        return ALL_ABSENT

    def _has_no_files(self) -> bool:
        """Return whether there is nothing to query: an empty table."""
        if self.plan.table is None or self.plan.where is not None:
            return False
        return not self.plan.selection.live_files()

    def _say_unfit(self, values: Mapping[str, UnfitValue]) -> None:
        for value in values.values():
            place = f"value {value.position + 1:,}"
            if self._values_file is not None and self._values_file != "-":
                line = _find_line(self._values_file, value.value)
                if line is not None:
                    place = f"values file {self._values_file}, line {line:,}"
            complain(f"sbbf: {place}: {value.reason}")

    def say_what_lacks(self) -> str:
        """Return the end of the last line: how many values are not of the column's type, and how
        many of the files lack the column."""
        text = ""
        if self._unfit:
            unfit = format_count(len(self._unfit), "value")
            text = f"; {unfit} without an answer: not of the column's type"
        files = self.total["without_column"] - self.total["stated_by_folder"]
        if files:
            verb = "lacks" if files == 1 else "lack"
            text += f" ({files:,} of the files {verb} the column)"
        return text


def _find_line(name: str, value: str) -> int | None:
    text = value.encode("utf-8", "surrogateescape")
    try:
        with open(name, "rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.rstrip(b"\r\n") == text:
                    return number
    except OSError:
        pass
    return None
