"""The page: one HTML file that loads nothing, with the figures of all files, whose contents a
runner gathers. Only here is Jinja2."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import sbbf_tool
from sbbf_tool.advice.queries import parse_query
from sbbf_tool.arguments import as_iterable
from sbbf_tool.display import escape, redact, shorten
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.report import file_figures, lake_figures
from sbbf_tool.extensions.report.contents import (
    FileContents,
    PageFigure,
    PageReport,
    UnreadableFile,
)
from sbbf_tool.extensions.report.filter_figures import build_fill_figure, build_rates_figure
from sbbf_tool.extensions.report.gather import Gather
from sbbf_tool.extensions.report.lake_figures import (
    EarlierRun,
    build_changes_figure,
    build_query_figures,
    read_earlier_inspect,
)
from sbbf_tool.extensions.report.pictures.figure import (
    Figure,
    FigureTable,
    count,
    load_file,
    load_style,
    render_figure,
    render_table,
    table,
)
from sbbf_tool.extensions.report.pictures.rates import build_folds_figure
from sbbf_tool.extensions.report.totals import LakeTotals
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count, format_row_groups, format_size
from sbbf_tool.reports.findings import ERROR, SEVERITIES, Finding
from sbbf_tool.reports.rows import OK, SKIPPED, Row
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection, find_table
from sbbf_tool.running.work import Work
from sbbf_tool.storage.places import find_single_file
from sbbf_tool.storage.whole import write_whole

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes


_MOST_UNREADABLE = 100


class ReportPage:
    """What a page shows. Files are added one by one, and kept as totals; of the only file of a
    page, all is kept."""

    def __init__(
        self,
        names: Iterable[str],
        *,
        is_single: bool,
        earlier: EarlierRun | None = None,
        write_fix: Callable[[Fix], str] = str,
    ) -> None:
        """Take the names that the page is about; `write_fix` writes the fixes of findings."""
        self.totals = LakeTotals()
        self.unreadable: list[UnreadableFile] = []
        self.unreadable_files = 0
        self._names = tuple(names)
        self._is_single = is_single
        self._earlier = earlier
        self._write_fix = write_fix
        self._single: FileContents | None = None

    def add(self, contents: FileContents) -> None:
        """Add a file."""
        self.totals.add(contents)
        if self._is_single:
            self._single = contents

    def add_unreadable(self, file: str, reason: str) -> None:
        """Add a file that could not be read; the first ones are listed."""
        self.unreadable_files += 1
        if len(self.unreadable) < _MOST_UNREADABLE:
            self.unreadable.append(UnreadableFile(file, reason))

    def figures(self) -> Iterator[Figure]:
        """Yield the figures in the order of the page."""
        totals, single = self.totals, self._single
        if single is not None:
            yield file_figures.build_bytes_figure(
                single, None if self._earlier is None else self._earlier.single
            )
        elif totals.files:
            yield lake_figures.build_bytes_figure(totals)
        if totals.filters:
            filters = single.inspect.filters if single is not None else ()
            yield build_rates_figure("rates", totals.dots, filters)
            if single is not None:
                yield build_fill_figure(
                    "fill", single.inspect.filters, single.inspect.row_groups, _list_errors(single)
                )
            more = (
                build_folds_figure("folds", curves)
                if (curves := lake_figures.list_curves(totals))
                else None,
                file_figures.build_blocks_figure(single)
                if single is not None
                else lake_figures.build_fill_figure(totals),
                None if single is not None else lake_figures.build_partitions_figure(totals),
                None if single is not None else lake_figures.build_distribution_figure(totals),
            )
            yield from filter(None, more)
        yield from build_query_figures(totals.queries, loses_rows=totals.loses_rows)
        if self._earlier is not None:
            yield build_changes_figure(self._earlier, totals)

    def render(self, version: str, figures: Iterable[Figure] | None = None) -> str:
        """Return the page as text, which is the same for the same files."""
        try:
            from jinja2 import Environment
        except ImportError:
            raise UsageError(
                "a page needs the package jinja2", hint="pip install 'sbbf-tool[report]'"
            ) from None
        from markupsafe import Markup

        style, script = load_style() + load_file("page.css"), load_file("sort.js")
        all_figures = list(self.figures() if figures is None else figures)
        tables = [lake_figures.list_columns(self.totals)] if self.totals.columns else []
        tables += (
            [lake_figures.list_worst_files(self.totals)]
            if self._single is None and self.totals.filters
            else []
        )
        verdict, verdict_class = self._describe_findings()
        rows = tuple((each.file, each.reason) for each in self.unreadable)
        unreadable = FigureTable(
            "Files that could not be read",
            ("file", "reason"),
            rows,
            self.unreadable_files - len(rows),
        )
        sections = [
            ("findings", "Findings"),
            *([("columns", "Columns")] if tables else []),
            *((each.key, each.title) for each in all_figures),
        ]
        page = Environment(autoescape=True, trim_blocks=False).from_string(
            load_file("page.html.jinja")
        )
        return page.render(
            title="Bloom filters of "
            f"{', '.join(map(escape, self._names[:3]))}{', ...' if len(self._names) > 3 else ''}",
            style=Markup(style),
            style_hash=Markup(_hash(style)),
            script=Markup(script),
            script_hash=Markup(_hash(script)),
            facts=list(self._list_facts()),
            sections=[(key, escape(name)) for key, name in sections],
            verdict=escape(verdict),
            verdict_class=verdict_class,
            findings=Markup("\n".join(render_table(each) for each in self._list_findings())),
            unreadable=Markup(render_table(unreadable)) if rows else "",
            tables=Markup("\n".join(map(render_table, tables))),
            figures=[Markup(render_figure(each)) for each in all_figures],
            version=version,
        )

    def _list_facts(self) -> Iterator[tuple[str, str]]:
        totals, single = self.totals, self._single
        yield (
            ("Size" if single is not None else "Files"),
            format_size(totals.bytes) if single is not None else f"{totals.files:,}",
        )
        if single is None:
            yield "Size of all files", format_size(totals.bytes)
        else:
            yield "Written by", escape(shorten(single.inspect.created_by or "an unknown writer"))
        yield "Rows", f"{totals.rows:,}"
        yield "Row groups", f"{totals.row_groups:,}"
        yield "Filters", f"{totals.filters:,}" if totals.filters else "none"
        if totals.filters:
            yield "Size of filters", format_size(totals.filter_bytes)
        if totals.unreadable_filters:
            yield "Unreadable filters", f"{totals.unreadable_filters:,}"
        if totals.locked_files:
            locked = (
                ", ".join(map(escape, single.inspect.locked_columns))
                if single is not None
                else format_count(totals.locked_files, "file")
            )
            yield "Locked columns (keys not given)", locked
        if self.unreadable_files:
            yield "Unreadable files", f"{self.unreadable_files:,}"

    def _describe_findings(self) -> tuple[str, str]:
        counts: Counter[str] = Counter()
        for _, rule in self.totals.findings_by_rule():
            counts[rule.severity] += rule.findings
        if not counts:
            files = (
                "No file could be read"
                if not self.totals.files
                else "No findings"
                if self.totals.filters
                else "No filters"
            )
            return (
                f"{files}.",
                "doubtful"
                if self.unreadable_files
                else "good"
                if self.totals.filters
                else "neutral",
            )
        sums = ", ".join(
            format_count(counts[severity], severity) for severity in SEVERITIES if counts[severity]
        )
        return f"{sums}.", "bad" if counts["error"] else "doubtful" if counts[
            "warning"
        ] else "neutral"

    def _list_findings(self) -> Iterator[FigureTable]:
        if self._single is not None:
            check = self._single.check
            if check.findings:
                head = (
                    "severity",
                    "rule",
                    "column",
                    "row groups",
                    "what is wrong",
                    "evidence",
                    "fix",
                )
                yield table(
                    "Findings", head, (self._row_of_finding(finding) for finding in check.findings)
                )
            if check.unreadable:
                yield table(
                    "Parts that could not be read",
                    ("place and reason",),
                    ((each,) for each in check.unreadable),
                )
            notes = [*self._single.inspect.notes]
            if notes:
                yield table("Notes", ("note",), ((note,) for note in notes))
        elif self.totals.rules:
            yield table(
                "Findings by rule",
                ("severity", "rule", "findings", "files", "what is wrong", "example"),
                (
                    (
                        rule.severity,
                        name,
                        count(rule.findings),
                        count(rule.files),
                        rule.message,
                        rule.example,
                    )
                    for name, rule in self.totals.findings_by_rule()
                ),
            )

    def _row_of_finding(self, finding: Finding) -> tuple[str | None, ...]:
        row_groups = sorted(
            {evidence.row_group for evidence in finding.evidence if evidence.row_group is not None}
        )
        place = format_row_groups(row_groups) if row_groups else None
        first = finding.evidence[0] if finding.evidence else None
        fact = None if first is None else first.fact
        if first is not None and first.row_group is not None and len(row_groups) > 1:
            fact = f"{fact} (row group {first.row_group})"
        fix = None if finding.fix is None else self._write_fix(finding.fix)
        return finding.severity, finding.rule, finding.column, place, finding.message, fact, fix


def _list_errors(contents: FileContents) -> dict[tuple[int, str], str]:
    """Return the rules that found an error, by row group and column."""
    errors: dict[tuple[int, str], str] = {}
    for finding in contents.check.findings:
        if finding.severity == ERROR and finding.column is not None:
            for evidence in finding.evidence:
                if evidence.row_group is not None:
                    errors.setdefault((evidence.row_group, finding.column), finding.rule)
    return errors


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


_PAGE = b"<!doctype html>"
"""How every page begins, in lower case."""


def write_page(
    run: Callable[[Work[FileContents]], Iterable[Row[FileContents]]],
    names: tuple[str, ...],
    output: str | os.PathLike[str],
    *,
    is_single: bool,
    queries: Iterable[str] = (),
    against: str | os.PathLike[str] | None = None,
    quick: bool = False,
    engine_names: Iterable[str] = (),
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    write_fix: Callable[[Fix], str] = str,
    no_files: str | None = None,
) -> PageReport:
    """Write the page about the files on which `run` does the work; see `write_report`.

    `is_single` says that `names` means one file, whose error is raised. `write_fix` writes the
    fixes on the page. Raises UnreadableError with the message `no_files`, if it is given, if there
    is no file; otherwise, the page then says so.
    """
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    target = os.fsdecode(output)
    _ensure_page(target)
    earlier = None if against is None else read_earlier_inspect(against)
    page = ReportPage(map(redact, names), is_single=is_single, earlier=earlier, write_fix=write_fix)
    work = Work(
        Gather(parsed_queries, is_single, quick, engine_names),
        keys=Keys.of(keys),
        max_page_bytes=max_page_bytes,
        strict=is_single,
    )
    exit_code = _add_rows(run(work), page, target, is_single=is_single)
    if no_files is not None and not (page.totals.files or page.unreadable_files):
        raise UnreadableError(no_files)
    for total in page.totals.queries.values():
        if total.problems and total.problems == page.totals.files:
            raise UsageError(f"no file has the column: {total.first_problem}")
    figures = list(page.figures())
    text = page.render(sbbf_tool.__version__, figures).encode("utf-8", "backslashreplace")
    with write_whole(target, overwrite=True) as stream:
        stream.write(text)
    return PageReport(
        output=target,
        bytes=len(text),
        files=page.totals.files,
        row_groups=page.totals.row_groups,
        filters=page.totals.filters,
        findings=sum(rule.findings for _, rule in page.totals.findings_by_rule()),
        figures=tuple(PageFigure(figure.key, figure.title) for figure in figures),
        unreadable=tuple(page.unreadable),
        unreadable_files=page.unreadable_files,
        exit_code=exit_code,
    )


def _add_rows(
    rows: Iterable[Row[FileContents]], page: ReportPage, target: str, *, is_single: bool
) -> int:
    """Add the files to the page; return the highest exit code of those that could not be read."""
    codes: set[int] = set()
    first_usage_error: Exception | None = None
    for row in rows:
        _ensure_other_file(row.path, target)
        if row.status == OK and row.report is not None:
            page.add(row.report)
            continue
        if row.status == SKIPPED:
            continue
        error = row.error or row.to_error()
        if is_single:
            raise error
        if row.exit_code == UsageError.exit_code:
            first_usage_error = first_usage_error or error
        codes.add(row.exit_code)
        page.add_unreadable(redact(row.path), row.reason or row.status)
    if first_usage_error is not None and not page.totals.files:
        raise first_usage_error
    return max(codes, default=0)


def _ensure_page(target: str) -> None:
    """Raise RefusedError if the page would replace a file that is no page."""
    if not os.path.isfile(target):
        return
    with suppress(OSError), open(target, "rb") as stream:
        if stream.read(len(_PAGE)).lower() not in (b"", _PAGE):
            raise RefusedError(
                "the file is not an HTML page, so no page replaces it",
                file=target,
                hint="name another, or remove it first",
            )


def _ensure_other_file(path: str, target: str) -> None:
    """Raise RefusedError if the page would replace one of the files that it is about."""
    with suppress(OSError, ValueError):
        if os.path.samefile(path, target):
            raise RefusedError(
                "the page would replace one of the files", file=target, hint="name another"
            )


def write_report(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    queries: Iterable[str] = (),
    against: str | os.PathLike[str] | None = None,
    quick: bool = False,
    engine_names: Iterable[str] = (),
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
) -> PageReport:
    """Write one HTML page, with pictures, about the filters of files; each of `paths` is a file, a
    folder, a glob, a URL or a table.

    The page loads nothing and needs no script. It replaces `output`, in one step, if that is a page
    or does not exist. `queries` are as in `advise`: the page shows what excludes each row group.
    `against` is a report of an earlier `inspect`, saved as JSON, with which the page compares the
    files. The findings are those of `check`; `quick` leaves out the rules that read data;
    `engine_names` are the engines that read the files. Files that cannot be read are listed on the
    page; if there is only one file, its error is raised instead. Raises UsageError (an invalid
    query, a column that no file has, a report that is none of `inspect`), RefusedError and
    WriteError (the page cannot be written).
    """
    names = tuple(os.fsdecode(path) for path in as_iterable(paths))
    table = find_table(names[0]) if len(names) == 1 else None
    selection = Selection(
        names,
        file=find_single_file(names[0]) if len(names) == 1 and table is None else None,
        table=table,
    )
    run = partial(LocalRunner().run, selection)
    options: dict[str, Any] = {
        "queries": queries,
        "against": against,
        "quick": quick,
        "engine_names": engine_names,
    }
    options |= {"keys": keys, "max_page_bytes": max_page_bytes}
    return write_page(run, names, output, is_single=selection.file is not None, **options)
