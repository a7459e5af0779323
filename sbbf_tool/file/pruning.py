"""Which row groups may hold which of many values: the one decision for every command, for Python,
Spark and the data source.

Four means exclude values, the cheapest first: min, max and null count select a slice of the sorted
values; the filter is queried for this slice; without a usable filter, a dictionary that holds all
values of the chunk and is small is read. What a file contradicts excludes nothing (`doubts`).
`partitions` and `missing_column` answer for values that stand in folders and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.footer import Footer
from sbbf_tool.parquet.literals import BOOLEAN_FORMS, format_short
from sbbf_tool.parquet.notation import ABSENT, CANNOT_SAY, MAYBE, Literal
from sbbf_tool.parquet.statistics import Bounds, bounds, key_of, stated_bounds
from sbbf_tool.reports.probe import RowGroupAnswer

if TYPE_CHECKING:
    from sbbf_tool.bloom.dialects import Dialect

Answer = TypeVar("Answer")

STATISTICS = "statistics"
DICTIONARY = "dictionary"
FILTER = "filter"

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
    unreadable: tuple[str, ...] = ()
    """Places of the filter and the dictionary if they are unreadable, and the reasons; they exclude
    nothing."""

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
    *,
    dialect: Dialect | None = None,
    filters_only: bool = False,
) -> Iterator[RowGroupAnswers]:
    """Yield for each row group which values it may hold. With `filters_only`, nothing but filters
    excludes a value.

    Filters and dictionaries that are unreadable exclude nothing. Raises AuthenticationError: bytes
    that another than the writer changed are no accident, so nothing of the file is relied on.
    """
    by_row_group: dict[int, Candidates] = {}
    for number in row_groups:
        if filters_only:
            by_row_group[number] = question.candidates()
        else:
            by_row_group[number] = by_statistics(file, number, question)
    undecided = {number: candidates for number, candidates in by_row_group.items() if candidates}
    expect_filters(file, question, undecided)
    for number, candidates in by_row_group.items():
        verdicts = _list_verdicts(file, number, question, filters_only=filters_only)
        if not candidates:
            yield RowGroupAnswers(number, candidates, BulkAnswer(), verdicts, STATISTICS)
            continue
        answer = query_or_doubt("filter", by_filter, file, number, question, candidates, dialect)
        unreadable: tuple[str, ...] = ()
        if answer.unreadable is not None:
            unreadable = (answer.unreadable,)
        answers = RowGroupAnswers(number, candidates, answer, verdicts, FILTER, unreadable)
        is_undecided = answer.answer != ABSENT and not answer.values
        if is_undecided and not filters_only:
            answers = _query_small_dictionary(file, question, answers)
        yield answers


def _list_verdicts(
    file: ParquetFile, row_group: int, question: Question, *, filters_only: bool
) -> list[RowGroupAnswer]:
    """List the answer for each of the question's `verdicts`."""
    special = [literal for _, literal in question.verdicts]
    if filters_only:
        return [
            RowGroupAnswer(row_group, literal.verdict or "", literal.note) for literal in special
        ]
    return [_answer_special(file, row_group, question, literal) for literal in special]


def _query_small_dictionary(
    file: ParquetFile, question: Question, answers: RowGroupAnswers
) -> RowGroupAnswers:
    """Return what a dictionary says that is small and holds all values; these answers if there is
    none."""
    number = answers.row_group
    if not _has_small_dictionary(file, number, question.column):
        return answers
    try:
        answer = query_or_doubt(
            "dictionary", by_dictionary, file, number, question, answers.candidates
        )
    except RefusedError:
        return answers  # a page beyond the limit of sizes is not needed
    if answer is None:
        return answers
    if answer.unreadable is not None:
        unreadable = (*answers.unreadable, answer.unreadable)
        return answers._replace(unreadable=unreadable)
    if answer.answer == ABSENT:
        return answers._replace(answers=answer, decided_by=DICTIONARY)
    return answers


def query_or_doubt(noun: str, query: Callable[..., Answer], *arguments: Any) -> Answer | BulkAnswer:
    """Call a function that queries the `noun` of a row group. If it is unreadable, return `cannot
    say` with its place."""
    try:
        return query(*arguments)
    except AuthenticationError:
        raise
    except UnreadableError as error:
        reason = f"the {noun} is unreadable: {error.message}"
        return BulkAnswer(answer=CANNOT_SAY, reason=reason, unreadable=error.with_place)


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


def excludes_by_statistics(file: ParquetFile, row_group: int, question: Question) -> bool:
    """Return whether statistics exclude all values of a question."""
    if by_statistics(file, row_group, question):
        return False
    verdicts = _list_verdicts(file, row_group, question, filters_only=False)
    return all(verdict.is_absent for verdict in verdicts)


