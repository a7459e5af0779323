"""`sbbf probe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import click

from sbbf_tool.cli import render
from sbbf_tool.cli.files import Files, over_files, strict_option
from sbbf_tool.cli.formats import ANSWER_FORMATS
from sbbf_tool.cli.options import PureSetting
from sbbf_tool.cli.output import complain, terminal
from sbbf_tool.cli.page import Page
from sbbf_tool.cli.query import AnswerView, NegativeValues, query_options, read_query
from sbbf_tool.cli.report import report_files
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import replace
from sbbf_tool.numbers import format_count, format_row_groups, some_of
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


@click.command(cls=NegativeValues)
@query_options
@click.option(
    "--values-file",
    type=click.Path(),
    help="Query the values in this file too, one per line. Empty lines do not count; - reads "
    "standard input.",
)
@click.option(
    "--dialect",
    cls=PureSetting,
    metavar="NAME",
    help="Query filters of this draft of the format too. Without it, they give no answer.",
)
@click.option(
    "--filters-only", is_flag=True, help="Query filters alone, no statistics or dictionaries."
)
@click.option(
    "--confirm",
    is_flag=True,
    help="Read the column where values may be. Answers are as certain as statistics and filters.",
)
@click.option(
    "--rows",
    is_flag=True,
    help="List the rows that have a value: file, row group, row number in the file (from 0), "
    "value and column.",
)
@click.option(
    "--all-versions",
    is_flag=True,
    help="Of a table: search the files of all retained versions, with the rows that are deleted.",
)
@click.option(
    "--quick", is_flag=True, help="Of an index: list no files. New and changed ones are missed."
)
@over_files("PATH [COLUMN VALUE... | CONDITION] | PATH...", strict_option, formats=ANSWER_FORMATS)
def command(
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
    reads values from --value and --values-file. `sbbf probe PATH CONDITION` looks for rows that
    satisfy all parts of a condition; the values are those of its first column. The column '*'
    stands for every one that can hold a value. Statistics are min, max and null counts. The
    column's type determines how values are written: 42, text, or for BYTE_ARRAY the bytes in
    hexadecimal after 0x: 0x00ff. The argument `-` as VALUE reads values from standard input, one
    per line, and skips empty lines; after `--`, and with --value, `-` is a value. Exit code 0: some
    row group may hold one of the values; 1: all values are certainly absent from all files. For
    several files, the command lists those that may hold a value; for more than 1,000 values in one
    file, the values that it may hold. The format names prints only the names of such files, names0
    ends them with NUL bytes. With --verbose, bytes, files and requests are counted.

    With --confirm, the answers are certain, or say why reading does not show them, if no filter has
    false negatives and no statistics are wrong: sbbf verify finds such filters, and sbbf check
    --select wrong-statistics such statistics, of all column chunks. Rows that a table has deleted are absent then, unless
    --all-versions is given. In STRING and other BYTE_ARRAY columns, the value `null` is text; in
    other columns it means null, as --null does.
    """
    from sbbf_tool.verbs.probe import Probe

    files, column, values, also = read_query(
        files, column, named_values, values_file, ask_null=ask_null
    )
    files.all_versions = all_versions
    if all_versions and files.table is None:
        raise click.UsageError(
            "--all-versions is for a table: give its root as the only PATH, without --as-files"
        )
    if quick:
        if files.index is None or files.where is not None or column == "*" or files.strict:
            raise click.UsageError(
                "--quick is for an index and its column, without --where and --strict"
            )
        files.index.lists = False
    verb = Probe(
        None if column == "*" else column,
        values,
        dialect,
        filters_only,
        confirm or rows,
        rows,
        also=also,
    )
    view = _ProbeView(files, verb, values_file)
    work = files.work(verb)
    code = report_files(files, work, view, work.needs.columns)
    if terminal().verbose:
        requests = f" in {view.counts['requests']:,} requests" if view.counts["requests"] else ""
        complain(
            f"read {view.counts['bytes_read']:,} bytes of "
            f"{format_count(view.counts['files'], 'file')}{requests}",
            kind="note",
        )
    return code


