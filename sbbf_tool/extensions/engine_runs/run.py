"""`run_engines`: run a query in query engines, on the files and on copies without filters, and
compare what they return and measure.

An engine that loses rows because of a filter is what this exists to find: then the filters, or the
engine's use of them, are wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable, as_names, check_time_limit
from sbbf_tool.display import redact
from sbbf_tool.errors import NoColumnError, RefusedError, SbbfError, UnreadableError, UsageError
from sbbf_tool.extensions.engine_runs.catalog import ALL, Runnable, choose_engines
from sbbf_tool.extensions.engine_runs.copies import (
    copy_delta_table,
    copy_file,
    ensure_room,
    page_ranges,
    zero_ranges,
)
from sbbf_tool.extensions.engine_runs.measure import Job, QueryCondition
from sbbf_tool.extensions.engine_runs.process import Answers, run_jobs
from sbbf_tool.extensions.engine_runs.reports import (
    EQUAL,
    FAILED,
    FAILS_WITH_FILTERS,
    METRIC,
    NOT_INSTALLED,
    ROWS_DIFFER,
    ZEROED_PAGES,
    EngineRun,
    EngineRunsReport,
    Measurement,
)
from sbbf_tool.file.filter_answers import EMPTY_FILTER, by_filter
from sbbf_tool.file.missing_column import find_missing
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import answers_by, answers_by_statistics, by_dictionary, call_or_note
from sbbf_tool.file.question import Question, question_of
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import Column, find_column, leaf_columns, quote
from sbbf_tool.parquet.literals import are_text
from sbbf_tool.parquet.notation import ABSENT
from sbbf_tool.query_engines.verdicts import find_engine
from sbbf_tool.running.selection import Selection, find_table
from sbbf_tool.storage.inputs import FileIn
from sbbf_tool.storage.places import TableFinder, is_url, parquet_inputs
from sbbf_tool.storage.source import LocalSource

if TYPE_CHECKING:
    from sbbf_tool.running.table import Table
    from sbbf_tool.storage.inputs import FileSystemLike, Readable

Ask = Callable[[list[Job]], Answers]
"""Runs jobs in an engine."""

SECONDS = 300.0
"""The time that an engine has for its start, and for each run."""
_WITH, _WITHOUT = "with filters", "without filters"
_ORIGINALS, _COPIES, _TABLE_COPY = "originals", "copies", "table"
_ZEROED_WITH, _ZEROED_WITHOUT = "zeroed, with filters", "zeroed, without filters"


def run_engines(
    names: Readable | Iterable[Readable],
    column: str,
    value: object,
    engines: str | Iterable[str] = (ALL,),
    *,
    seconds: float = SECONDS,
    filesystem: FileSystemLike | None = None,
) -> EngineRunsReport:
    """Run `SELECT * FROM files WHERE column = value` in query engines, with the filters of the
    files and without them.

    Each of `names` is a file, a folder, a glob or an open file; a single name may be the root of a
    Delta or Iceberg table. `engines` are names of engines, or `all` for those that are installed.
    Each engine runs in a process of its own; it has `seconds` for its start and for each run. The
    files are only read: the copies without filters are in a temporary folder, which needs as much
    space as the files.

    If filters change the result in an engine, the `exit_code` of the report is 1. Raises UsageError
    (no such column or engine, no engine is installed, a value that the column cannot hold),
    RefusedError (encrypted files, too little space), UnreadableError, WriteError.
    """
    items = list(as_iterable(names))
    if len(items) == 1 and filesystem is None and isinstance(items[0], str | os.PathLike):
        name = os.fsdecode(items[0])
        table = find_table(name)
        if table is not None:
            return run_on_selection(
                Selection(name, table=table), (name,), column, value, engines, seconds=seconds
            )
    inputs = chain.from_iterable(parquet_inputs(item, filesystem) for item in items)
    return _run(
        inputs,
        None,
        ", ".join(redact(str(getattr(item, "name", item))) for item in items),
        column,
        value,
        engines,
        seconds,
    )


def run_on_selection(
    selection: Selection,
    names: Sequence[str],
    column: str,
    value: object,
    engines: str | Iterable[str],
    *,
    seconds: float = SECONDS,
) -> EngineRunsReport:
    """Run the query as `run_engines` does, on the files of a selection; `names` are those that the
    user gave."""
    selection.ensure_stored((column,))
    is_whole = selection.table is not None and selection.where is None
    table = selection.table if is_whole else None
    return _run(
        selection.file_names(),
        table,
        ", ".join(map(redact, names)),
        column,
        value,
        engines,
        seconds,
    )


@dataclass
class _Files:
    """The files of the query, and their copies."""

    column: Column | None = None
    value: str = ""
    stored_paths: set[tuple[str, ...]] = field(default_factory=set)
    """The paths of the column in the files; a table may have another name for it."""
    names: list[str] = field(default_factory=list)
    """Absolute paths or URLs of the files."""
    without_column: list[str] = field(default_factory=list)
    """Those of the files that lack the column."""
    paths: list[str] = field(default_factory=list)
    """The files with filters: links to those of the user or, for files that are not on this
    machine, copies."""
    copies: list[str] = field(default_factory=list)
    """Copies without filters."""
    sizes: list[list[int]] = field(default_factory=list)
    excluded: list[list[int]] = field(default_factory=list)
    """The row groups of each file that only filters exclude."""
    ranges: list[list[tuple[int, int]]] = field(default_factory=list)
    """The pages of these row groups."""
    bytes: int = 0
    filters: int = 0
    excluded_otherwise: int = 0
    """Row groups that min and max or a dictionary exclude."""


def _run(
    inputs: Iterable[Any],
    table: Table | None,
    path: str,
    column: str,
    value: object,
    engine_names: str | Iterable[str],
    seconds: float,
) -> EngineRunsReport:
    engines = choose_engines(as_names(engine_names, "engine"))
    if not any(engine.is_installed for engine in engines):
        commands = "; ".join(
            f"{find_engine(engine.id).name}: {engine.install}" for engine in engines
        )
        raise UsageError(
            "none of the named query engines is installed", hint=f"install one: {commands}"
        )
    if value is None:
        raise UsageError("null cannot be queried in query engines: filters hold no nulls")
    check_time_limit(seconds)
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(TemporaryDirectory(prefix="sbbf-run-", ignore_cleanup_errors=True))
        )
        files = _prepare(inputs, column, value, folder)
        assert files.column is not None
        runs = tuple(_run_engine(engine, files, table, folder, seconds) for engine in engines)
    return EngineRunsReport(
        path=path,
        table_format=None if table is None else table.format,
        column=files.column.name,
        type=files.column.type_name,
        value=files.value,
        files=len(files.paths),
        row_groups=sum(map(len, files.sizes)),
        bytes=files.bytes,
        filters=files.filters,
        excluded_by_filters=sum(map(len, files.excluded)),
        note=_explain_silence(files)
        if any(run.outcome == EQUAL and run.uses_filters is None for run in runs)
        else None,
        engines=runs,
        exit_code=1
        if any(run.is_harmed for run in runs)
        else 3
        if any(run.outcome == FAILED for run in runs)
        else 0,
    )


def _prepare(inputs: Iterable[Any], name: str, value: object, folder: Path) -> _Files:
    """Read the footers and filters of all files, and make the copies. Files that lack the column
    are left out: they hold no value."""
    files = _Files()
    missing: SbbfError | None = None
    for kind in (_ORIGINALS, _COPIES):
        (folder / kind).mkdir()
    for item in inputs:
        with ParquetFile.open(item) as file, file.locate_errors():
            if file.footer.cipher is not None or file.footer.has_encrypted_chunks:
                raise RefusedError(
                    "the file is encrypted or signed, and query engines are run without keys"
                )
            try:
                column = find_column(file.footer.columns, name)
            except NoColumnError as error:
                statement = find_missing(file, item, name, strict=False, tables=TableFinder())
                if missing is None and statement is not None and statement.is_partition:
                    missing = UsageError(
                        f"{statement.reason}: it is a partition column, and no filter is needed",
                        file=file.name,
                    )
                missing = missing or error.at(file=file.name)
                files.without_column.append(os.path.abspath(file.name))
                continue
            if column.max_repetition:
                raise UsageError(
                    "values inside lists and maps cannot be queried in query engines",
                    place=f"column {column.name}",
                )
            question = question_of(column, (value,))
            (literal,) = question.literals
            if literal.is_null:
                raise UsageError("null cannot be queried in query engines: filters hold no nulls")
            files.column = files.column or column
            files.value = literal.text
            _add(files, file, question, item, folder)
    if files.column is None:
        raise missing or UnreadableError(
            "there is no file", hint="name a Parquet file, or a folder that has some"
        )
    return files


def _add(files: _Files, file: ParquetFile, question: Question, item: object, folder: Path) -> None:
    """Add a file, and copy it without its filters."""
    excluded, column = [], question.column
    numbers = range(file.footer.num_row_groups)
    file.expect_filters([column], whole=True)
    for number in numbers:
        files.filters += file.footer.filter_place(number, column.index) is not None
        answers = call_or_note(
            [], "filter", by_filter, file, number, question, question.candidates()
        )
        (answer,) = answers_by(question, number, answers)
        if _is_excluded_otherwise(file, number, question):
            files.excluded_otherwise += 1
        elif answer.answer == ABSENT or answer.reason == EMPTY_FILTER:
            excluded.append(number)
    name = f"{len(files.paths):06}.parquet"
    is_here = (
        isinstance(file.source, LocalSource)
        and not isinstance(item, FileIn)
        and not is_url(file.name)
    )
    ensure_room(str(folder), file.source.size * (1 if is_here else 2))
    copy, original = folder / _COPIES / name, folder / _ORIGINALS / name
    copy_file(file, copy, filters=False)
    if is_here:
        # Engines read glob characters, percent signs or `key=value` in a path in their own ways.
        original.symlink_to(os.path.abspath(file.name))
    else:
        copy_file(file, original, filters=True)
    files.stored_paths.add(leaf_columns(file.footer.metadata.schema)[column.index].short_path)
    files.names.append(file.name if is_url(file.name) else os.path.abspath(file.name))
    files.paths.append(str(original))
    files.copies.append(str(copy))
    files.sizes.append([file.footer.num_rows(number) or 0 for number in numbers])
    files.excluded.append(excluded)
    files.ranges.append([pages for number in excluded for pages in page_ranges(file, number)])
    files.bytes += file.source.size


def _is_excluded_otherwise(file: ParquetFile, number: int, question: Question) -> bool:
    """Return whether min and max or the dictionary exclude the value too, so that an engine may
    skip the row group without its filter."""
    (statistics,) = answers_by_statistics(file, number, question)
    dictionary = call_or_note(
        [], "dictionary", by_dictionary, file, number, question, question.candidates()
    )
    return statistics.is_absent or (
        dictionary is not None and answers_by(question, number, dictionary)[0].is_absent
    )


def _run_engine(
    engine: Runnable, files: _Files, table: Table | None, folder: Path, seconds: float
) -> EngineRun:
    """Run the query in one engine: on the table if the engine reads it, otherwise on the files."""
    name = find_engine(engine.id).name
    if not engine.is_installed:
        reason = f"the Python package {engine.module} is not installed"
        return EngineRun(
            engine.id, name, None, NOT_INSTALLED, reason=reason, install=engine.install
        )
    assert files.column is not None
    with TemporaryDirectory(
        prefix=f"{engine.id}-", dir=folder, ignore_cleanup_errors=True
    ) as scratch:
        request = QueryCondition(
            list(files.column.short_path), files.value, scratch, is_text=are_text(files.column)
        )
        if table is not None and table.format in engine.tables:
            ask = partial(run_jobs, engine.driver, request, seconds=seconds)
            answers = ask(_table_jobs(engine, files, table, folder))
            if _WITHOUT in answers.measurements:
                return _try_zeroed_pages(
                    _judge(engine, name, "table", answers, files),
                    ask,
                    files,
                    folder,
                    answers,
                    table,
                )
        if len(files.stored_paths) > 1:
            names = ", ".join(sorted(map(quote, files.stored_paths)))
            reason = (
                "the files of the table store the column under different names "
                f"({names}), and the engine cannot read the table"
            )
            return EngineRun(engine.id, name, None, FAILED, reason=reason)
        request = replace(request, path=list(next(iter(files.stored_paths))))
        ask = partial(run_jobs, engine.driver, request, seconds=seconds)
        answers = ask(
            [Job(_WITHOUT, files.copies, files.sizes), Job(_WITH, files.paths, files.sizes)]
        )
        return _try_zeroed_pages(
            _judge(engine, name, "files", answers, files), ask, files, folder, answers
        )


def _table_jobs(engine: Runnable, files: _Files, table: Table, folder: Path) -> list[Job]:
    """Return the jobs for an engine that reads the table: on the table and on its copy, or twice on
    the table if it can ignore filters."""
    location = table.location
    if is_url(location):
        return []
    if engine.ignores_filters:
        return [
            Job(kind, files.paths, files.sizes, location, table.format, kind == _WITH)
            for kind in (_WITH, _WITHOUT)
        ]
    copy = folder / _TABLE_COPY
    if not copy.exists() and not copy_delta_table(location, copy, _places(files, files.copies)):
        return []
    return [
        Job(_WITHOUT, files.copies, files.sizes, str(copy), table.format),
        Job(_WITH, files.paths, files.sizes, location, table.format),
    ]


def _places(files: _Files, paths: Sequence[str]) -> dict[str, str]:
    """Return, by the name of each file of a table, the path that takes its place."""
    return dict(zip(files.names, paths, strict=True)) | {
        name: name for name in files.without_column
    }


def _judge(engine: Runnable, name: str, reads: str, answers: Answers, files: _Files) -> EngineRun:
    """Compare the runs with filters and without."""
    with_filters, without = (answers.measurements.get(kind) for kind in (_WITH, _WITHOUT))
    uses_filters = evidence = skipped = None
    reason = answers.start_error or answers.errors.get(_WITHOUT) or answers.errors.get(_WITH)
    if without is None:
        outcome = FAILED
    elif with_filters is None:
        outcome = FAILS_WITH_FILTERS
    elif (with_filters["rows"], with_filters["digest"]) != (without["rows"], without["digest"]):
        outcome, reason = ROWS_DIFFER, _describe_difference(with_filters["rows"], without["rows"])
    else:
        outcome = EQUAL
    if with_filters is not None and without is not None:
        uses_filters, skipped = _compare_counts(with_filters, without)
        evidence = None if uses_filters is None else METRIC
        if not uses_filters and not any(files.excluded):
            uses_filters, evidence = None, None
            reason = reason or _NOTHING_EXCLUDED
    left_out = tuple((with_filters or without or {}).get("columns_left_out", ()))
    measurements = (_measurement(with_filters), _measurement(without))
    shown = (uses_filters, evidence, skipped)
    return EngineRun(
        engine.id,
        name,
        answers.version,
        outcome,
        reads,
        *shown,
        *measurements,
        reason,
        columns_left_out=left_out,
    )


def _explain_silence(files: _Files) -> str | None:
    """Say why engines cannot show whether they use the filters, and what to query instead; None if
    filters exclude row groups."""
    assert files.column is not None
    if any(files.excluded):
        return None
    num_row_groups = sum(map(len, files.sizes))
    if not files.filters:
        return (
            f"column {files.column.name} has no filters, so there is nothing to measure: "
            "add filters to it, or query another column"
        )
    remaining = num_row_groups - files.excluded_otherwise
    rest = (
        f"and the filters exclude none of these {remaining:,}: query a value that is not stored"
        if remaining
        else "and here they leave none: query a value that is not stored, but between min "
        "and max of the row groups, or another column"
    )
    return (
        "whether an engine uses the filters shows on row groups that min and max leave, "
        f"and dictionaries if it reads them, {rest}"
    )


_NOTHING_EXCLUDED = "no row group is excluded by its filter alone"


def _describe_difference(with_filters: int, without: int) -> str:
    if with_filters == without:
        return f"the same number of rows ({without:,}) has other values with filters"
    return f"{format_count(with_filters, 'row')} with filters, {without:,} without"


def _compare_counts(
    with_filters: dict[str, Any], without: dict[str, Any]
) -> tuple[bool | None, int | None]:
    """Return whether the engine read less with filters, and how many row groups less; None for what
    its counts do not show."""
    groups = with_filters["row_groups_read"], without["row_groups_read"]
    if groups[0] is not None and groups[1] is not None:
        return groups[0] < groups[1], groups[1] - groups[0]
    for name in ("rows_scanned", "pages_read"):
        if with_filters[name] is not None and without[name] is not None:
            return with_filters[name] < without[name], None
    return None, None


def _measurement(answer: dict[str, Any] | None) -> Measurement | None:
    if answer is None:
        return None
    return Measurement(
        answer["rows"],
        answer["row_groups_read"],
        answer["rows_scanned"],
        answer["bytes_read"],
        answer["seconds"],
    )


def _try_zeroed_pages(
    run: EngineRun,
    ask: Ask,
    files: _Files,
    folder: Path,
    answers: Answers,
    table: Table | None = None,
) -> EngineRun:
    """Run the query of an engine without metrics again, with zeros in the pages that only filters
    exclude.

    An engine that reads them fails, or returns other rows.
    """
    if run.outcome != EQUAL or run.uses_filters is not None or not any(files.excluded):
        return run
    with TemporaryDirectory(prefix="zeroed-", dir=folder, ignore_cleanup_errors=True) as zeroed:
        jobs: list[Job] = []
        ensure_room(zeroed, 2 * files.bytes)
        for name, paths in ((_ZEROED_WITHOUT, files.copies), (_ZEROED_WITH, files.paths)):
            copies = []
            for number, (path, ranges) in enumerate(zip(paths, files.ranges, strict=True)):
                copy = Path(zeroed) / f"{len(jobs)}-{number:06}.parquet"
                copyfile(path, copy)
                zero_ranges(copy, ranges)
                copies.append(str(copy))
            job = Job(name, copies, files.sizes)
            if table is not None:
                job.table, job.table_format = str(Path(zeroed) / f"table-{len(jobs)}"), table.format
                copy_delta_table(table.location, Path(job.table), _places(files, copies))
            jobs.append(job)
        zeroed_answers = ask(jobs)
    expected = answers.measurements[_WITH]["digest"]
    is_same = {
        job.name: zeroed_answers.measurements.get(job.name, {}).get("digest") == expected
        for job in jobs
    }
    if is_same[_ZEROED_WITHOUT]:
        return replace(run, reason="it does not read these row groups without filters either")
    return replace(run, uses_filters=is_same[_ZEROED_WITH], evidence=ZEROED_PAGES)
