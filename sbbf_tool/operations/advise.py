"""`advise`: recommend which columns deserve a filter, at what size, and estimate what it would save.

survey   read every file's footer, headers of dictionary pages and filters, and add up what is known exactly
sample   read two row groups per column of a few random files: count distinct values, and those that both row groups hold
judge    give each column a verdict and a sentence; queries, where given, tell which columns are queried and how often min and max suffice
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from sbbf_tool.advice.queries import Query, QueryCounts, parse_query
from sbbf_tool.advice.sample import sample, source_of
from sbbf_tool.advice.survey import FileSurvey, Totals, survey
from sbbf_tool.advice.surveys import Surveys
from sbbf_tool.advice.verdicts import (
    ADD,
    UNASKED,
    Lookup,
    cautions_of,
    engines_for,
    lookup_of,
    useless_filters,
    verdict_of,
    with_data,
    without_data,
)
from sbbf_tool.arguments import as_iterable, as_names
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.display import redact
from sbbf_tool.editing.plan_file import Plan
from sbbf_tool.errors import OversizedPageError, SbbfError
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.parquet.encryption.keys import Keys
from sbbf_tool.reports.advise import AdviceReport, ColumnAdvice, QueryAdvice
from sbbf_tool.storage.places import parquet_files

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven


_Key = tuple[str, str]
"""A column's name and type."""


def advise(
    names: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    queries: Iterable[str] = (),
    fpp: float = DEFAULT_FPP,
    engine_names: Iterable[str] = (),
    keys: KeysGiven = None,
    max_page_bytes: MaxPageBytes = None,
) -> AdviceReport:
    """Advise on the columns of these files together: each of `names` is a file, a folder or a glob.

    `queries` are the expected queries, such as `user_id = 42 AND country IN ('SE', 'NO')`; without any, a query for one value is assumed
    of every column. `engine_names` are the query engines that will read the files, all known ones where empty. Files that cannot be read
    are listed in the report; a single one raises UnreadableError. Raises UsageError (an invalid query, a column that no file has).
    """
    listed = tuple(os.fsdecode(name) for name in as_iterable(names))
    asked = tuple(parse_query(query) for query in as_iterable(queries))
    known, limit = Keys.of(keys), max_page_bytes
    files = chain.from_iterable(map(parquet_files, listed))
    surveys = ((path, _surveyed(path, asked, known, limit)) for path in files)
    return advise_on(listed, surveys, queries=asked, fpp=fpp, engine_names=engine_names, keys=known, limit=limit)


def _surveyed(path: str, queries: tuple[Query, ...], keys: Keys | None, limit: MaxPageBytes) -> FileSurvey | SbbfError:
    try:
        return survey(path, queries, keys, limit)
    except SbbfError as error:
        return error


def advise_on(
    listed: tuple[str, ...],
    surveys: Iterable[tuple[str, FileSurvey | SbbfError]],
    *,
    queries: Iterable[Query],
    fpp: float | None = None,
    engine_names: Iterable[str],
    keys: Keys | None = None,
    limit: MaxPageBytes = None,
) -> AdviceReport:
    """Advise on files that were surveyed elsewhere with the same queries; `listed` are the names under which they were found.

    Some of the files are opened again here to count distinct values.
    """
    asked, engines = tuple(queries), as_names(engine_names, "engine")
    fpp = DEFAULT_FPP if fpp is None else fpp
    sizing.ensure_rate(fpp)
    survey_of_all = Surveys(listed, surveys, asked)
    found = survey_of_all.totals
    users = {key: engines_for(totals, engines) for key, totals in found.items()}
    lefts = {key: _share_left(totals, asked, survey_of_all.counts) for key, totals in found.items()}
    reasons = {}
    for key, totals in found.items():
        left = lefts[key] * totals.row_groups
        unasked = asked and not any(totals.column.name in counts.asked_of_column for counts in survey_of_all.counts)
        reasons[key] = UNASKED if unasked else without_data(totals, *users[key], left, queried=bool(asked))
    open_keys = [key for key, reason in reasons.items() if reason is None]
    drawn = sorted({path for key in open_keys for path in found[key].drawn.kept})
    for path in drawn:
        try:
            survey_of_all.unreadable += sample(path, {key: found[key] for key in open_keys if path in found[key].drawn.kept}, keys, limit)
        except OversizedPageError as error:
            if survey_of_all.files == 1:
                raise
            survey_of_all.unreadable.append(error)
    columns = {}
    for key, totals in found.items():
        lookup = lookup_of(totals, lefts[key])
        reason = reasons[key] or with_data(totals, lookup, fpp)
        cautions = cautions_of(totals, users[key][0], engines) if reason is None else ()
        columns[key] = _advice(totals, lookup, reason, fpp, cautions, queried=bool(asked))
    plan = plan_of(tuple(map(redact, listed)), columns, found, fpp)
    return AdviceReport(
        paths=tuple(map(redact, listed)),
        files=survey_of_all.files,
        row_groups=survey_of_all.row_groups,
        bytes=survey_of_all.bytes,
        fpp=fpp,
        columns=tuple(columns.values()),
        queries=tuple(_query(query, counts, plan) for query, counts in zip(asked, survey_of_all.counts, strict=True)),
        sampled_files=tuple(map(redact, drawn)),
        fix=plan.fix(keys.path if keys is not None else None) if plan is not None else None,
        plan=plan.as_json() if plan is not None else None,
        unreadable=tuple(map(str, survey_of_all.unreadable)),
        exit_code=max((error.exit_code for error in survey_of_all.unreadable), default=0),
    )