class _ProbeView(AnswerView["ProbeReport"]):
    """Lines of the values that a file may hold and their row groups, or of the rows that have
    them."""

    schema = "probe"

    sums = ("unprintable",)

    def __init__(self, files: Files, verb: Probe, values_file: str | None) -> None:
        super().__init__(files, values_file)
        self._column, self._values, self._confirms = (
            verb.column,
            len(cast("Sequence[object]", verb.values)),
            verb.confirm,
        )
        self.row, self._lists_rows = Row[RowsReport] if verb.rows else None, verb.rows
        self._values_with_hits: set[str] = set()

    def prepare(self, report: ProbeReport) -> ProbeReport:
        return RowsReport(**vars(report)) if self._lists_rows else report

    def add(self, report: ProbeReport, row: Row[object]) -> int:
        answers = {answer for _, _, answer, *_ in _rows_of(report)} if self._confirms else set()
        self._values_with_hits.update(
            row[0] for row in _rows_of(report) if row[2] == PRESENT or not self._confirms
        )
        self.counts.update(
            present=PRESENT in answers,
            unsure=self._confirms and (bool(report.inconclusive) or bool(answers - {PRESENT})),
            hits=bool(report.hits),
            inconclusive=bool(report.inconclusive),
            without_filter=any(_has_no_filter(report, each) for each in report.inconclusive),
            bytes_read=report.bytes_read,
            requests=report.requests,
        )
        return self.take_answer(report, row, is_absent=report.is_absent)

    def answer(self, codes: set[int]) -> int:
        return super().answer(
            codes | ({UsageError.exit_code} if self.total["unprintable"] else set())
        )

    def show(self, page: Page, report: ProbeReport) -> None:
        self.show_line(page, report)
        page.say_all(f"note: {note}" for note in report.notes)
        self.show_end(page, "")

    def show_line(self, page: Page, report: ProbeReport) -> None:
        for match in report.rows:
            page.say(
                f"{_name(report, match.column)}row group {match.row_group}, row {match.row:,}: "
                f"{render.value(match.value)}"
            )
        hits = (
            tuple(hit for hit in report.hits if hit.answer != PRESENT)
            if self._lists_rows
            else report.hits
        )
        page.say_all(_describe(replace(report, hits=hits), confirms=self._confirms))

    def show_end(self, page: Page, files: str) -> None:
        counts, outcomes, answers = self.counts, self.outcomes, []
        if without_filter := counts["without_filter"]:
            has = "has" if without_filter == 1 else "have"
            page.say(
                f"any of the values: {format_count(without_filter, 'file')} {has} no filter for "
                f"{self._column or 'some columns'}"
            )
        hits = (
            counts["present"]
            if self._confirms
            else counts["files"] - counts["inconclusive"] - counts["absent"]
        )
        hold = "may hold" if not self._confirms else "holds" if hits == 1 else "hold"
        inconclusive = 0 if counts["unsure"] else counts["inconclusive"]
        has_candidates = hits or counts["unsure"] or inconclusive
        if counts["files"] and not has_candidates:
            is_certain = self._confirms or counts["without_column"] == counts["files"]
            answers.append(
                "none of them is in the files" if is_certain else "all of them are excluded"
            )
        for number, noun, what in (
            (hits, "file", f"{hold} {len(self._values_with_hits):,} of the values"),
            (counts["unsure"], "file", "may hold some of them, which reading does not show"),
            (inconclusive, "file", "may hold any of them, because filters gave no answer"),
            (has_candidates and counts["absent"], "file", "cannot hold any of them"),
            (outcomes[LINK], "linked folder", "skipped, which may hold any of them"),
            (outcomes[UNFINISHED], "unfinished file", "left out, which may hold any of them"),
            (
                sum(outcomes[each] for each in NOT_QUERIED if each != UNFINISHED),
                "file",
                "left out, which may hold any of them",
            ),
            (
                outcomes[FAILED] + outcomes[REFUSED],
                "more file" if counts["files"] else "file",
                "could not be queried",
            ),
        ):
            if number:
                answers.append(f"{format_count(number, noun)} {what}")
        if self.files.index is not None:
            answers.append(
                f"the index excludes {format_count(self.files.index.excluded, 'other file')}"
            )
        queried = (
            f"{format_count(self._values, 'value')} in {format_count(counts['files'], 'file')}"
        )
        page.say(
            f"Queried {queried}: {'; '.join(answers) or 'there is none'}{self.say_what_lacks()}"
        )
        page.say_all(self._describe_versions())

    def notes(self) -> Iterator[str]:
        yield from self._describe_unsure()
        yield from self._describe_versions()

    def unlisted(self) -> Iterable[str]:
        return self._describe_unsure() if self._lists_rows else ()

    def _describe_unsure(self) -> Iterator[str]:
        if self.counts["unsure"]:
            yield (
                f"of {format_count(self.counts['unsure'], 'file')}, reading does not show "
                "whether they hold values"
            )

    def _describe_versions(self) -> Iterator[str]:
        """Describe what the versions of a table do not show: files that are gone, and files that no
        version lists."""
        if self.files.all_versions and self.files.table is not None:
            if gone := self.outcomes[VANISHED]:
                yield (
                    f"{format_count(gone, 'file')} of earlier versions "
                    f"{'is' if gone == 1 else 'are'} gone"
                )
            verb, hint = (
                "is" if self._unlisted == 1 else "are",
                "; --as-files searches that folder" if self._unlisted else "",
            )
            folder = redact(self.files.table.location)
            yield (
                f"{format_count(self._unlisted, 'Parquet file')} below {folder} {verb} in "
                f"no retained version{hint}"
            )

    @cached_property
    def _unlisted(self) -> int:
        return self.files.selection.count_unlisted()

    def totals(self) -> dict[str, Any]:
        return {
            "values": self._values,
            "values_with_hits": len(self._values_with_hits),
            "files_with_hits": self.counts["hits"],
            "files_with_inconclusive_row_groups": self.counts["inconclusive"],
            "files_without_filter": self.counts["without_filter"],
            "files_without_column": self.counts["without_column"],
            "bytes_read": self.counts["bytes_read"],
            **(
                {"files_excluded": self.files.index.excluded}
                if self.files.index is not None
                else {}
            ),
            **(
                {"files_gone": self.outcomes[VANISHED], "files_unlisted": self._unlisted}
                if self.files.all_versions
                else {}
            ),
        }


