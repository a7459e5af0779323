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
from itertools import chain
from typing import TYPE_CHECKING

from sbbf_tool.advice.queries import Query, QueryCounts, parse_query
from sbbf_tool.advice.sample import describe_ndv_source, sample
from sbbf_tool.advice.survey import FileSurvey, survey
from sbbf_tool.advice.totals import FoldedSize, Totals
from sbbf_tool.advice.verdicts import (
    ADD,
    KEEP,
    Lookup,
    Surveys,
    choose_verdict,
    estimate_lookup,
    explain_rarity,
    explain_useless_filters,
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
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.rows import FAILED, LEFT_OUT, LINK, OK, Row
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.storage.inputs import FileIn, name_of
from sbbf_tool.storage.places import parquet_inputs
from sbbf_tool.verbs.verb import AllFiles, CombiningVerb, Given
from sbbf_tool.writers.settings import build_settings, ensure_writer
from sbbf_tool.writers.writer import FilteredColumn, Request, WriterSettings, pattern_of

if TYPE_CHECKING:
    from sbbf_tool.storage.inputs import FileSystemLike, Readable


class PickledSurvey(Frozen):
    """Survey of one file."""

    survey: bytes
    """A pickled `FileSurvey`, for a process of the same version."""


class ColumnAdvice(Frozen):
    """Advice on whether one column, over all files, deserves a filter."""

    column: str
    type: str
    verdict: str
    """`add`, `keep`, `left out` (its type is seldom queried by equality) or `no gain`."""
    reason: str
    cautions: tuple[str, ...]
    """What to consider before a filter is added."""
    row_groups: int
    """Row groups in which the column has values."""
    bytes: int
    """Compressed bytes of the chunks of the column."""
    row_group_bytes: int
    """Compressed bytes of all columns of these row groups."""
    ndv: float | None
    """Distinct values in the row group that has the most; None if they were not counted, because
    the verdict does not depend on them."""
    ndv_is_exact: bool
    ndv_source: str | None
    dictionary_encoded: int
    """Row groups in which all pages of the column are dictionary-encoded."""
    after_statistics: float
    """Row groups that remain after min and max, on average for the given queries or, without any,
    for a value in a row group's range."""
    row_groups_with_value: float | None
    """Number of these row groups that hold the value, if it is present; estimated from the
    samples."""
    filters: int
    filter_bytes: int
    mean_fpp: float | None
    bitset_bytes: int | None
    """The largest bitset that a row group needs."""
    cost_bytes: int | None
    """Bytes of all filters."""
    skipped_if_absent: int
    """Bytes of row groups that a query for one absent value skips on average with filters."""
    skipped_if_present: int | None
    """The same for a present value; None if the number of row groups that hold the value is
    unknown."""


class QueryAdvice(Frozen):
    """Row groups that a query reads."""

    query: str
    row_groups: int
    after_statistics: int
    after_dictionary: int
    """Row groups that remain after min, max and dictionaries, for query engines that use
    dictionaries."""
    after_filters: int
    """Row groups that remain after min, max and the existing filters."""
    after_advice: float
    """The same with the advised filters added, on average; row groups without a dictionary are
    assumed not to hold the values."""


class ColumnSizes(Frozen):
    """What the filters of one column take, and would take at smaller sizes."""

    column: str
    sizes: tuple[FoldedSize, ...]
    bytes_at_target: int
    """Bytes of the bitsets, each folded to the smallest size that meets the target false-positive
    rate, if any does."""


class AdviceReport(Tabular):
    _row = ColumnAdvice

    paths: tuple[str, ...]
    files: int
    row_groups: int
    bytes: int
    fpp: float
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
    exit_code: int = 0
    """The highest exit code of the files that could not be read."""

    def _summary(self) -> str:
        return f"{', '.join(self.paths)}: {format_count(len(self.columns), 'column')}"


_Key = tuple[str, str]
"""A column's name and type."""


def _as_queries(queries: Iterable[str | Query]) -> tuple[Query, ...]:
    given = as_iterable(queries)
    return tuple(query if isinstance(query, Query) else parse_query(query) for query in given)


class Advise(CombiningVerb[PickledSurvey, AdviceReport]):
    """Recommend which columns of all files together deserve a filter: survey each file, then read
    data of a few row groups.

    `queries` are the expected queries, such as `user_id = 42 AND country IN ('SE', 'NO')`. Without
    queries, a query for one value is assumed for every column, except for those whose type is
    seldom queried by equality, such as floating-point measures: these are left out unless
    `all_types` is set. `engine_names` are the query engines that will read the files (if empty, all
    known ones). `emit` names a writer, such as `spark`, whose settings the report then has. Files
    that cannot be read are listed in the report; if there is only one file, UnreadableError is
    raised instead. Raises UsageError (an invalid query, a column that no file has).
    """

    name = "advise"
    report = PickledSurvey
    queries: Iterable[str | Query] = opt("The expected queries", default=(), convert=_as_queries)
    fpp: float = opt("Target false-positive rate", default=DEFAULT_FPP)
    engine_names: Iterable[str] = opt(
        "The query engines that read the files", default=(), convert=as_engines
    )
    all_types: bool = opt(
        "Also recommend columns whose type is seldom queried by equality", default=False
    )
    emit: str | None = opt("The writer whose settings the report has", default=None)

    def ensure_valid(self) -> None:
        sizing.ensure_fpp(self.fpp)
        if self.emit is not None:
            ensure_writer(self.emit)

    def on(self, file: ParquetFile) -> PickledSurvey:
        return PickledSurvey(pickle.dumps(survey(file, _as_queries(self.queries))))

    def combine(self, rows: Iterable[Row[PickledSurvey]], files: AllFiles) -> AdviceReport:
        fpp = self.fpp
        queries = _as_queries(self.queries)
        engines = tuple(self.engine_names)
        keys = Keys.of(files.given.keys)
        summary = Surveys(files.names, _surveys(rows), queries, fpp)
        totals_by_column = summary.totals
        uses = {key: use_by_all(totals, engines) for key, totals in totals_by_column.items()}
        reasons = {
            key: summary.judge(totals, uses[key]) for key, totals in totals_by_column.items()
        }
        left_out: set[_Key] = set()
        candidates: dict[_Key, Totals] = {}
        for key, totals in totals_by_column.items():
            if reasons[key] is None and not (queries or self.all_types):
                reasons[key] = explain_rarity(totals)
                if reasons[key] is not None:
                    left_out.add(key)
            if reasons[key] is None:
                candidates[key] = totals
        sample_files, errors = _sample(files, candidates, keys, is_alone=summary.files == 1)
        unreadable = [*summary.unreadable, *errors]
        columns = {}
        for key, totals in totals_by_column.items():
            lookup = estimate_lookup(totals, summary.estimate_share(totals))
            reason = reasons[key] or judge_with_data(totals, lookup, fpp)
            cautions = list_cautions(totals, uses[key], engines) if reason is None else ()
            verdict, sentence = choose_verdict(
                totals, lookup, reason, has_queries=bool(queries), is_left_out=key in left_out
            )
            columns[key] = _build_advice(totals, lookup, verdict, sentence, fpp, cautions)
        paths = tuple(map(redact, files.names))
        names = paths if files.is_table else tuple(map(pattern_of, paths))
        fix = build_fix(paths, columns, totals_by_column, fpp, None if keys is None else keys.path)
        counts_of_queries = zip(queries, summary.counts, strict=True)
        query_advice = [
            _build_query_advice(query, counts, fix, fpp) for query, counts in counts_of_queries
        ]
        advised = [
            totals_by_column[key] for key, column in columns.items() if column.verdict == ADD
        ]
        settings = None
        if self.emit is not None:
            settings = build_settings(self.emit, _request(names, columns, summary, fpp))
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
            added_bytes=_estimate_added(advised, fpp, fix),
            unreadable=tuple(map(str, unreadable)),
            filter_sizes=tuple(_list_sizes(totals_by_column.values())),
            emit=settings,
            exit_code=max((error.exit_code for error in unreadable), default=0),
        )


