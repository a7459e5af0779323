"""What `probe` and `explain` have in common: a column and values on the command line, and one
answer about all files."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.files import Files
from sbbf_tool.cli.formats import View
from sbbf_tool.cli.options import add_options
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.values import VALUE_MARK, collect_values, unmark
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extension import is_index
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sbbf_tool.advice.queries import Condition
    from sbbf_tool.reports.probe import UnfitValue
    from sbbf_tool.reports.rows import Row

MAYBE, ABSENT = 0, 1
Report = TypeVar("Report")

_SUFFIXES = (".parquet", ".parq", ".pq")
_CONDITION = r"(?i)[=<>]|\s(in|is|not|between|like)\b"
_NO_TEXT = r"(?si)'.*|[+-]?[\d.]+(e[+-]?\d+)?|true|false|null"


class NegativeValues(Command):
    """A command that accepts as values negative numbers, which click would parse as options, and a
    `-` after `--`."""

    _NEGATIVE = re.compile(r"-(\d|\.\d|inf|P)", re.IGNORECASE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end_of_options = args.index("--") if "--" in args else len(args)
        numbers = {
            spelling
            for option in self.params
            if option.type in (click.INT, click.FLOAT)
            for spelling in option.opts
        }
        marked_args = [
            VALUE_MARK + arg
            if (self._NEGATIVE.match(arg) and previous not in numbers)
            or (arg == "-" and at > end_of_options)
            else arg
            for at, (previous, arg) in enumerate(zip(["", *args], args, strict=False))
        ]
        remaining_args = super().parse_args(ctx, marked_args)
        for name, value in ctx.params.items():
            if isinstance(value, str):
                ctx.params[name] = unmark(value)
        return remaining_args


query_options = partial(
    add_options,
    options=(
        click.option(
            "-c",
            "--column",
            metavar="COLUMN",
            help="Query this column; all arguments are then PATHs.",
        ),
        click.option(
            "--value",
            "named_values",
            multiple=True,
            metavar="VALUE",
            help="Query this value (repeat for more).",
        ),
        click.option("--null", "ask_null", is_flag=True, help="Query null."),
    ),
)
"""Add the options for a column and its values to a command."""


def read_query(
    files: Files,
    column: str | None,
    named_values: tuple[str, ...],
    values_file: str | None = None,
    *,
    ask_null: bool,
) -> tuple[Files, str, Sequence[str | None], Sequence[Condition]]:
    """Return the files, column and values (None is null) of `PATH COLUMN VALUE...`, of `PATH... -c
    COLUMN --value VALUE`, or of `PATH... CONDITION`, with its conditions on other columns, which
    rows must satisfy too.
    """
    *paths, text = [unmark(argument) for argument in files.arguments] or [""]
    # Only as an argument does `-` stand for standard input.
    values = tuple(VALUE_MARK + value if value == "-" else value for value in named_values)
    has_values = bool(values) or values_file is not None or ask_null
    if column is not None:
        files = files.of((*paths, text) if files.arguments else ())
    # After the name of a column, the last argument is a value, also if it has the form of a
    # condition.
    elif (
        not has_values
        and re.search(_CONDITION, text)
        and (paths or files.is_listed)
        and (len(paths) < 2 or _is_path(paths[-1]))
    ):
        from sbbf_tool.advice.queries import parse_query

        _ensure_column(text)
        (column, conditions), *also = parse_query(text).conditions
        return files.of(tuple(paths)), column, conditions, also
    else:
        if files.is_listed:
            raise click.UsageError("with --files-from, name the column with -c COLUMN")
        if not paths:
            raise click.UsageError(
                "no column was given" if text else "no file was given: give PATH or --files-from"
            )
        path, marked_column, *rest = files.arguments
        column = unmark(marked_column)
        _ensure_column(column)
        if len(rest) > 1 and (
            rest[0] == "=" or (rest[0].upper() == "IN" and rest[1].startswith("("))
        ):
            sign, first, *others = map(unmark, rest)
            first = first if sign != "=" or re.fullmatch(_NO_TEXT, first) else f"'{first}'"
            raise click.UsageError(
                f'write the condition in quotes: "{" ".join((column, sign, first, *others))}"'
            )
        files, values = files.of((unmark(path),)), (*rest, *values)
    if [files.files_from, values_file, *values].count("-") > 1:
        raise click.UsageError(
            "only one of --files-from -, --values-file - and the value - can read standard input"
        )
    return files, column, collect_values(values, values_file, ask_null), ()


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

    def __init__(self, files: Files, values_file: str | None = None) -> None:
        super().__init__()
        self.files = files
        self.counts: Counter[str] = Counter(
            files=0
        )  # an empty one would keep truth values as they are
        self._values_file = values_file
        self._warnings: dict[str, None] = {}
        self._unfit: dict[str, UnfitValue] | None = None
        """The values that no file so far can hold; None before the first file that has the
        column."""

    def take_answer(self, report: Any, row: Row[object], *, is_absent: bool) -> int:
        """Count the answer of a file, print what could not be read, and return its exit code."""
        self._warnings.update(dict.fromkeys(report.warnings))
        if report.type is not None:
            self._unfit = {
                each.value: each
                for each in report.unfit
                if self._unfit is None or each.value in self._unfit
            }
        if self.is_single and self._unfit:  # half an answer would look like a whole one
            self._say_unfit(self._unfit)
            raise click.exceptions.Exit(UsageError.exit_code)
        self.counts.update(files=1, absent=is_absent, without_column=report.type is None)
        return render.say_unreadable([(row.path, None, place) for place in report.unreadable]) or (
            ABSENT if is_absent else MAYBE
        )

    def answer(self, codes: set[int]) -> int:
        """Return the highest error code; without errors, 0 if any file may hold a value, otherwise
        1, with warnings of other meanings."""
        if self._unfit:
            self._say_unfit(self._unfit)
            codes.add(UsageError.exit_code)
        if not codes and (
            self.files.table is None
            or self.files.where is not None
            or self.files.selection.live_files()
        ):
            raise UnreadableError("no file was queried", hint="check the predicate of --where")
        code = max(codes - {MAYBE, ABSENT}, default=MAYBE if MAYBE in codes else ABSENT)
        for warning in self._warnings if code == ABSENT else ():
            complain(f"sbbf: warning: {warning}", kind="warning")
        return code

    def _say_unfit(self, values: Mapping[str, UnfitValue]) -> None:
        for each in values.values():
            line = (
                None
                if self._values_file in (None, "-")
                else _find_line(self._values_file or "", each.value)
            )
            place = (
                f"value {each.position + 1:,}"
                if line is None
                else f"values file {self._values_file}, line {line:,}"
            )
            complain(f"sbbf: {place}: {each.reason}")

    def say_what_lacks(self) -> str:
        """Return the end of the last line: how many values are not of the column's type, and how
        many of the files lack the column."""
        unfit, files = len(self._unfit or ()), self.counts["without_column"]
        text = (
            f"; {format_count(unfit, 'value')} without an answer: not of the column's type"
            if unfit
            else ""
        )
        return text + (
            f" ({files:,} of the files {'lacks' if files == 1 else 'lack'} the column)"
            if files
            else ""
        )


def _find_line(name: str, value: str) -> int | None:
    try:
        with open(name, "rb") as stream:
            lines = enumerate(stream, 1)
            return next(
                (
                    number
                    for number, line in lines
                    if line.rstrip(b"\r\n") == value.encode("utf-8", "surrogateescape")
                ),
                None,
            )
    except OSError:
        return None