def _name(report: ProbeReport, column: str | None) -> str:
    """Return the beginning of a line: the file and, if the report is about all columns, the
    column."""
    return (
        f"{report.file}: {column}: "
        if report.column is None and column is not None
        else f"{report.file}: "
    )


def _has_no_filter(report: ProbeReport, each: InconclusiveRowGroups) -> bool:
    """Return whether no row group of a file has a filter, so that it may hold any of the values."""
    return len(each.row_groups) == report.row_groups and each.answer == NO_FILTER


def _rows_of(report: ProbeReport) -> Iterable[tuple[Any, ...]]:
    """Return the fields of each hit: of many, objects would cost more than the rest of the work."""
    hits = report.hits
    return (
        hits.rows()
        if isinstance(hits, LongSequence)
        else (tuple(vars(hit).values()) for hit in hits)
    )


def _describe(report: ProbeReport, *, confirms: bool) -> Iterator[str]:
    """Yield a line for each value that the file may hold, and for the row groups that may hold any
    of them.

    Columns without a filter in any row group are counted at the end of the output.
    """
    for value, row_groups, answer, reason, count, _, *column in _rows_of(report):
        why = f" ({answer}: {reason})" if confirms or answer == CANNOT_SAY else ""
        ending = f" ({format_count(count, 'row')})" if count is not None else why
        yield (
            f"{_name(report, *column or (None,))}{render.value(value)}: "
            f"{format_row_groups(row_groups)}{ending}"
        )
    groups: dict[tuple[str, ...], list[str]] = {}
    for each in (each for each in report.inconclusive if not _has_no_filter(report, each)):
        reason = f"{each.answer}: {each.reason}" if each.reason else each.answer
        values = (
            "any of the values"
            if each.values is None
            else ", ".join(map(render.value, each.values))
        )
        groups.setdefault((values, format_row_groups(each.row_groups), reason), []).append(
            each.column or ""
        )
    for (values, numbers, reason), columns in groups.items():
        yield f"{_name(report, some_of(columns))}{values}: {numbers} ({reason})"
