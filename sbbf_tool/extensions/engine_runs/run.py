"""`run_engines`: run a query in query engines, on the files and on copies without filters, and
compare what they return and measure.

An engine that loses rows because of a filter is what this exists to find: then the filters, or the
engine's use of them, are wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sbbf_tool.arguments import as_iterable, as_names, check_time_limit
from sbbf_tool.display import redact
from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.engine_runs.catalog import ALL, Runnable, choose_engines
from sbbf_tool.extensions.engine_runs.copies import (
    copy_delta_table,
    ensure_room,
    zero_ranges,
)
from sbbf_tool.extensions.engine_runs.measure import Job, QueryCondition
from sbbf_tool.extensions.engine_runs.process import Answers, run_jobs
from sbbf_tool.extensions.engine_runs.query_files import QueryFiles, prepare_files
from sbbf_tool.extensions.engine_runs.reports import (
    EQUAL,
    FAILS_WITH_FILTERS,
    METRIC,
    NOT_INSTALLED,
    ROWS_DIFFER,
    ZEROED_PAGES,
    EngineRun,
    EngineRunsReport,
    Measurement,
)
from sbbf_tool.frozen import opt
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import quote
from sbbf_tool.parquet.literals import are_text
from sbbf_tool.query_engines.verdicts import find_engine
from sbbf_tool.reports.rows import FAILED, OK, Row
from sbbf_tool.running.request import RunRequest
from sbbf_tool.storage.places import is_url, parquet_inputs
from sbbf_tool.verbs.verb import AllFiles, CombiningVerb, Needs, as_name

if TYPE_CHECKING:
    from sbbf_tool.running.table import Table
    from sbbf_tool.storage.inputs import FileSystemLike, Readable

Ask = Callable[[list[Job]], Answers]
"""Runs jobs in an engine."""

SECONDS = 300.0
"""The time that an engine has for its start, and for each run."""

# Names of jobs.
_WITH = "with filters"
_WITHOUT = "without filters"
_ZEROED_WITH = "zeroed, with filters"
_ZEROED_WITHOUT = "zeroed, without filters"

_TABLE_COPY = "table"
"""Name of the folder of a copy of a table."""


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
        request = RunRequest(items)
        selection = request.select()
        if selection.table is not None:
            verb = RunEngines(column, value, as_names(engines, "engine"), seconds)
            report: EngineRunsReport = request.plan(verb, selection).combine()
            return report
    inputs = chain.from_iterable(parquet_inputs(item, filesystem) for item in items)
    path = ", ".join(redact(str(getattr(item, "name", item))) for item in items)
    return _run(inputs, None, path, column, value, engines, seconds)


class RunEngines(CombiningVerb[None, EngineRunsReport]):
    """Run the query in engines, as `run_engines` does, on all files of a run."""

    name = "explain-run"
    report = type(None)
    column: str = opt("The column to query", convert=as_name)
    value: object = opt("The value to look for")
    engines: Iterable[str] = opt("The engines that run", convert=as_names)
    seconds: float = opt("The time for each run of an engine", default=SECONDS)

    def needs(self) -> Needs:
        return Needs(filters=(self.column,))

    def carry(self, *file: Any, **options: Any) -> None:
        """Do nothing: engines open the files when all are known."""

    def combine(self, rows: Iterable[Row[Any]], files: AllFiles) -> EngineRunsReport:
        inputs = [files.open_by(row.path) for row in rows if row.status == OK]
        table = files.table if files.is_whole else None
        path = ", ".join(map(redact, files.names))
        return _run(inputs, table, path, self.column, self.value, self.engines, self.seconds)


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
    with TemporaryDirectory(prefix="sbbf-run-", ignore_cleanup_errors=True) as path_of_folder:
        folder = Path(path_of_folder)
        files = prepare_files(inputs, column, value, folder)
        assert files.column is not None
        runs = tuple(_run_engine(engine, files, table, folder, seconds) for engine in engines)
    is_silent = any(run.outcome == EQUAL and run.uses_filters is None for run in runs)
    exit_code = 0
    if any(run.is_harmed for run in runs):
        exit_code = 1
    elif any(run.outcome == FAILED for run in runs):
        exit_code = 3
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
        note=_explain_silence(files) if is_silent else None,
        engines=runs,
        exit_code=exit_code,
    )


def _run_engine(
    engine: Runnable, files: QueryFiles, table: Table | None, folder: Path, seconds: float
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
        answers = Answers()
        reads = "table"
        if table is not None and table.format in engine.tables:
            ask = partial(run_jobs, engine.driver, request, seconds=seconds)
            answers = ask(_table_jobs(engine, files, table, folder))
        if _WITHOUT not in answers.measurements:
            if len(files.stored_paths) > 1:
                names = ", ".join(sorted(map(quote, files.stored_paths)))
                reason = (
                    "the files of the table store the column under different names "
                    f"({names}), and the engine cannot read the table"
                )
                return EngineRun(engine.id, name, None, FAILED, reason=reason)
            reads = "files"
            table = None
            request = replace(request, path=list(next(iter(files.stored_paths))))
            ask = partial(run_jobs, engine.driver, request, seconds=seconds)
            without = Job(_WITHOUT, files.copies, files.sizes)
            answers = ask([without, Job(_WITH, files.paths, files.sizes)])
        run = _judge(engine, name, reads, answers, files)
        return _try_zeroed_pages(run, ask, files, folder, answers, table)


def _table_jobs(engine: Runnable, files: QueryFiles, table: Table, folder: Path) -> list[Job]:
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


def _places(files: QueryFiles, paths: Sequence[str]) -> dict[str, str]:
    """Return, by the name of each file of a table, the path that takes its place."""
    places = dict(zip(files.names, paths, strict=True))
    places |= {name: name for name in files.without_column}
    return places


def _judge(
    engine: Runnable, name: str, reads: str, answers: Answers, files: QueryFiles
) -> EngineRun:
    """Compare the runs with filters and without."""
    with_filters = answers.measurements.get(_WITH)
    without = answers.measurements.get(_WITHOUT)
    uses_filters = None
    skipped = None
    reason = answers.start_error or answers.errors.get(_WITHOUT) or answers.errors.get(_WITH)
    if without is None:
        outcome = FAILED
    elif with_filters is None:
        outcome = FAILS_WITH_FILTERS
    elif (with_filters["rows"], with_filters["digest"]) != (without["rows"], without["digest"]):
        outcome = ROWS_DIFFER
        reason = _describe_difference(with_filters["rows"], without["rows"])
    else:
        outcome = EQUAL
    if with_filters is not None and without is not None:
        uses_filters, skipped = _compare_counts(with_filters, without)
        if not uses_filters and not any(files.excluded):
            uses_filters = None
            reason = reason or _NOTHING_EXCLUDED
    left_out = (with_filters or without or {}).get("columns_left_out", ())
    return EngineRun(
        engine.id,
        name,
        answers.version,
        outcome,
        reads,
        uses_filters,
        None if uses_filters is None else METRIC,
        skipped,
        _measurement(with_filters),
        _measurement(without),
        reason,
        columns_left_out=tuple(left_out),
    )


def _explain_silence(files: QueryFiles) -> str | None:
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
    if remaining:
        rest = (
            f"and the filters exclude none of these {remaining:,}: query a value that is not stored"
        )
    else:
        rest = (
            "and here they leave none: query a value that is not stored, but between min and max "
            "of the row groups, or another column"
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
    for name in ("row_groups_read", "rows_scanned", "pages_read"):
        remaining = with_filters[name]
        total = without[name]
        if remaining is not None and total is not None:
            saved = total - remaining
            return saved > 0, saved if name == "row_groups_read" else None
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
    files: QueryFiles,
    folder: Path,
    answers: Answers,
    table: Table | None,
) -> EngineRun:
    """Run the query of an engine without metrics again, with zeros in the pages that only filters
    exclude.

    An engine that reads them fails, or returns other rows.
    """
    if run.outcome != EQUAL or run.uses_filters is not None or not any(files.excluded):
        return run
    with TemporaryDirectory(prefix="zeroed-", dir=folder, ignore_cleanup_errors=True) as zeroed:
        ensure_room(zeroed, 2 * files.bytes)
        jobs = [
            _make_zeroed_job(_ZEROED_WITHOUT, files, files.copies, Path(zeroed) / "0", table),
            _make_zeroed_job(_ZEROED_WITH, files, files.paths, Path(zeroed) / "1", table),
        ]
        measurements = ask(jobs).measurements
    expected = answers.measurements[_WITH]["digest"]
    if measurements.get(_ZEROED_WITHOUT, {}).get("digest") == expected:
        return replace(run, reason="it does not read these row groups without filters either")
    uses_filters = measurements.get(_ZEROED_WITH, {}).get("digest") == expected
    return replace(run, uses_filters=uses_filters, evidence=ZEROED_PAGES)


def _make_zeroed_job(
    name: str, files: QueryFiles, paths: Sequence[str], folder: Path, table: Table | None
) -> Job:
    """Copy the files to a folder, with zeros in the pages that only filters exclude, and return the
    job on the copies."""
    folder.mkdir()
    copies = []
    for number, (path, ranges) in enumerate(zip(paths, files.ranges, strict=True)):
        copy = folder / f"{number:06}.parquet"
        copyfile(path, copy)
        zero_ranges(copy, ranges)
        copies.append(str(copy))
    if table is None:
        return Job(name, copies, files.sizes)
    copy_of_table = folder / "table"
    copy_delta_table(table.location, copy_of_table, _places(files, copies))
    return Job(name, copies, files.sizes, str(copy_of_table), table.format)