def _sample(
    files: AllFiles, candidates: Mapping[_Key, Totals], keys: Keys | None, *, is_alone: bool
) -> tuple[list[str], list[SbbfError]]:
    """Read a sample of the columns that may deserve a filter into their totals; return its files,
    and the errors. Raises OversizedPageError if the file is the only one."""
    paths: set[str] = set()
    for totals in candidates.values():
        paths.update(totals.sample_files.items)
    errors: list[SbbfError] = []
    for path in sorted(paths):
        chosen = {
            key: totals for key, totals in candidates.items() if path in totals.sample_files.items
        }
        limit = files.given.max_page_bytes
        for error in sample(files.open_by(path), chosen, keys, limit, files.jobs):
            if isinstance(error, OversizedPageError) and is_alone:
                raise error
            errors.append(error)
    return sorted(paths), errors


def _list_sizes(all_totals: Iterable[Totals]) -> Iterator[ColumnSizes]:
    for totals in all_totals:
        sizes = tuple(totals.folds.sizes())
        if sizes:
            yield ColumnSizes(totals.column.name, sizes, totals.folds.bytes_at_target)


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
    given: Given,
    jobs: int | None = None,
) -> AdviceReport:
    """Advise on open files, or on files of a file system object, in this process. The report has no
    fix for files without a name."""
    unnamed: dict[str, Readable | FileIn] = {}

    def rows() -> Iterator[Row[PickledSurvey]]:
        for file in chain.from_iterable(parquet_inputs(name, filesystem) for name in inputs):
            label = file if isinstance(file, str) else _label(file, unnamed)
            try:
                yield Row(label, OK, report=verb.carry(file, given))
            except SbbfError as error:
                yield Row(label, FAILED, exit_code=error.exit_code, error=error)

    def open_by(path: str) -> Readable | FileIn:
        return unnamed.get(path, path)

    def name_input(file: Readable) -> str:
        if isinstance(file, str | bytes | os.PathLike):
            return os.fsdecode(file)
        return name_of(file)

    names = tuple(map(name_input, inputs))
    report = verb.combine(rows(), AllFiles(names, given, jobs, open_by))
    return replace(report, fix=None)


