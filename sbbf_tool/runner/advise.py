"""`advise` over many files: a runner surveys each file, and this module combines the surveys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from sbbf_tool.advice.queries import parse_query
from sbbf_tool.advice.survey import FileSurvey
from sbbf_tool.arguments import as_iterable
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import SbbfError
from sbbf_tool.operations.advise import advise_on_surveys
from sbbf_tool.reports.advise import AdviceReport
from sbbf_tool.reports.lake import SurveyRow
from sbbf_tool.reports.rows import LEFT_OUT, LINK, OK
from sbbf_tool.runner import works
from sbbf_tool.runner.failures import error_of

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.file.table_file import TableFiles


def advise_files(
    run: Callable[[works.Work[SurveyRow]], Iterable[SurveyRow]],
    names: tuple[str, ...],
    *,
    queries: Iterable[str] = (),
    fpp: float | None = None,
    engine_names: Iterable[str] = (),
    all_types: bool = False,
    emit: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    table_files: TableFiles | None = None,
    jobs: int | None = None,
) -> AdviceReport:
    """Advise on the columns of all files together; see `operations.advise`.

    `run` does the work on the files of `names`: it reads footers, filters and dictionaries. This process reads data of a few row groups.
    `table_files` is what it needs to know of the files if `names` is a table.
    """
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    key_ring = Keys.of(keys)
    file_surveys = surveys(run(works.survey(parsed_queries, keys=key_ring, max_page_bytes=max_page_bytes)))
    return advise_on_surveys(
        names,
        file_surveys,
        queries=parsed_queries,
        fpp=fpp,
        engine_names=engine_names,
        all_types=all_types,
        emit=emit,
        jobs=jobs,
        keys=key_ring,
        limit=max_page_bytes,
        is_table=table_files is not None,
        open_by=str if table_files is None else table_files.file,
    )


def surveys(rows: Iterable[SurveyRow]) -> Iterator[tuple[str, FileSurvey | SbbfError]]:
    """Yield each path with its survey, or with the error that prevented it. Links are left out."""
    for row in rows:
        if row.reason in (LINK, *LEFT_OUT):
            continue
        yield row.path, works.survey_of(row) if row.status == OK else error_of(row)
