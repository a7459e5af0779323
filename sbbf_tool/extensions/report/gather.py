"""Gather the contents of one file for the HTML report: the reports of `inspect`, `check` and
`explain`, and the numbers of pictures.

In a query, a row group is excluded if one condition excludes it, and a condition excludes it if
every one of its values is excluded. Engines query min and max first, then dictionaries, then
filters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from sbbf_tool.advice.queries import Query
from sbbf_tool.bloom.block_bits import count_blocks_by_bits
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import AuthenticationError, UnreadableError
from sbbf_tool.extensions.report.contents import (
    EngineSteps,
    FileContents,
    FilterDetail,
    FoldSize,
    QuerySteps,
    StoredPart,
)
from sbbf_tool.file.judgment import FileCondition
from sbbf_tool.file.layout import METADATA_COPY, PAGES, Range, owned_ranges, ranges_between
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import opt, replace
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import StoredFilter
from sbbf_tool.parquet.footer import MAGIC
from sbbf_tool.predicates import columns_of
from sbbf_tool.query_engines.verdicts import as_engines, load_table
from sbbf_tool.rules.catalog import Policy
from sbbf_tool.rules.rule import Limits
from sbbf_tool.verbs.check import Check
from sbbf_tool.verbs.explain import Explain, ExplainReport
from sbbf_tool.verbs.inspect import Inspect
from sbbf_tool.verbs.verb import Needs, ReadingVerb

FILTER = "filter"
UNREFERENCED = "unreferenced"
FOOTER = "footer"
FURTHER = "other"
DICTIONARY = "dictionary page"


def describe_contents(
    file: ParquetFile, *, detailed: bool
) -> tuple[tuple[FilterDetail, ...], tuple[StoredPart, ...]]:
    """Describe the filters that can be read and, if `detailed`, their blocks and every byte of the
    file."""
    file.expect_filters(file.footer.columns, whole=True)
    stored_filters = []
    details = []
    for key in sorted(file.footer.filter_places()):
        row_group, index = key
        column = file.footer.columns[index]
        if file.encryption_of(row_group, column):
            continue
        try:
            stored = file.stored_filter(row_group, column)
            if stored is None:
                continue
            stored_filters.append(stored)
            if not stored.header.unsupported_reason:
                details.append(_describe_filter(file, stored, column, detailed=detailed))
        except AuthenticationError:
            raise
        except UnreadableError:
            continue  # `inspect` reports it
    parts: tuple[StoredPart, ...] = ()
    if detailed:
        parts = tuple(_list_parts(file, stored_filters))
    return tuple(details), parts


def _describe_filter(
    file: ParquetFile, stored: StoredFilter, column: Column, *, detailed: bool
) -> FilterDetail:
    bloom = BloomFilter(file.read_bitset(stored))
    blocks_by_bits: tuple[int, ...] = ()
    if detailed:
        blocks_by_bits = tuple(count_blocks_by_bits(bloom))
    return FilterDetail(
        row_group=stored.row_group,
        column=column.name,
        values=file.footer.chunk_meta(stored.row_group, column.index).non_null_values,
        sizes=tuple(FoldSize(fold.num_bytes, fold.fpp) for fold in bloom.folds()),
        blocks_by_bits=blocks_by_bits,
    )


def _list_parts(file: ParquetFile, stored_filters: list[StoredFilter]) -> Iterator[StoredPart]:
    """Yield every part of the file once, in order; where parts overlap, as in a damaged file, the
    first has the bytes."""
    size = file.source.size
    position = 0
    parts = [*_find_parts(file, stored_filters), StoredPart(size, 0, FURTHER, "")]
    for part in sorted(parts, key=lambda part: (part.offset, -part.length)):
        start = min(max(part.offset, position), size)
        end = min(part.offset + part.length, size)
        if start > position:
            yield StoredPart(
                position, start - position, FURTHER, "bytes whose content the footer does not state"
            )
            position = start
        if end > start:
            yield StoredPart(start, end - start, part.kind, part.name, part.column)
            position = end


def _find_parts(file: ParquetFile, stored_filters: list[StoredFilter]) -> Iterator[StoredPart]:
    footer = file.footer
    names = [column.name for column in footer.columns]
    yield StoredPart(0, len(MAGIC), FURTHER, "magic")
    yield StoredPart(footer.start, footer.stored_bytes, FOOTER, "footer")
    end = footer.start + footer.stored_bytes
    yield StoredPart(end, file.source.size - end, FURTHER, "length of the footer, and magic")
    for owned in owned_ranges(footer):
        yield from _split_pages(file, owned, names[owned.column])
    for stored in stored_filters:
        column = names[stored.column]
        name = f"filter of {column}, row group {stored.row_group}"
        yield StoredPart(stored.place.offset, stored.length, FILTER, name, column)
    for gap in ranges_between(file, stored_filters):
        if gap.kind == METADATA_COPY:
            yield StoredPart(gap.start, gap.length, FURTHER, gap.kind)
        else:
            yield StoredPart(gap.start, gap.length, UNREFERENCED, f"unreferenced: {gap.kind}")


def _split_pages(file: ParquetFile, owned: Range, column: str) -> Iterator[StoredPart]:
    """Yield the parts of pages or of an index; a dictionary page before the data pages is a part of
    its own."""
    place = f"{column}, row group {owned.row_group}"
    data = None
    if owned.kind == PAGES:
        data = file.footer.chunk_meta(owned.row_group, owned.column).first_data_page
    start = owned.start
    if data is not None and start < data < owned.end:
        yield StoredPart(start, data - start, DICTIONARY, f"dictionary of {place}", column)
        start = data
    yield StoredPart(start, owned.end - start, owned.kind, f"{owned.kind} of {place}", column)


_STATISTICS = "statistics"
_DICTIONARY = "dictionary"
_READ = "read"
_HARM = "harm"
_ORDER = (_STATISTICS, _DICTIONARY, "filter", _READ)


def combine_steps(
    query: Query,
    conditions: Sequence[Sequence[ExplainReport]],
    row_groups: range,
    excluded: AbstractSet[int],
) -> QuerySteps:
    """Return the steps of a query; `conditions` has the reports of the values of each condition,
    all of one file. `excluded` are the row groups that statistics exclude by other parts."""
    engines_by_steps: dict[tuple[str, ...], list[str]] = {}
    for engine in load_table().engines:
        steps = _steps_of(engine.name, conditions, row_groups, excluded)
        engines_by_steps.setdefault(steps, []).append(engine.name)
    by_engine = [EngineSteps((), _steps_of(None, conditions, row_groups, excluded))]
    for steps, engines in engines_by_steps.items():
        by_engine.append(EngineSteps(tuple(engines), steps))
    return QuerySteps(query.text, len(row_groups), tuple(by_engine))


def _steps_of(
    engine: str | None,
    conditions: Sequence[Sequence[ExplainReport]],
    row_groups: Iterable[int],
    excluded: AbstractSet[int],
) -> tuple[str, ...]:
    """Return what happens to each row group in an engine; None stands for engines that query
    dictionaries, without filters."""
    steps = []
    for number in row_groups:
        steps_of_conditions = [_STATISTICS if number in excluded else _READ]
        for reports in conditions:
            answers = [_answer(engine, report, number) for report in reports]
            steps_of_conditions.append(_last_of_any(answers))
        steps.append(_first_of_all(steps_of_conditions))
    return tuple(steps)


def _answer(engine: str | None, report: ExplainReport, number: int) -> str:
    """Return what excludes a row group for one value; a report about a column that the file lacks
    has no engines."""
    for explanation in report.engines:
        if explanation.name == engine and explanation.steps:
            return explanation.steps[number]
    row_group = report.row_groups[number]
    if row_group.statistics == "absent":
        return _STATISTICS
    if row_group.dictionary == "absent":
        return _DICTIONARY
    return _READ


def _last_of_any(steps: Sequence[str]) -> str:
    """Return the step of a condition: its values are excluded one by one."""
    return _HARM if _HARM in steps else max(steps, key=_ORDER.index)


def _first_of_all(steps: Sequence[str]) -> str:
    """Return the step of a query: one condition is enough, and min and max come before a filter
    that does harm."""
    if _HARM in steps and _STATISTICS not in steps:
        return _HARM
    harmless_steps = [step for step in steps if step != _HARM]
    return min(harmless_steps, key=_ORDER.index)


class Gather(ReadingVerb[FileContents]):
    """Gather what the HTML report shows of a file; `detailed` is for the only file of a page."""

    name = "report"
    report = FileContents
    queries: Iterable[Query] = opt("The queries to explain", default=(), convert=tuple)
    detailed: bool = opt("Read what only the page of one file shows", default=True)
    quick: bool = opt("Leave out rules that read data", default=False)
    engine_names: Iterable[str] = opt(
        "The query engines that read the files", default=(), convert=as_engines
    )

    def needs(self) -> Needs:
        columns: dict[str, None] = {}
        for query in self.queries:
            for condition in query.conditions:
                columns[condition.column] = None
            if query.others is not None:
                columns.update(dict.fromkeys(columns_of(query.others)))
        return Needs(data=not self.quick, threads=True, columns=tuple(columns))

    def on(self, file: ParquetFile) -> FileContents:
        report = Inspect(engine_names=self.engine_names).on(file)
        policy = Policy(Limits(engines=tuple(self.engine_names)), quick=self.quick)
        findings = Check(policy).on(file)
        if not self.detailed:
            # The outcomes of rules are most of the bytes of a row, and a page about many files does
            # not list them.
            findings = replace(findings, rules=())
        filters, parts = describe_contents(file, detailed=self.detailed)
        queries = tuple(_explain(file, query, self.engine_names) for query in self.queries)
        return FileContents(report, findings, filters, parts, queries)


def _explain(file: ParquetFile, query: Query, engines: Iterable[str]) -> QuerySteps:
    conditions = []
    problem: str | None = None
    for condition in query.conditions:
        reports = []
        for value in condition.values:
            report = Explain(condition.column, value, engines).on(file)
            reports.append(report)
            for column in report.named_columns:
                if column.type is None and problem is None:
                    problem = column.reason
        conditions.append(reports)
    row_groups = range(file.footer.num_row_groups)
    excluded: set[int] = set()
    if query.others is not None:
        others = FileCondition(file, query.others)
        excluded = {*row_groups} - {*others.remaining(row_groups)}
    return replace(combine_steps(query, conditions, row_groups, excluded), problem=problem)
