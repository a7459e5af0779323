"""`sbbf report`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.files import Files, over_files, page_limit_option
from sbbf_tool.cli.options import (
    COLUMNS,
    COMMAND_LINE,
    OVERWRITE,
    RULES,
    SAFETY,
    VIEW,
    allow_option,
    engines_option,
)
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.report import NO_PARTITION
from sbbf_tool.cli.spelling import write_command
from sbbf_tool.cli.values import read_queries
from sbbf_tool.errors import RefusedError
from sbbf_tool.numbers import format_count

if TYPE_CHECKING:
    from sbbf_tool.extensions.report.contents import PageReport


@over_files(
    SAFETY.option(
        "-o",
        "--output",
        "Write this HTML file, which must not exist.",
        place=COMMAND_LINE,
        metavar="PAGE",
        required=True,
        type=click.Path(),
    ),
    COLUMNS.option(
        "--query",
        "queries",
        'Show what excludes each row group in this query: "user_id = 42 AND day IN '
        "('2026-01-31')\" (repeat for more).",
        multiple=True,
        metavar="QUERY",
    ),
    RULES.option(
        "--baseline",
        "against",
        "Compare with this report (.json) of an earlier sbbf inspect.",
        metavar="FILE",
        type=click.Path(),
    ),
    VIEW.flag("--quick", "Skip the rules that read data."),
    engines_option,
    page_limit_option,
    allow_option(OVERWRITE),
)
def command(
    files: Files,
    output: str,
    queries: tuple[str, ...],
    against: str | None,
    quick: bool,
    engines: tuple[str, ...],
    allow: frozenset[str],
) -> int:
    """Write one HTML page about the filters of files: where the bytes are, false-positive rates,
    what smaller filters would do, fill, and findings.

    \b
    $ sbbf report events.parquet -o events.html
    $ sbbf report lake -o lake.html --quick

    The page covers all files together. It is one file that loads nothing and needs no script, and
    has the numbers of each picture in a table. The findings are those of `sbbf check`, which reads
    data unless --quick is given. Exit code 3: a file could not be read; the page lists it.
    """
    from sbbf_tool.extensions.report.page import write_page

    if os.path.isfile(output) and OVERWRITE not in allow:
        raise RefusedError(
            "the target exists", file=output, hint="name another, or remove it first"
        )
    report = write_page(
        files.request(),
        output,
        queries=read_queries(queries),
        against=against,
        quick=quick,
        engine_names=engines,
        write_fix=write_command,
        no_files=NO_PARTITION if files.where is not None else None,
    )
    files.outputs.print("report", report, _show_report)
    for unreadable in report.unreadable:
        complain(f"sbbf: {unreadable.file}: {unreadable.reason}")
    more = report.unreadable_files - len(report.unreadable)
    if more:
        complain(f"sbbf: {format_count(more, 'more file')} could not be read")
    return report.exit_code


def _show_report(page: Page, report: PageReport) -> None:
    counts = (
        format_count(report.files, "file"),
        format_count(report.filters, "filter"),
        format_count(report.findings, "finding"),
    )
    page.say(f"{report.output}: {', '.join(counts)}")