def _answer_special(
    file: ParquetFile,
    row_group: int,
    question: Question,
    literal: Literal,
    bounds_of: BoundsOf = bounds,
) -> RowGroupAnswer:
    """Return whether a chunk may hold null, a BOOLEAN, or a value that its column cannot be
    compared with."""
    column = question.column
    meta = file.footer.chunk_meta(row_group, column.index)
    if reason := doubt_of_chunk(file, row_group, column, question.values):
        return RowGroupAnswer(row_group, CANNOT_SAY, reason)
    if literal.is_null:
        return RowGroupAnswer(row_group, *answer_null(file, row_group, column))
    if meta.has_only_nulls:
        return RowGroupAnswer(row_group, ABSENT, _ONLY_NULLS)
    limits = bounds_of(file.footer, row_group, column)
    plain = BOOLEAN_FORMS.get(literal.text.lower())
    if column.physical == "BOOLEAN" and plain is not None and limits is not None:
        key = key_of(column, plain)
        is_inside = limits.low <= key <= limits.high
        return RowGroupAnswer(row_group, MAYBE if is_inside else ABSENT)
    return RowGroupAnswer(row_group, literal.verdict or CANNOT_SAY, literal.note)


def answer_null(file: ParquetFile, row_group: int, column: Column) -> tuple[str, str | None]:
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
    if not meta.is_dictionary_encoded:
        return False
    start, _ = meta.page_range
    dictionary_bytes = (meta.first_data_page or 0) - start
    return 0 < dictionary_bytes <= _SMALL_DICTIONARY


def by_dictionary(
    file: ParquetFile, row_group: int, question: Question, candidates: Candidates
) -> BulkAnswer | None:
    """Return which candidates the chunk's dictionary holds; None if the dictionary does not hold
    all values of the chunk.

    Reads the dictionary page and hashes it; `absent` is certain, as with a filter.
    """
    from sbbf_tool.parquet.plain_pages import PlainChunk

    column = question.column
    meta = file.footer.chunk_meta(row_group, column.index)
    if not meta.is_dictionary_encoded:
        return None
    if doubt_of_chunk(file, row_group, column, question.values):
        return None
    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        pages = file.pages(row_group, column)
        start, _ = meta.page_range
        dictionary_bytes = (meta.first_data_page or start) - start
        file.source.prefetch([(start, dictionary_bytes)])
        chunk = PlainChunk(pages.read, column, pages.meta, pages.ensure_size)
        page = chunk.dictionary()
        if page is None:
            reason = "its dictionary page is very large, or has an unsupported codec"
            return BulkAnswer(answer=CANNOT_SAY, reason=reason)
        normalised = equals.compares_normalised(file.footer, column)
        hashes_of_equals = page.hashes_of_equals(normalised_intervals=normalised)
        entries = {*page.hashes, *hashes_of_equals}
    hashes, owners = question.hashes_in(candidates)
    flags = bytes(map(entries.__contains__, hashes))
    return BulkAnswer(build_bitmap(flags, owners))


def answers_by_statistics(
    file: ParquetFile, row_group: int, question: Question, bounds_of: BoundsOf = bounds
) -> list[RowGroupAnswer]:
    """Return what statistics say of each value, by the bounds of the format or of an engine."""
    candidates = by_statistics(file, row_group, question, bounds_of)
    inside = RowGroupAnswer(row_group, candidates.answer, candidates.reason)
    outside = RowGroupAnswer(row_group, ABSENT, candidates.reason)
    answers = []
    for at in range(len(question)):
        is_inside = question.is_in(candidates, at)
        answers.append(inside if is_inside else outside)
    for at, literal in question.verdicts:
        answers[at] = _answer_special(file, row_group, question, literal, bounds_of)
    return answers


def answers_by(question: Question, row_group: int, answers: BulkAnswer) -> list[RowGroupAnswer]:
    """Return what the filter or the dictionary of a row group says of each value, without regard to
    statistics."""
    others = RowGroupAnswer(row_group, answers.answer, answers.reason)
    maybe = RowGroupAnswer(row_group, MAYBE)
    held = set(positions(answers.values))
    by_value = [maybe if at in held else others for at in range(len(question))]
    for at, literal in question.row.special.items():
        if literal.verdict is not None:
            by_value[at] = RowGroupAnswer(row_group, literal.verdict, literal.note)
    return by_value


def format_bounds(file: ParquetFile, row_group: int, column: Column) -> tuple[str, str] | None:
    """Return min and max in the form in which `probe` accepts values, shortened to fit a table."""
    if bounds(file.footer, row_group, column) is None:
        return None
    stated = stated_bounds(file.footer, row_group, column)
    if stated is None:
        return None
    low, high = (format_short(column, plain, _MAX_CHARACTERS) for plain in stated)
    return low, high


def row_group_bytes(file: ParquetFile, row_group: int) -> int:
    """Return the compressed bytes of the pages of all chunks, except chunks encrypted with their
    own keys, whose sizes are unknown."""
    return sum(meta.bytes for meta in file.footer.chunk_metas(row_group))
