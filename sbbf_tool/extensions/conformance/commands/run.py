"""`sbbf conformance run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.command import Command
from sbbf_tool.cli.formats import Outputs, output_options
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, FILES, RULES, RUNNER, pure_setting
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.progress import show_progress
from sbbf_tool.cli.tables import COUNT, NAME, Heading
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sbbf_tool.extensions.conformance.reports import ConformanceProblem, ConformanceReport

_MOST_PROBLEMS = 50
_COLUMNS = (
    Heading("file", NAME),
    Heading("type", NAME, 2),
    Heading("correct", COUNT),
    Heading("unused", COUNT),
    Heading("cannot say", COUNT),
    Heading("noted", COUNT),
    Heading("wrong", COUNT),
    Heading("failed", COUNT),
)


@click.command(cls=Command)
@click.argument("folder", metavar="[DIR]", required=False)
@COLUMNS.option(
    "--reader",
    "Test this command with {file} (or {table}, of Paimon), {column} and {value}, or with "
    "{questions}.",
    place=COMMAND_LINE,
    metavar="CMD",
)
@COLUMNS.option(
    "--writer", "Test this command with {in} and {out}.", place=COMMAND_LINE, metavar="CMD"
)
@RULES.option(
    "--select",
    "only",
    "Test with files whose names match, such as 'types/*' (repeat for more).",
    metavar="PATTERN",
    multiple=True,
)
@FILES.flag(
    "--strict", "exact", "Also fail if a filter is not used, or only some readers accept it."
)
@pure_setting(
    "--timeout",
    "Time limit of a call.  [default: 60]",
    type=float,
    metavar="SECONDS",
    default=60,
)
@RUNNER.option(
    "--jobs",
    "Calls at the same time.  [default: one per core]",
    type=click.IntRange(min=1),
    metavar="N",
)
@output_options()
def command(
    folder: str | None, outputs: Outputs, only: tuple[str, ...], reader: str | None, **options: Any
) -> int:
    """Test a reader or writer with the corpus in DIR, or with one that is made for the run and
    deleted.

    \b
    $ sbbf conformance run --reader './reader {file} {column} {value}'
    $ sbbf conformance run --writer './writer {in} {out}' --select 'types/*'

    CMD is split into words once, and run without a shell. A reader ends with exit code 0 if the
    value may be stored, with 1 if it is absent, which it also prints, and with 3 if it cannot say;
    with {questions}, a file with a JSON object per line, it prints maybe, absent or cannot say for
    each. A writer writes the file {in} with a filter on {column} to {out}. Exit code 0: no answer
    is wrong; 1: a value is lost, or a call failed.
    """
    from sbbf_tool.extensions.conformance.run import run_conformance

    with show_progress("testing with the corpus"):
        if reader is not None and "{table}" in reader:
            options["paimon_reader"] = reader.replace("{table}", "{file}")
        else:
            options["reader"] = reader
        report = run_conformance(folder, only=only, **options)
    outputs.print("conformance-run", report, _show_report)
    return 0 if report.passed else 1


def _show_report(page: Page, report: ConformanceReport) -> None:
    from sbbf_tool.extensions.conformance.reports import VERDICTS

    page.table(
        _COLUMNS,
        report.results,
        matters=lambda result: any(heading.cell_of(result) for heading in _COLUMNS[3:]),
    )
    lines = list(_describe_all(report.problems))
    page.say_all(lines[:_MOST_PROBLEMS])
    if len(lines) > _MOST_PROBLEMS:
        page.say(f"and {len(lines) - _MOST_PROBLEMS:,} more; --format json lists all")
    counts = ", ".join(f"{report.count(verdict):,} {verdict}" for verdict in VERDICTS)
    subject = (
        f"corpus of version {report.corpus_version}, {report.kind}, "
        f"{format_count(report.calls, 'call')}"
    )
    page.say(f"{subject}: {counts}: {'passed' if report.passed else 'failed'}")


def _describe_all(problems: Sequence[ConformanceProblem]) -> Iterator[str]:
    """Describe the problems, those of one column with one message in one line with the first
    value."""
    groups = render.group(
        ((problem.verdict, problem.file, problem.column, problem.message), problem)
        for problem in problems
    )
    for (verdict, file, column, message), group in groups.items():
        place = f"{file}: column {column}"
        first_value = group[0].value
        if first_value is not None:
            place += f", value {render.value(first_value)}"
        if len(group) > 1:
            place += f" and {len(group) - 1:,} more"
        yield f"{verdict}: {place}: {message}"
