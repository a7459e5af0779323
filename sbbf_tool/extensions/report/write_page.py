"""Write one HTML page about any number of files: a runner gathers the contents of each file, and this module adds them up."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import sbbf_tool
from sbbf_tool.advice.queries import parse_query
from sbbf_tool.arguments import as_iterable
from sbbf_tool.display import redact
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import RefusedError, UnreadableError, UsageError
from sbbf_tool.extensions.report.comparison import read_earlier_inspect
from sbbf_tool.extensions.report.contents import PageFigure, PageReport
from sbbf_tool.extensions.report.gather import Gather
from sbbf_tool.extensions.report.page import ReportPage
from sbbf_tool.hints import Fix
from sbbf_tool.reports.rows import OK, SKIPPED, Row
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection, find_table
from sbbf_tool.running.work import Work
from sbbf_tool.storage.places import find_single_file
from sbbf_tool.storage.whole import write_whole

if TYPE_CHECKING:
    from sbbf_tool.extensions.report.contents import FileContents
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes

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

    `is_single` says that `names` means one file, whose error is raised. `write_fix` writes the fixes on the page. Raises
    UnreadableError with the message `no_files`, if it is given, if there is no file; otherwise, the page then says so.
    """
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    target = os.fsdecode(output)
    _ensure_page(target)
    earlier = None if against is None else read_earlier_inspect(against)
    page = ReportPage(map(redact, names), is_single=is_single, earlier=earlier, write_fix=write_fix)
    work = Work(Gather(parsed_queries, is_single, quick, engine_names), keys=Keys.of(keys), max_page_bytes=max_page_bytes, strict=is_single)
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


def _add_rows(rows: Iterable[Row[FileContents]], page: ReportPage, target: str, *, is_single: bool) -> int:
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
            raise RefusedError("the file is not an HTML page, so no page replaces it", file=target, hint="name another, or remove it first")


def _ensure_other_file(path: str, target: str) -> None:
    """Raise RefusedError if the page would replace one of the files that it is about."""
    with suppress(OSError, ValueError):
        if os.path.samefile(path, target):
            raise RefusedError("the page would replace one of the files", file=target, hint="name another")


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
    """Write one HTML page, with pictures, about the filters of files; each of `paths` is a file, a folder, a glob, a URL or a table.

    The page loads nothing and needs no script. It replaces `output`, in one step, if that is a page or does not exist. `queries`
    are as in `advise`: the page shows what excludes each row group. `against` is a report of an earlier `inspect`, saved as JSON, with
    which the page compares the files. The findings are those of `check`; `quick` leaves out the rules that read data;
    `engine_names` are the engines that read the files. Files that cannot be
    read are listed on the page; if there is only one file, its error is raised instead. Raises UsageError (an invalid query, a column that
    no file has, a report that is none of `inspect`), RefusedError and WriteError (the page cannot be written).
    """
    names = tuple(os.fsdecode(path) for path in as_iterable(paths))
    table = find_table(names[0]) if len(names) == 1 else None
    selection = Selection(names, file=find_single_file(names[0]) if len(names) == 1 and table is None else None, table=table)
    run = partial(LocalRunner().run, selection)
    options: dict[str, Any] = {"queries": queries, "against": against, "quick": quick, "engine_names": engine_names}
    options |= {"keys": keys, "max_page_bytes": max_page_bytes}
    return write_page(run, names, output, is_single=selection.file is not None, **options)
