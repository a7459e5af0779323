"""`advise`: recommend which columns deserve a filter, at what size, and estimate what it would
save.

survey   read the footer, dictionary page headers and filters of every file, and add up the exact
         numbers in them
sample   read two row groups per column of a few random files: count distinct values, and the values
         that both row groups hold
judge    give each column a verdict and a reason; the expected queries determine which columns are
         queried and how often min and max suffice
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.advice.queries import Query, parse_query
from sbbf_tool.advice.recommendations import ColumnAdvice as ColumnAdvice
from sbbf_tool.advice.recommendations import (
    ColumnKey,
    ColumnSizes,
    QueryAdvice,
    build_advice,
    build_fix,
    build_query_advice,
    build_request,
    estimate_added,
    list_sizes,
)
from sbbf_tool.advice.sample import sample
from sbbf_tool.advice.sizes import AdvisedColumn, SizeOption, choose_fpp, list_options
from sbbf_tool.advice.survey import FileSurvey, survey
from sbbf_tool.advice.totals import Totals
from sbbf_tool.advice.verdicts import (
    ADD,
    Surveys,
    choose_verdict,
    estimate_lookup,
    explain_rarity,
    judge_with_data,
    list_cautions,
    use_by_all,
)
from sbbf_tool.arguments import as_iterable
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.display import redact
from sbbf_tool.encryption.keys import Keys
from sbbf_tool.errors import OversizedPageError, SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.hints import Fix
from sbbf_tool.numbers import format_count
from sbbf_tool.query_engines.uses import Use
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.rows import FAILED, LEFT_OUT, LINK, OK, Row
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage.inputs import FileIn, FileSystemLike, Readable, name_of
from sbbf_tool.storage.places import parquet_inputs
from sbbf_tool.verbs.verb import AllFiles, CombiningVerb
from sbbf_tool.writers.settings import build_settings, ensure_writer
from sbbf_tool.writers.writer import WriterSettings, pattern_of

if TYPE_CHECKING:
    from sbbf_tool.file.context import Context


class PickledSurvey(Frozen):
    """Survey of one file."""

    survey: bytes
    """A pickled `FileSurvey`, for a process of the same version."""


class AdviceReport(Tabular):
    _row = ColumnAdvice

    paths: tuple[str, ...]
    files: int
    row_groups: int
    bytes: int
    fpp: float
    """The target false-positive rate, as given or as chosen from `size_options`."""
    columns: tuple[ColumnAdvice, ...]
    queries: tuple[QueryAdvice, ...]
    sampled_files: tuple[str, ...]
    """Files whose data was sampled."""
    fix: Fix | None
    """The change that adds the advised filters; None if no filter is advised."""
    added_bytes: int
    """Bytes that the change adds, as estimated: the filters that it builds, and new footers."""
    unreadable: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""
    filter_sizes: tuple[ColumnSizes, ...] = ()
    """The sizes to which the existing filters can be folded, for each column that has filters."""
    emit: WriterSettings | None = None
    """The settings of the writer that was requested."""
    size_options: tuple[SizeOption, ...] = ()
    """What the advised filters cost at the target and, if a next smaller size is near, at its rate.
    """
    exit_code: int = 0
    """The highest exit code of the files that could not be read."""

    def _summary(self) -> str:
        return f"{', '.join(self.paths)}: {format_count(len(self.columns), 'column')}"


def _as_queries(queries: Iterable[str | Query]) -> tuple[Query, ...]:
    given = as_iterable(queries)
    return tuple(query if isinstance(query, Query) else parse_query(query) for query in given)


class Advise(CombiningVerb[PickledSurvey, AdviceReport]):
    """Recommend which columns of all files together deserve a filter: survey each file, then read
    data of a few row groups.

    `queries` are the expected queries, such as `user_id = 42 AND country IN ('SE', 'NO')`. Without
    queries, a query for one value is assumed for every column, except for those whose type is
    seldom queried by equality, such as floating-point measures: these are left out unless
    `all_types` is set. Without `fpp`, the target is 0.01, or the rate of the next smaller size if
    lookups then read fewer bytes. `engine_names` are the query engines that will read the files (if
    empty, all known ones). `writer` names a writer, such as `spark`, whose settings the report then
    has. Files that cannot be read are listed in the report; if there is only one file,
    UnreadableError is raised instead. Raises UsageError (an invalid query, a column that no file
    has).
    """

    name = "advise"
    report = PickledSurvey
    answer = AdviceReport
    queries: Iterable[str | Query] = opt("The expected queries", default=(), convert=_as_queries)
    fpp: float | None = opt(
        "Target false-positive rate; 0.01, or that of the next smaller size where it saves more, "
        "if it is not given",
        default=None,
    )
    engine_names: Iterable[str] = opt(
        "The query engines that read the files", default=(), convert=as_engines
    )
    all_types: bool = opt(
        "Also recommend columns whose type is seldom queried by equality", default=False
    )
    writer: str | None = opt("The writer whose settings the report has", default=None)

    def ensure_valid(self) -> None:
        if self.fpp is not None:
            sizing.ensure_fpp(self.fpp)
        if self.writer is not None:
            ensure_writer(self.writer)

    def on(self, file: ParquetFile) -> PickledSurvey:
        return PickledSurvey(pickle.dumps(survey(file, _as_queries(self.queries))))

    def combine(self, rows: Iterable[Row[PickledSurvey]], files: AllFiles) -> AdviceReport:
        fpp = DEFAULT_FPP if self.fpp is None else self.fpp
        queries = _as_queries(self.queries)
        keys = Keys.of(files.context.keys)
        summary = Surveys(files.names, _surveys(rows), queries, fpp)
        judgments = self._judge_without_data(summary)
        is_alone = summary.files == 1
        sample_files, errors = _sample(files, judgments, is_alone=is_alone)
        unreadable = [*summary.unreadable, *errors]
        judge = partial(self._judge_with_data, summary, judgments)
        columns = judge(fpp=fpp)
        options = _list_size_options(summary, columns, fpp)
        if self.fpp is None and choose_fpp(options) != fpp:
            fpp = choose_fpp(options)
            columns = judge(fpp=fpp)
        paths = tuple(map(redact, files.names))
        keys_path = None if keys is None else keys.path
        fix = build_fix(paths, columns, summary.totals, fpp, keys_path)
        query_advice = []
        for query, counts in zip(queries, summary.counts, strict=True):
            query_advice.append(build_query_advice(query, counts, fix, fpp))
        settings = None
        if self.writer is not None:
            patterns = paths if files.table is not None else tuple(map(pattern_of, paths))
            settings = build_settings(self.writer, build_request(patterns, columns, summary, fpp))
        return AdviceReport(
            paths=paths,
            files=summary.files,
            row_groups=summary.row_groups,
            bytes=summary.bytes,
            fpp=fpp,
            columns=tuple(columns.values()),
            queries=tuple(query_advice),
            sampled_files=tuple(map(redact, sample_files)),
            fix=fix,
            added_bytes=estimate_added(columns, summary, fpp, fix),
            unreadable=tuple(map(str, unreadable)),
            filter_sizes=tuple(list_sizes(summary.totals.values())),
            emit=settings,
            size_options=options,
            exit_code=max([error.exit_code for error in unreadable], default=0),
        )

    def _judge_without_data(self, summary: Surveys) -> dict[ColumnKey, _JudgmentWithoutData]:
        """Judge each column by what the footers and filters show of it."""
        engines = tuple(self.engine_names)
        judgments = {}
        for key, totals in summary.totals.items():
            use = use_by_all(totals, engines)
            reason = summary.judge(totals, use)
            is_left_out = False
            if reason is None and not self.queries and not self.all_types:
                reason = explain_rarity(totals)
                is_left_out = reason is not None
            judgments[key] = _JudgmentWithoutData(totals, use, reason, is_left_out)
        return judgments

    def _judge_with_data(
        self,
        summary: Surveys,
        judgments: Mapping[ColumnKey, _JudgmentWithoutData],
        *,
        fpp: float,
    ) -> dict[ColumnKey, ColumnAdvice]:
        """Advise on each column; data of those without a reason were read into their totals."""
        engines = tuple(self.engine_names)
        columns = {}
        for key, judgment in judgments.items():
            totals = judgment.totals
            lookup = estimate_lookup(totals, summary.estimate_share(totals))
            reason = judgment.reason or judge_with_data(totals, lookup, fpp)
            cautions: tuple[str, ...] = ()
            if reason is None:
                cautions = list_cautions(totals, judgment.use, engines)
            verdict, sentence = choose_verdict(
                totals,
                lookup,
                reason,
                has_queries=bool(self.queries),
                is_left_out=judgment.is_left_out,
            )
            columns[key] = build_advice(totals, lookup, verdict, sentence, fpp, cautions)
        return columns


def _list_size_options(
    summary: Surveys, columns: Mapping[ColumnKey, ColumnAdvice], fpp: float
) -> tuple[SizeOption, ...]:
    advised = []
    for key, column in columns.items():
        if column.verdict == ADD:
            totals = summary.totals[key]
            lookup = estimate_lookup(totals, summary.estimate_share(totals))
            advised.append(AdvisedColumn(totals, lookup))
    return list_options(advised, fpp)


class _JudgmentWithoutData(NamedTuple):
    """What is known of a column before data is read."""

    totals: Totals
    use: Use
    reason: str | None
    """Why a filter is useless; None if the data must show it."""
    is_left_out: bool
    """Whether the reason is that the type is seldom queried by equality."""


def _sample(
    files: AllFiles,
    judgments: Mapping[ColumnKey, _JudgmentWithoutData],
    *,
    is_alone: bool,
) -> tuple[list[str], list[SbbfError]]:
    """Read a sample of the columns that may deserve a filter into their totals; return its files,
    and the errors. Raises OversizedPageError if the file is the only one."""
    candidates_by_path: dict[str, dict[ColumnKey, Totals]] = {}
    for key, judgment in judgments.items():
        if judgment.reason is None:
            for path in judgment.totals.sample_files.items:
                candidates_by_path.setdefault(path, {})[key] = judgment.totals
    paths = sorted(candidates_by_path)
    errors = []
    for path in paths:
        file = files.open_by(path)
        for error in sample(file, candidates_by_path[path], files.context):
            if isinstance(error, OversizedPageError) and is_alone:
                raise error
            errors.append(error)
    return paths, errors


def _surveys(rows: Iterable[Row[PickledSurvey]]) -> Iterator[tuple[str, FileSurvey | SbbfError]]:
    """Yield each path with its survey, or with the error that prevented it. Links are left out."""
    for row in rows:
        if row.reason in (LINK, *LEFT_OUT):
            continue
        if row.report is None:
            yield row.path, row.to_error()
        else:
            yield row.path, pickle.loads(row.report.survey)


def advise_open(
    verb: Advise,
    inputs: Sequence[Readable],
    filesystem: FileSystemLike | None,
    context: Context,
) -> AdviceReport:
    """Advise on open files, or on files of a file system object, in this process. The report has no
    fix for files without a name."""
    unnamed: dict[str, Readable | FileIn] = {}

    def rows() -> Iterator[Row[PickledSurvey]]:
        for name in inputs:
            for file in parquet_inputs(name, filesystem):
                label = file if isinstance(file, str) else _label(file, unnamed)
                try:
                    yield Row(label, OK, report=verb.carry(file, context))
                except SbbfError as error:
                    yield Row(label, FAILED, exit_code=error.exit_code, error=error)

    def open_by(path: str) -> Readable | FileIn:
        return unnamed.get(path, path)

    def name_input(file: Readable) -> str:
        if isinstance(file, str | bytes | os.PathLike):
            return os.fsdecode(file)
        return name_of(file)

    names = tuple(map(name_input, inputs))
    report = verb.combine(rows(), AllFiles(names, context, open_by))
    return replace(report, fix=None)


def _label(file: Readable | FileIn, unnamed: dict[str, Readable | FileIn]) -> str:
    """Return a name for a file that cannot be opened by name, unique in `unnamed`, and add the file
    there."""
    label = file.path if isinstance(file, FileIn) else name_of(file)
    if label in unnamed:
        label = f"{label} {len(unnamed) + 1}"
    unnamed[label] = file
    return label
