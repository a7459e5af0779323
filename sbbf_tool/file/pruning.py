"""Which row groups may hold which of many values: the one decision for every command, for Python,
Spark and the data source.

Four means exclude values, the cheapest first: min, max and null count select a slice of the sorted
values; the filter is queried for this slice; without a usable filter, a dictionary that holds all
values of the chunk and is small is read. What a file contradicts excludes nothing (`doubts`).
`partitions` and `missing_column` answer for values that stand in folders and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sbbf_tool.errors import AuthenticationError, RefusedError, UnreadableError
from sbbf_tool.file.doubts import doubt_of_chunk
from sbbf_tool.file.filter_answers import (
    BulkAnswer,
    build_bitmap,
    by_filter,
    expect_filters,
    positions,
)
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.question import Candidates, Question
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.literals import BOOLEAN_FORMS, format_short
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE, Literal
from sbbf_tool.parquet.statistics import Bounds, bounds, key_of, stated_bounds
from sbbf_tool.reports.probe import RowGroupAnswer

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect

Answer = TypeVar("Answer")

STATISTICS, DICTIONARY, FILTER = "statistics", "dictionary", "filter"

_ONLY_NULLS = "all its values are null"
_MAX_CHARACTERS = 40
_SMALL_DICTIONARY = 1 << 20
"""Bytes of a dictionary page, compressed, that is read to exclude values. Writers begin other pages
beyond about as many."""


class RowGroupAnswers(NamedTuple):
    """What is known of the values of a question in one row group."""

    row_group: int
    candidates: Candidates
    """The values that statistics leave."""
    answers: BulkAnswer
    """What the filter or the dictionary says of these."""
    verdicts: Sequence[RowGroupAnswer]
    """Answer for each of the question's `verdicts`."""
    decided_by: str

    @property
    def is_undecided(self) -> bool:
        """Whether it may hold values that nothing was queried for, or that what was queried cannot
        exclude."""
        return bool(self.candidates) and self.answers.answer != ABSENT

    @property
    def is_absent(self) -> bool:
        """Whether it holds none of the values."""
        return (
            not self.answers.values
            and not self.is_undecided
            and all(each.is_absent for each in self.verdicts)
        )


def narrow(
    file: ParquetFile,
    question: Question,
    row_groups: Sequence[int],
    unreadable: list[str],
    *,
    dialect: Dialect | None = None,
    filters_only: bool = False,
) -> Iterator[RowGroupAnswers]:
    """Yield for each row group which values it may hold. With `filters_only`, nothing but filters
    excludes a value.

    Places of filters and dictionaries that are unreadable, and the reasons, are added to
    `unreadable`; they exclude nothing. Raises AuthenticationError: bytes that another than the
    writer changed are no accident, so nothing of the file is relied on.
    """
    by_row_group = {
        number: question.candidates() if filters_only else by_statistics(file, number, question)
        for number in row_groups
    }
    expect_filters(
        file,
        question,
        {number: candidates for number, candidates in by_row_group.items() if candidates},
    )
    for number, candidates in by_row_group.items():
        verdicts = [
            RowGroupAnswer(number, literal.verdict or "", literal.note)
            if filters_only
            else _answer_special(file, number, question, literal)
            for _, literal in question.verdicts
        ]
        answers, decided_by = BulkAnswer(), STATISTICS
        if candidates:
            answers, decided_by = (
                call_or_note(
                    unreadable, "filter", by_filter, file, number, question, candidates, dialect
                ),
                FILTER,
            )
            is_undecided = answers.answer != ABSENT and not answers.values
            if (
                is_undecided
                and not filters_only
                and _has_small_dictionary(file, number, question.column)
            ):
                with suppress(RefusedError):  # a page beyond the limit of sizes is not needed
                    found = call_or_note(
                        unreadable, "dictionary", by_dictionary, file, number, question, candidates
                    )
                    if found is not None and found.answer == ABSENT:
                        answers, decided_by = found, DICTIONARY
        yield RowGroupAnswers(number, candidates, answers, verdicts, decided_by)


def call_or_note(
    unreadable: list[str], noun: str, query: Callable[..., Answer], *arguments: Any
) -> Answer | BulkAnswer:
    """Call a function that queries the `noun` of a row group. If it is unreadable, note its place,
    and return `cannot say`."""
    try:
        return query(*arguments)
    except AuthenticationError:
        raise
    except UnreadableError as error:
        unreadable.append(error.with_place)
        return BulkAnswer(answer=CANNOT_SAY, reason=f"the {noun} is unreadable: {error.message}")


BoundsOf = Callable[[Footer, int, Column], Bounds | None]
"""A function that returns the bounds of a chunk by which values are excluded."""


def by_statistics(
    file: ParquetFile, row_group: int, question: Question, bounds_of: BoundsOf = bounds
) -> Candidates:
    """Return the values that are between the min and max of the chunk. Null and BOOLEAN values are
    answered alone."""
    column = question.column
    if reason := doubt_of_chunk(file, row_group, column, question.values):
        return question.candidates(answer=CANNOT_SAY, reason=reason)
    if file.footer.chunk_meta(row_group, column.index).has_only_nulls:
        return Candidates(range(0), range(0), ABSENT, _ONLY_NULLS)
    limits = bounds_of(file.footer, row_group, column)
    if limits is None:
        return question.candidates(answer=CANNOT_SAY, reason="it has no reliable min and max")
    return question.candidates(limits)


