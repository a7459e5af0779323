"""The page: one HTML file that loads nothing, with the figures of all files, whose contents a
runner gathers. Only here is Jinja2."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

import sbbf_tool
from sbbf_tool.advice.queries import parse_query
from sbbf_tool.arguments import as_iterable
from sbbf_tool.display import escape, redact, shorten
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.report import file_figures, lake_figures
from sbbf_tool.extensions.report.changes import (
    EarlierRun,
    build_changes_figure,
    read_earlier_inspect,
)
from sbbf_tool.extensions.report.contents import (
    FileContents,
    PageFigure,
    PageReport,
    UnreadableFile,
)
from sbbf_tool.extensions.report.filter_figures import build_fill_figure, build_rates_figure
from sbbf_tool.extensions.report.finding_tables import (
    describe_findings,
    list_errors,
    list_findings_by_rule,
    list_findings_of_file,
)
from sbbf_tool.extensions.report.gather import Gather
from sbbf_tool.extensions.report.lake_figures import build_query_figures
from sbbf_tool.extensions.report.pictures.figure import (
    Figure,
    FigureTable,
    load_file,
    load_style,
    render_figure,
    render_table,
)
from sbbf_tool.extensions.report.pictures.rates import build_folds_figure
from sbbf_tool.extensions.report.totals import LakeTotals
from sbbf_tool.hints import Fix, install_extra
from sbbf_tool.numbers import format_count, format_size
from sbbf_tool.reports.rows import OK, SKIPPED, Row
from sbbf_tool.running.request import RunRequest
from sbbf_tool.storage.listing import ensure_unlisted
from sbbf_tool.storage.whole import write_whole
from sbbf_tool.verbs.inspect import InspectReport

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
        if self._single is not None:
            earlier = None if self._earlier is None else self._earlier.single
            yield from self._figures_of_file(self._single, earlier)
        elif self.totals.files:
            yield from self._figures_of_files()
        yield from build_query_figures(self.totals.queries, loses_rows=self.totals.loses_rows)
        if self._earlier is not None:
            yield build_changes_figure(self._earlier, self.totals)

    def _figures_of_file(
        self, single: FileContents, earlier: InspectReport | None
    ) -> Iterator[Figure]:
        report = single.inspect
        yield file_figures.build_bytes_figure(single, earlier)
        if not self.totals.filters:
            return
        yield build_rates_figure("rates", self.totals.dots, report.filters)
        yield build_fill_figure("fill", report.filters, report.row_groups, list_errors(single))
        yield from self._fold_figures()
        blocks = file_figures.build_blocks_figure(single)
        if blocks is not None:
            yield blocks

    def _figures_of_files(self) -> Iterator[Figure]:
        totals = self.totals
        yield lake_figures.build_bytes_figure(totals)
        if not totals.filters:
            return
        yield build_rates_figure("rates", totals.dots)
        yield from self._fold_figures()
        for build in (
            lake_figures.build_fill_figure,
            lake_figures.build_partitions_figure,
            lake_figures.build_distribution_figure,
        ):
            figure = build(totals)
            if figure is not None:
                yield figure

    def _fold_figures(self) -> Iterator[Figure]:
        curves = lake_figures.list_curves(self.totals)
        if curves:
            yield build_folds_figure("folds", curves)

    def render(self, version: str, figures: Iterable[Figure] | None = None) -> str:
        """Return the page as text, which is the same for the same files."""
        try:
            from jinja2 import Environment
        except ImportError:
            raise UsageError(
                "a page needs the package jinja2", hint=install_extra("report")
            ) from None
        from markupsafe import Markup

        style = load_style() + load_file("page.css")
        script = load_file("sort.js")
        all_figures = list(self.figures() if figures is None else figures)
        tables = list(self._list_tables())
        sections = [("findings", "Findings")]
        if tables:
            sections.append(("columns", "Columns"))
        for figure in all_figures:
            title = escape(figure.title)
            sections.append((figure.key, title))
        verdict, verdict_class = describe_findings(self.totals, is_whole=not self.unreadable_files)
        if self._single is not None:
            findings = list_findings_of_file(self._single, self._write_fix)
        else:
            findings = list_findings_by_rule(self.totals)
        template = load_file("page.html.jinja")
        page = Environment(autoescape=True, trim_blocks=False).from_string(template)
        return page.render(
            title=self._title(),
            style=Markup(style),
            style_hash=Markup(_hash(style)),
            script=Markup(script),
            script_hash=Markup(_hash(script)),
            facts=list(self._list_facts()),
            sections=sections,
            verdict=escape(verdict),
            verdict_class=verdict_class,
            findings=Markup("\n".join(map(render_table, findings))),
            unreadable=Markup(self._render_unreadable()),
            tables=Markup("\n".join(map(render_table, tables))),
            figures=list(map(Markup, map(render_figure, all_figures))),
            version=version,
        )

    def _title(self) -> str:
        names = ", ".join(map(escape, self._names[:3]))
        if len(self._names) > 3:
            names += ", ..."
        return f"Bloom filters of {names}"

    def _list_tables(self) -> Iterator[FigureTable]:
        if self.totals.columns:
            yield lake_figures.list_columns(self.totals)
        if self._single is None and self.totals.filters:
            yield lake_figures.list_worst_files(self.totals)

    def _render_unreadable(self) -> str:
        """Return the markup of the table of files that could not be read, if there are any."""
        if not self.unreadable:
            return ""
        rows = tuple((unreadable.file, unreadable.reason) for unreadable in self.unreadable)
        more = self.unreadable_files - len(rows)
        return render_table(
            FigureTable("Files that could not be read", ("file", "reason"), rows, more)
        )

    def _list_facts(self) -> Iterator[tuple[str, str]]:
        totals = self.totals
        single = None if self._single is None else self._single.inspect
        if single is None:
            yield "Files", f"{totals.files:,}"
            yield "Size of all files", format_size(totals.bytes)
        else:
            yield "Size", format_size(totals.bytes)
            yield "Written by", escape(shorten(single.created_by or "an unknown writer"))
        yield "Rows", f"{totals.rows:,}"
        yield "Row groups", f"{totals.row_groups:,}"
        yield "Filters", f"{totals.filters:,}" if totals.filters else "none"
        if totals.filters:
            yield "Size of filters", format_size(totals.filter_bytes)
        if totals.unreadable_filters:
            yield "Unreadable filters", f"{totals.unreadable_filters:,}"
        if totals.locked_files:
            locked = format_count(totals.locked_files, "file")
            if single is not None:
                locked = ", ".join(map(escape, single.locked_columns))
            yield "Locked columns (keys not given)", locked
        if self.unreadable_files:
            yield "Unreadable files", f"{self.unreadable_files:,}"


def _hash(text: str) -> str:
    digest = sha256(text.encode()).digest()
    return f"sha256-{b64encode(digest).decode()}"


_PAGE = b"<!doctype html>"
"""How every page begins, in lower case."""


def write_page(
    request: RunRequest,
    output: str | os.PathLike[str],
    *,
    queries: Iterable[str],
    against: str | os.PathLike[str] | None,
    quick: bool,
    engine_names: Iterable[str],
    write_fix: Callable[[Fix], str] = str,
    no_files: str | None = None,
) -> PageReport:
    """Write the page about the files of a request; see `write_report`.

    `write_fix` writes the fixes on the page. Raises UnreadableError with the message `no_files`, if
    it is given, if there is no file; otherwise, the page then says so.
    """
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    target = os.fsdecode(output)
    _ensure_page(target)
    if isinstance(request.paths, tuple):
        ensure_unlisted(target, request.paths, "page")
    earlier = None if against is None else read_earlier_inspect(against)
    selection = request.select()
    is_single = selection.file is not None
    page = ReportPage(
        map(redact, request.paths), is_single=is_single, earlier=earlier, write_fix=write_fix
    )
    plan = request.plan(Gather(parsed_queries, is_single, quick, engine_names), selection)
    with plan.rows() as rows:
        exit_code = _add_rows(rows, page, target, is_single=is_single)
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
    codes = set()
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
    return write_page(
        RunRequest(paths, keys=keys, max_page_bytes=max_page_bytes),
        output,
        queries=queries,
        against=against,
        quick=quick,
        engine_names=engine_names,
    )