def _share_left(totals: Totals, queries: Sequence[Query], counts: Iterable[QueryCounts]) -> float:
    """Return the share of row groups that min and max leave: for queries on the column, else for a value in the range of a row group."""
    name = totals.column.name
    asked = [(one.by_column[name], one.asked_of_column[name]) for one in counts if name in one.asked_of_column]
    return sum(left / total for left, total in asked) / len(asked) if asked else totals.share_left


def _advice(totals: Totals, lookup: Lookup, reason: str | None, fpp: float, cautions: tuple[str, ...], *, queried: bool) -> ColumnAdvice:
    verdict, sentence = verdict_of(totals, lookup, reason, queried=queried)
    cost = totals.cost(fpp)
    mean = totals.row_group_bytes / totals.row_groups if totals.row_groups else 0.0
    rate = fpp if verdict == ADD or totals.mean_fpp is None else totals.mean_fpp
    ndv_source, is_exact = source_of(totals)
    return ColumnAdvice(
        column=totals.column.name,
        type=totals.column.type_name,
        verdict=verdict,
        reason=sentence,
        cautions=cautions if verdict == ADD else (),
        row_groups=totals.row_groups,
        bytes=totals.bytes,
        row_group_bytes=totals.row_group_bytes,
        ndv=totals.ndv,
        ndv_is_exact=is_exact,
        ndv_source=ndv_source,
        dictionary_encoded=totals.dictionaries,
        after_statistics=lookup.after_statistics,
        row_groups_with_value=lookup.row_groups_with_value if totals.repetition is not None else None,
        filters=totals.filters,
        filter_bytes=totals.filter_bytes,
        mean_fpp=totals.mean_fpp,
        bitset_bytes=cost[0] if cost is not None else None,
        cost_bytes=cost[1] if cost is not None else None,
        skipped_if_absent=round(lookup.skipped(rate, present=False) * mean),
        skipped_if_present=round(lookup.skipped(rate, present=True) * mean) if totals.repetition is not None else None,
    )


def plan_of(names: tuple[str, ...], columns: Mapping[_Key, ColumnAdvice], found: Mapping[_Key, Totals], fpp: float) -> Plan | None:
    chosen = {key: column for key, column in columns.items() if column.verdict == ADD}
    if not chosen:
        return None
    sizes = {column.column: max(column.bitset_bytes or 0, sizing.MIN_BYTES) for column in chosen.values()}
    # Where row groups merely lack filters, sound ones stay: a run over new files must not rebuild those of all others.
    return Plan(files=names, fpp=fpp, replace=any(useless_filters(found[key]) is not None for key in chosen), columns=sizes)


def _query(query: Query, counts: QueryCounts, plan: Plan | None) -> QueryAdvice:
    return QueryAdvice(
        query=query.text,
        row_groups=counts.row_groups,
        after_statistics=counts.after_statistics,
        after_dictionary=counts.after_dictionary,
        after_filters=counts.after_filters,
        after_advice=counts.left_with(dict.fromkeys(plan.columns, plan.fpp) if plan is not None else {}),
    )