def _answer_special(
    file: ParquetFile,
    row_group: int,
    question: Question,
    literal: Literal,
    bounds_of: BoundsOf = bounds,
) -> RowGroupAnswer:
    """Return whether a chunk may hold null, a BOOLEAN, or a value that its column cannot be
    compared with."""
    column, meta = question.column, file.footer.chunk_meta(row_group, question.column.index)
    if reason := doubt_of_chunk(file, row_group, column, question.values):
        return RowGroupAnswer(row_group, CANNOT_SAY, reason)
    if literal.is_null:
        return RowGroupAnswer(row_group, *_of_null(file, row_group, column))
    if meta.has_only_nulls:
        return RowGroupAnswer(row_group, ABSENT, _ONLY_NULLS)
    limits = bounds_of(file.footer, row_group, column)
    plain = BOOLEAN_FORMS.get(literal.text.lower())
    if column.physical == "BOOLEAN" and plain is not None and limits is not None:
        return RowGroupAnswer(
            row_group, MAYBE if limits.low <= key_of(column, plain) <= limits.high else ABSENT
        )
    return RowGroupAnswer(row_group, literal.verdict or CANNOT_SAY, literal.note)


def _of_null(file: ParquetFile, row_group: int, column: Column) -> tuple[str, str | None]:
    """Return whether a row of the chunk may be null. The null count of a list is not used: in some
    files it includes empty lists."""
    if column.max_repetition:
        return CANNOT_SAY, "a count of nulls does not identify the rows of a list that are null"
    if column.max_definition == 0:
        return ABSENT, "its column is required"
    if file.footer.num_rows(row_group) == 0:
        return ABSENT, "it has no rows"
    nulls = file.footer.chunk_meta(row_group, column.index).nulls
    if nulls is None:
        return CANNOT_SAY, "the footer does not count its nulls"
    return MAYBE if nulls else ABSENT, None


def _has_small_dictionary(file: ParquetFile, row_group: int, column: Column) -> bool:
    meta = file.footer.chunk_meta(row_group, column.index)
    return (
        meta.is_dictionary_encoded
        and 0 < (meta.first_data_page or 0) - meta.page_range[0] <= _SMALL_DICTIONARY
    )


def by_dictionary(
    file: ParquetFile, row_group: int, question: Question, candidates: Candidates
) -> BulkAnswer | None:
    """Return which candidates the chunk's dictionary holds; None if the dictionary does not hold
    all values of the chunk.

    Reads the dictionary page and hashes it; `absent` is certain, as with a filter.
    """
    from sbbf_tool.parquet import equals
    from sbbf_tool.parquet.plain_pages import PlainChunk

    column = question.column
    meta = file.footer.chunk_meta(row_group, column.index)
    if not meta.is_dictionary_encoded or doubt_of_chunk(file, row_group, column, question.values):
        return None
    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        pages, start = file.pages(row_group, column), meta.page_range[0]
        file.source.prefetch([(start, (meta.first_data_page or start) - start)])
        page = PlainChunk(pages.read, column, pages.meta, pages.ensure_size).dictionary()
        if page is None:
            return BulkAnswer(
                answer=CANNOT_SAY,
                reason="its dictionary page is very large, or has an unsupported codec",
            )
        normalised = equals.compares_normalised(file.footer, column)
        entries = {*page.hashes, *page.hashes_of_equals(normalised_intervals=normalised)}
    hashes, owners = question.hashes_in(candidates)
    return BulkAnswer(build_bitmap(bytes(map(entries.__contains__, hashes)), owners))


def answers_by_statistics(
    file: ParquetFile, row_group: int, question: Question, bounds_of: BoundsOf = bounds
) -> list[RowGroupAnswer]:
    """Return what statistics say of each value, by the bounds of the format or of an engine."""
    candidates = by_statistics(file, row_group, question, bounds_of)
    inside, outside = (
        RowGroupAnswer(row_group, candidates.answer, candidates.reason),
        RowGroupAnswer(row_group, ABSENT, candidates.reason),
    )
    answers = [inside if question.is_in(candidates, at) else outside for at in range(len(question))]
    for at, literal in question.verdicts:
        answers[at] = _answer_special(file, row_group, question, literal, bounds_of)
    return answers


def answers_by(question: Question, row_group: int, answers: BulkAnswer) -> list[RowGroupAnswer]:
    """Return what the filter or the dictionary of a row group says of each value, without regard to
    statistics."""
    others, maybe = (
        RowGroupAnswer(row_group, answers.answer, answers.reason),
        RowGroupAnswer(row_group, MAYBE),
    )
    held = set(positions(answers.values))
    by_value = [maybe if at in held else others for at in range(len(question))]
    for at, literal in question.row.special.items():
        if literal.verdict is not None:
            by_value[at] = RowGroupAnswer(row_group, literal.verdict, literal.note)
    return by_value


def format_bounds(file: ParquetFile, row_group: int, column: Column) -> tuple[str, str] | None:
    """Return min and max in the form in which `probe` accepts values, shortened to fit a table."""
    pair = (
        stated_bounds(file.footer, row_group, column)
        if bounds(file.footer, row_group, column) is not None
        else None
    )
    return (
        None
        if pair is None
        else (
            format_short(column, pair[0], _MAX_CHARACTERS),
            format_short(column, pair[1], _MAX_CHARACTERS),
        )
    )


def row_group_bytes(file: ParquetFile, row_group: int) -> int:
    """Return the compressed bytes of the pages of all chunks, except chunks encrypted with their
    own keys, whose sizes are unknown."""
    return sum(meta.bytes for meta in file.footer.chunk_metas(row_group))
