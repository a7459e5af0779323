"""`sbbf index`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from sbbf_tool.cli.files import Files, over_files, page_limit_option
from sbbf_tool.cli.options import COLUMNS, COMMAND_LINE, RATIO, READING, SAFETY
from sbbf_tool.cli.output import complain
from sbbf_tool.cli.page import Page
from sbbf_tool.display import redact
from sbbf_tool.numbers import format_count, format_number

if TYPE_CHECKING:
    from sbbf_tool.extensions.index.contents import IndexReport


@over_files(
    COLUMNS.option("-c", "--column", "Index this column.", place=READING, metavar="COLUMN"),
    SAFETY.option(
        "-o",
        "--output",
        "The folder of a new index; its name ends with .sbbfx.",
        place=COMMAND_LINE,
        type=click.Path(),
        metavar="FOLDER",
    ),
    COLUMNS.option(
        "--fpp",
        "The highest false-positive rate of a file.  [default: as its filters are]",
        type=RATIO,
    ),
    COLUMNS.option(
        "--false-files",
        "Let the index leave about N files per value that do not have it; this chooses --fpp.",
        type=click.FloatRange(min=0, min_open=True),
        metavar="N",
    ),
    COLUMNS.flag("--compact", "Merge the parts of the index into one.", place=COMMAND_LINE),
    SAFETY.flag("--dry-run", "Print what would be read and written."),
    page_limit_option,
    metavar="PATH... | INDEX",
)
def command(
    files: Files,
    column: str | None,
    output: str | None,
    fpp: float | None,
    false_files: float | None,
    compact: bool,
) -> int:
    """Index the files of a lake, so that probe opens only those that may hold a value.

    \b
    $ sbbf index lake -c user_id -o lake.sbbfx
    $ sbbf index lake.sbbfx

    `sbbf probe lake.sbbfx user_id 42` then answers as for the lake. The index has the filters of
    all files, ordered by block instead of by file: one read tells which files may hold a value, and
    only these are opened. Filters are taken as they lie in the files. Files that have none, or too
    weak ones for --fpp or --false-files, get new ones in the index, for which the column is read.
    Those are opened by each query in which nothing may exclude a value, for example because the
    column is encrypted.

    `sbbf index lake.sbbfx` updates an index: it takes the files that are new or have changed since.
    A query before that lists the lake, and opens such files itself, so that no value is missed.
    """
    from sbbf_tool.extensions.index.build import begin_index, index_files
    from sbbf_tool.extensions.index.target import IndexTarget

    if files.as_files:
        raise click.UsageError(
            "the root of a table means its live files, also when the index is queried: leave out "
            "--as-files"
        )
    if files.table_format is not None:
        raise click.UsageError("an index keeps no format of a table: leave out --as")
    request = files.request()
    if request.select().index is not None:
        _ensure_none(column, output, fpp, false_files, files.where)
        target = IndexTarget(files.arguments[0])
    elif column is None or output is None or compact:
        raise click.UsageError(
            "a new index needs --column and --output; to update one, give it as the only PATH"
        )
    else:
        target = begin_index(request.paths, column, output, files.where, fpp, false_files)
    with target:
        report, failed = index_files(
            target,
            request,
            false_files=false_files,
            compact=compact,
            dry_run=files.dry_run,
        )
    files.outputs.print("index", report, _show)
    for row in failed:
        complain(f"sbbf: {row.path}: {row.reason}")
    return max((row.exit_code for row in failed), default=0)


def _ensure_none(*given: object) -> None:
    """Raise UsageError for an option that only a new index takes."""
    if any(value is not None for value in given):
        raise click.UsageError(
            "an index keeps its column, its files and its false-positive rate: give them to a "
            "new one"
        )


def _show(page: Page, report: IndexReport) -> None:
    _show_files(page, report)
    if report.files_without_filter:
        files = format_count(report.files_without_filter, "file")
        page.say(f"{files} may hold any value, and each query opens them:")
        page.say_all(f"  {reason}" for reason in report.reasons)
    size = page.bytes(report.index_bytes)
    if report.dry_run:
        page.say(f"the index would have about {size}")
        return
    units = format_count(report.units, "unit")
    classes = format_count(report.classes, "class", "classes")
    segments = format_count(report.segments, "segment")
    page.say(f"the index has {size}: {units}, {classes}, {segments}")
    false_files = format_number(report.false_files)
    page.say(f"a value that is in no file leaves {false_files} files to open on average")


def _show_files(page: Page, report: IndexReport) -> None:
    index = redact(report.index)
    files = format_count(report.files - report.failed_files, "file")
    would = "would be " if report.dry_run else ""
    gone = ""
    if report.vanished_files:
        gone = f", {report.vanished_files:,} changed or vanished"
    filter_bytes = page.bytes(report.filter_bytes)
    data_bytes = page.bytes(report.data_bytes)
    page.say(
        f"{index}: {files} {would}indexed by {report.column}; {report.new_files:,} new{gone}; "
        f"{filter_bytes} of filters and {data_bytes} of data {would}read"
    )
