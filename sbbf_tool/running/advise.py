"""`advise` over many files: a runner surveys each file, and this module combines the surveys."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from sbbf_tool.advice.queries import parse_query
from sbbf_tool.advice.survey import FileSurvey
from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom import DEFAULT_FPP
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.partitions import parse_predicate
from sbbf_tool.reports.rows import LEFT_OUT, LINK, Row
from sbbf_tool.running.failures import error_of
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.table import find_table
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.advise import AdviceReport, PickledSurvey, Survey, advise_on_surveys, advise_open

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.page_limit import MaxPageBytes
    from sbbf_tool.file.table_file import TableFiles
    from sbbf_tool.storage.inputs import FileSystemLike, Readable


def advise(
    names: Readable | Iterable[Readable],
    *,
    where: str | None = None,
    jobs: int | None = None,
    queries: Iterable[str] = (),
    fpp: float = DEFAULT_FPP,
    engine_names: Iterable[str] = (),
    all_types: bool = False,
    emit: str | None = None,
    keys: KeysLike = None,
    max_page_bytes: MaxPageBytes = None,
    filesystem: FileSystemLike | None = None,
) -> AdviceReport:
    """Advise on the columns of all these files together; each of `names` is a file, a folder, a glob or a URL, or there is one table.

    Open binary files, and paths in a `filesystem` (of pyarrow or fsspec), are files too; then the report has no fix. `where` and `jobs` are
    as in `run`.

    `queries` are the expected queries, such as `user_id = 42 AND country IN ('SE', 'NO')`. Without queries, a query for one value is
    assumed for every column, except for those whose type is seldom queried by equality, such as floating-point measures: these are left
    out unless `all_types` is set. `engine_names` are the query engines that will read the files (if empty, all known ones).
    `emit` names a writer, such as `spark`, whose settings the report then has. Files that cannot be read are listed in the report; if there
    is only one file, UnreadableError is raised instead. Raises UsageError (an invalid query, a column that no file has).
    """
    inputs = list(as_iterable(names))
    options: dict[str, Any] = {"queries": queries, "fpp": fpp, "engine_names": engine_names, "all_types": all_types, "emit": emit}
    options |= {"keys": keys, "max_page_bytes": max_page_bytes, "jobs": jobs}
    if filesystem is not None or not all(isinstance(name, str | bytes | os.PathLike) for name in inputs):
        return advise_open(inputs, filesystem, **options)
    paths = tuple(map(os.fsdecode, inputs))
    table = find_table(paths[0]) if len(paths) == 1 else None
    selection = Selection(paths, None if where is None else parse_predicate(where), table=table)
    table_files = None if table is None else selection.table_files()
    return advise_files(partial(LocalRunner(jobs).run, selection), paths, table_files=table_files, **options)


def advise_files(
    run: Callable[[Work[PickledSurvey]], Iterable[Row[PickledSurvey]]],
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
    """Advise on the columns of all files together; see `advise`.

    `run` does the work on the files of `names`: it reads footers, filters and dictionaries. This process reads data of a few row groups.
    `table_files` is what it needs to know of the files if `names` is a table.
    """
    parsed_queries = tuple(parse_query(query) for query in as_iterable(queries))
    key_ring = Keys.of(keys)
    file_surveys = surveys(run(Work(Survey(parsed_queries), keys=key_ring, max_page_bytes=max_page_bytes)))
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


def surveys(rows: Iterable[Row[PickledSurvey]]) -> Iterator[tuple[str, FileSurvey | SbbfError]]:
    """Yield each path with its survey, or with the error that prevented it. Links are left out."""
    for row in rows:
        if row.reason in (LINK, *LEFT_OUT):
            continue
        yield row.path, pickle.loads(row.report.survey) if row.report is not None else error_of(row)
