"""`sbbf repair TABLE --abandoned AGE`: the copies of files that runs left in a table."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.choice import VerbChoice
from sbbf_tool.cli.options import COMMAND_LINE, SAFETY, Option, Parsed
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.tables import COUNT, NAME, Heading
from sbbf_tool.display import redact
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.cli.changes import ChangedFiles
    from sbbf_tool.cli.files import Files
    from sbbf_tool.extensions.tables.abandoned import FindAbandoned
    from sbbf_tool.extensions.tables.copies import AbandonedReport

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_COLUMNS = (Heading("hours", COUNT), Heading("copy", NAME))


def _parse_duration(text: str) -> float | None:
    """Return the seconds of a duration; None for other text."""
    match = re.fullmatch(r"(\d{1,9})\s*([smhd])", text.strip(), re.ASCII)
    return float(int(match[1]) * _SECONDS[match[2]]) if match else None


_DURATION = Parsed("duration", _parse_duration, "is not a duration; write 90s, 30m, 24h or 7d")


def make_options() -> list[click.Option]:
    """Make the options of `repair`: with --abandoned, it is about copies instead of filters."""

    def remember(ctx: click.Context, param: click.Parameter, age: float | None) -> None:
        if age is not None:
            VerbChoice(partial(_make_verb, age), _report, "listing copies").choose()

    return [
        Option(
            ["--abandoned"],
            topic=SAFETY,
            place=COMMAND_LINE,
            type=_DURATION,
            metavar="AGE",
            expose_value=False,
            callback=remember,
            help="Of a table: list copies that a run left without a commit at least 24h, "
            "30m, ... ago; --in-place deletes them.",
        ),
    ]


def _make_verb(age: float, files: ChangedFiles, columns: tuple[str, ...]) -> FindAbandoned:
    """Return the verb that lists the abandoned copies of a table, and deletes them if the command
    changes it in place."""
    from sbbf_tool.extensions.tables.abandoned import FindAbandoned

    if files.output is not None:
        raise click.UsageError("--output is for one file; delete abandoned copies with --in-place")
    if files.where is not None or columns:
        raise click.UsageError(
            "--abandoned is for the whole table: it takes neither --where nor --column"
        )
    return FindAbandoned(age, files.in_place and not files.dry_run)


def _report(files: Files, report: AbandonedReport) -> int:
    files.outputs.print("abandoned", report, _show_report)
    return 0


def _show_report(page: Page, report: AbandonedReport) -> None:
    page.table(_COLUMNS, [(int(copy.age_seconds / 3600), copy.path) for copy in report.copies])
    outcome = "deleted" if report.deleted else "abandoned"
    if report.copies and not report.deleted:
        outcome += "; --in-place deletes them"
    if report.younger:
        outcome += f"; {report.younger:,} younger: a run may be at work on them"
    copies = format_count(len(report.copies), "copy", "copies")
    page.say(f"{redact(report.table)}: {copies} {outcome}")