def _label(file: Readable | FileIn, unnamed: dict[str, Readable | FileIn]) -> str:
    """Return a name for a file that cannot be opened by name, unique in `unnamed`, and add the file
    there."""
    name = file.path if isinstance(file, FileIn) else name_of(file)
    label = name if name not in unnamed else f"{name} {len(unnamed) + 1}"
    unnamed[label] = file
    return label


def _request(
    patterns: tuple[str, ...], columns: Mapping[_Key, ColumnAdvice], summary: Surveys, fpp: float
) -> Request:
    """Return the filters that new files should get: those that are advised, and those that are
    kept."""
    filtered: dict[str, FilteredColumn] = {}
    for key, column in columns.items():
        if column.verdict not in (ADD, KEEP):
            continue
        name, _ = key
        ndv = column.ndv or 1.0
        if name not in filtered or filtered[name].ndv < ndv:
            totals = summary.totals[key]
            filtered[name] = FilteredColumn(totals.column, ndv, totals.most_values)
    return Request(tuple(filtered.values()), fpp, patterns, summary.most_row_groups)


def _build_advice(
    totals: Totals, lookup: Lookup, verdict: str, reason: str, fpp: float, cautions: tuple[str, ...]
) -> ColumnAdvice:
    cost = totals.estimate_cost(fpp)
    mean = totals.row_group_bytes / totals.row_groups if totals.row_groups else 0.0
    expected_fpp = fpp if verdict == ADD or totals.mean_fpp is None else totals.mean_fpp
    ndv_source, is_exact = describe_ndv_source(totals)
    row_groups_with_value = skipped_if_present = None
    if totals.repetition is not None:
        row_groups_with_value = lookup.row_groups_with_value
        skipped_if_present = round(lookup.estimate_skipped(expected_fpp, present=True) * mean)
    return ColumnAdvice(
        column=totals.column.name,
        type=totals.column.type_name,
        verdict=verdict,
        reason=reason,
        cautions=cautions if verdict == ADD else (),
        row_groups=totals.row_groups,
        bytes=totals.bytes,
        row_group_bytes=totals.row_group_bytes,
        ndv=totals.ndv,
        ndv_is_exact=is_exact,
        ndv_source=ndv_source,
        dictionary_encoded=totals.dictionaries,
        after_statistics=lookup.after_statistics,
        row_groups_with_value=row_groups_with_value,
        filters=totals.filters,
        filter_bytes=totals.filter_bytes,
        mean_fpp=totals.mean_fpp,
        bitset_bytes=None if cost is None else cost[0],
        cost_bytes=None if cost is None else cost[1],
        skipped_if_absent=round(lookup.estimate_skipped(expected_fpp, present=False) * mean),
        skipped_if_present=skipped_if_present,
    )


def build_fix(
    names: tuple[str, ...],
    columns: Mapping[_Key, ColumnAdvice],
    totals: Mapping[_Key, Totals],
    fpp: float,
    keys: str | None,
) -> Fix | None:
    """Return the change that adds the advised filters; None if no filter is advised. `keys` is a
    path."""
    additions = {key: column.column for key, column in columns.items() if column.verdict == ADD}
    if not additions:
        return None
    # If row groups merely lack filters, sound filters are kept: a run over new files must not
    # rebuild the filters of all others.
    rebuilds = any(explain_useless_filters(totals[key]) is not None for key in additions)
    return Fix(
        "add_filters",
        names,
        tuple(dict.fromkeys(additions.values())),
        rebuild="all" if rebuilds else None,
        fpp=None if fpp == DEFAULT_FPP else fpp,
        keys=keys,
    )


def _estimate_added(advised: list[Totals], fpp: float, fix: Fix | None) -> int:
    """Estimate the bytes that the change adds to all files."""
    rebuilds = fix is not None and fix.rebuild is not None
    added = max((totals.footer_bytes for totals in advised), default=0)
    for totals in advised:
        cost = totals.estimate_cost(fpp)
        if cost is not None:
            added += cost[1] if rebuilds else cost[2]
    return added


def _build_query_advice(
    query: Query, counts: QueryCounts, fix: Fix | None, fpp: float
) -> QueryAdvice:
    columns = () if fix is None else fix.columns
    return QueryAdvice(
        query=query.text,
        row_groups=counts.row_groups,
        after_statistics=counts.after_statistics,
        after_dictionary=counts.after_dictionary,
        after_filters=counts.after_filters,
        after_advice=counts.estimate_remaining(dict.fromkeys(columns, fpp)),
    )
