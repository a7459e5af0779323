"""`explain`: show for each row group what would skip it in a query for a value (min and max, dictionary, filter), and in which engines.

Engines query these in that order and stop at the first `absent`. The table of `engines` has which of them query a dictionary, and which a
filter on a column of this type; every engine is assumed to compare min and max.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.file.answers import ask_row_group
from sbbf_tool.file.page_limit import MaxPageBytes
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import by_dictionary, by_statistics, row_group_bytes, shown_bounds
from sbbf_tool.file.question import Question, question_of
from sbbf_tool.parquet.arrow_schema import arrow_type
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.literals import ABSENT
from sbbf_tool.query_engines.terms import HARM, USED
from sbbf_tool.query_engines.verdicts import engine, table, verdicts_for
from sbbf_tool.reports.engines import EngineReport, EngineVerdict
from sbbf_tool.reports.explain import EngineExplanation, ExplainReport, RowGroupExplanation

if TYPE_CHECKING:
    from sbbf_tool.file.keys import KeysGiven

STATISTICS, DICTIONARY, FILTER, READ, HARMED = "statistics", "dictionary", "filter", "read", "harm"


def explain(
    path: str | os.PathLike[str],
    column: str,
    value: object,
    *,
    engine_name: str | None = None,
    keys: KeysGiven = None,
    max_page_bytes: MaxPageBytes = None,
) -> ExplainReport:
    """Explain what would skip each row group in a query for `column = value`, in each engine or only in `engine_name`.

    The value is text as a person writes it, or a Python object, as in `probe`; None queries null (`column IS NULL`). Raises UsageError
    (no such column or engine, a value that the column cannot hold), UnreadableError (bytes that contradict the format), RefusedError
    (encrypted footer; a dictionary page that states more than `max_page_bytes` uncompressed bytes).
    """
    asked = table().engines if engine_name is None else (engine(engine_name),)
    with ParquetFile.open(path, keys, max_page_bytes) as file:
        with file.named():
            question = question_of(find_column(file.footer.columns, column), (value,))
        (literal,) = question.literals
        file.expect_filters([question.column], whole=True)
        known_as = arrow_type(file.footer, question.column)
        row_groups = [_explained(file, number, question, known_as) for number in range(file.footer.num_row_groups)]
        return ExplainReport(
            file=file.name,
            column=question.column.name,
            type=question.column.type_name,
            value=literal.text,
            note=literal.note,
            absent=all(found.row_group.is_absent for found in row_groups),
            bytes=sum(found.row_group.bytes for found in row_groups),
            column_bytes=sum(found.row_group.column_bytes for found in row_groups),
            row_groups=tuple(found.row_group for found in row_groups),
            engines=tuple(_engine(one, question, row_groups, known_as) for one in asked),
        )


class _Explained(NamedTuple):
    row_group: RowGroupExplanation
    verdicts: dict[str, EngineVerdict]
    """Verdict of each engine on this row group's filter, or on one that it could have."""
    has_filter: bool


def _explained(file: ParquetFile, number: int, question: Question, known_as: str | None) -> _Explained:
    column = question.column
    stored = None if file.encryption_of(number, column) else file.stored_filter(number, column)
    (statistics,) = by_statistics(file, number, question)
    dictionary = by_dictionary(file, number, question)
    (answer,) = ask_row_group(file, number, question)
    verdicts = verdicts_for(
        column,
        arrow_type=known_as,
        bitset_bytes=stored.header.num_bytes if stored is not None else None,
        has_length=stored is None or stored.place.length is not None,
    )
    min_value, max_value = shown_bounds(file, number, column) or (None, None)
    explanation = RowGroupExplanation(
        row_group=number,
        rows=file.footer.num_rows(number) or 0,
        bytes=row_group_bytes(file, number),
        column_bytes=file.footer.chunk_meta(number, column.index).bytes,
        min_value=min_value,
        max_value=max_value,
        statistics=statistics.answer,
        statistics_reason=statistics.reason,
        dictionary=dictionary[0].answer if dictionary is not None else None,
        dictionary_reason=dictionary[0].reason if dictionary is not None else None,
        filter=answer.answer,
        filter_reason=answer.reason,
    )
    return _Explained(explanation, {verdict.engine: verdict for verdict in verdicts}, stored is not None)


def _engine(one: EngineReport, question: Question, row_groups: Sequence[_Explained], known_as: str | None) -> EngineExplanation:
    """Explain what one engine skips, and why it queries the filters of the row groups or does not."""
    of_column = next(verdict for verdict in verdicts_for(question.column, arrow_type=known_as) if verdict.engine == one.id)
    pushed = of_column.verdict != "unused"
    comparable = question.literals[0].verdict is None
    steps = [_step(one, found, asks_dictionary=one.dictionary_first and pushed, comparable=comparable) for found in row_groups]
    count = Counter(steps)
    skipped = [found.row_group for found, step in zip(row_groups, steps, strict=True) if step in (STATISTICS, DICTIONARY, FILTER)]
    total = sum(found.row_group.bytes for found in row_groups)
    total_of_column = sum(found.row_group.column_bytes for found in row_groups)
    return EngineExplanation(
        engine=one.id,
        name=one.name,
        steps=tuple(steps),
        skipped_by_statistics=count[STATISTICS],
        skipped_by_dictionary=count[DICTIONARY],
        skipped_by_filter=count[FILTER],
        row_groups_read=count[READ] + count[HARMED],
        bytes_skipped=sum(row.bytes for row in skipped),
        share_skipped=sum(row.bytes for row in skipped) / total if total else 0.0,
        share_of_column_skipped=sum(row.column_bytes for row in skipped) / total_of_column if total_of_column else 0.0,
        explanation=_says(one, of_column, row_groups, steps),
        harm=next((found.verdicts[one.id].effect for found, step in zip(row_groups, steps, strict=True) if step == HARMED), None),
    )


def _step(one: EngineReport, found: _Explained, *, asks_dictionary: bool, comparable: bool) -> str:
    """Return what the engine does with a row group. A value that the column cannot store is read: its conversion is not known."""
    row_group, verdict = found.row_group, found.verdicts[one.id]
    if row_group.statistics == ABSENT:
        return STATISTICS
    if not comparable:
        return READ
    if asks_dictionary and row_group.dictionary is not None:
        return DICTIONARY if row_group.dictionary == ABSENT else READ
    if found.has_filter and verdict.verdict == HARM:
        return HARMED
    return FILTER if found.has_filter and verdict.verdict == USED and row_group.filter == ABSENT else READ


def _says(one: EngineReport, of_column: EngineVerdict, row_groups: Sequence[_Explained], steps: Sequence[str]) -> str:
    """Describe the harm where there is one, else what the engine does with the first filter, else with filters of the type."""
    for wanted in (HARMED, FILTER):
        for found, step in zip(row_groups, steps, strict=True):
            if step == wanted:
                verdict = found.verdicts[one.id]
                return verdict.sentence.removeprefix(f"{one.name}: ") if wanted == HARMED else verdict.explanation
    if DICTIONARY in steps:
        return "The chunk's dictionary answers first, and exactly."
    first = next((found for found in row_groups if found.has_filter), None)
    return first.verdicts[one.id].explanation if first is not None else of_column.explanation
