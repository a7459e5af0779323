"""Which row groups may hold which of many values: the one decision for every command, for Python,
Spark and the data source.

Three means exclude values, the cheapest first: min, max and null count select a slice of the sorted
values (`query_statistics`); the filter is queried for this slice; without a usable filter, a
dictionary that holds all values of the chunk and is small is read (`query_row_group`). What a file
contradicts excludes nothing (`doubts`). `partitions` and `missing_column` answer for values that
stand in folders and tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
_NO_BOUNDS = "it has no reliable min and max"
_MAX_CHARACTERS = 40
_SMALL_DICTIONARY = 1 << 20
"""Bytes of a dictionary page, compressed, that is read to exclude values. Writers begin other pages
beyond about as many."""
_NOT_QUERIED = BulkAnswer(answer=MAYBE)


class RowGroupAnswers(NamedTuple):
    """What is known of the values of a question in one row group, by each means that was queried.

    There are two views: of the row group (`answers`, `is_absent`, `decided_by`), and of each value
    (`by_statistics`, `by_dictionary`, `by_filter`).
    """

    question: Question
    row_group: int
    candidates: Candidates
    """The values that statistics leave, for which the other means are queried."""
    verdicts: Mapping[int, RowGroupAnswer]
    """Answer of statistics for each of the question's `verdicts`, which no other means answers, by
    position."""
    doubt: str | None = None
    """Why nothing that the file states of the chunk excludes a value; see `doubts`."""
    filter: BulkAnswer = _NOT_QUERIED
    dictionary: BulkAnswer | None = None
    """None if it was not queried, or does not hold all values of the chunk."""
    data: BulkAnswer | None = None
    """What the values of the chunk leave open; None if they were not read."""

    @property
    def answers(self) -> BulkAnswer:
        """What the means that decides says of the candidates."""
        if self.data is not None:
            return self.data
        if self.dictionary is not None and self.dictionary.answer == ABSENT:
            return self.dictionary
        return self.filter

    @property
    def decided_by(self) -> str:
        if not self.candidates:
            return STATISTICS
        return FILTER if self.answers is self.filter else DICTIONARY

    @property
    def unreadable(self) -> list[str]:
        """Places of the filter and the dictionary if they are unreadable, and the reasons; they
        exclude nothing."""
        means = (self.filter, self.dictionary)
        return [each.unreadable for each in means if each and each.unreadable]

    @property
    def is_undecided(self) -> bool:
        """Whether it may hold values that nothing was queried for, or that what was queried cannot
        exclude."""
        return self.answers.answer != ABSENT and bool(self.candidates)

    @property
    def is_absent(self) -> bool:
        """Whether it holds none of the values."""
        if self.is_undecided or self.answers.values:
            return False
        return all(each.is_absent for each in self.verdicts.values())

    def by_statistics(self) -> list[RowGroupAnswer]:
        """Return what statistics say of each value."""
        inside = RowGroupAnswer(self.row_group, self.candidates.answer, self.candidates.reason)
        outside = RowGroupAnswer(self.row_group, ABSENT, self.candidates.reason)
        by_value = [outside] * len(self.question)
        _, owners = self.question.hashes_in(self.candidates)
        for at in owners:
            by_value[at] = inside
        for at, verdict in self.verdicts.items():
            by_value[at] = verdict
        return by_value

    def by_dictionary(self) -> list[RowGroupAnswer] | None:
        """Return what the dictionary says of each value."""
        return None if self.dictionary is None else self._by_value(self.dictionary)

    def by_filter(self) -> list[RowGroupAnswer]:
        """Return what the filter says of each value."""
        return self._by_value(self.filter)

    def _by_value(self, answer: BulkAnswer) -> list[RowGroupAnswer]:
        others = RowGroupAnswer(self.row_group, answer.answer, answer.reason)
        maybe = RowGroupAnswer(self.row_group, MAYBE)
        by_value = [others] * len(self.question)
        for at in positions(answer.values):
            by_value[at] = maybe
        for at, literal in self.question.row.special.items():
            if literal.verdict is not None:
                by_value[at] = RowGroupAnswer(self.row_group, literal.verdict, literal.note)
        return by_value


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
    begin: Callable[[ParquetFile, int, Question], RowGroupAnswers] = query_statistics
    if filters_only:
        begin = without_statistics
    by_row_group = [begin(file, number, question) for number in row_groups]
    undecided = {each.row_group: each.candidates for each in by_row_group if each.candidates}
    expect_filters(file, question, undecided)
    for each in by_row_group:
        yield query_row_group(file, each, dialect, filters_only=filters_only)


def query_row_group(
    file: ParquetFile,
    known: RowGroupAnswers,
    dialect: Dialect | None = None,
    *,
    filters_only: bool = False,
    every_means: bool = False,
) -> RowGroupAnswers:
    """Add what the filter says of the candidates and, if it excludes none, a dictionary that is
    small. With `every_means`, filter and dictionary are queried whatever is known.

    Raises as `narrow` does; with `every_means`, RefusedError for a page beyond the limit of sizes.
    """
    if known.doubt is not None:
        return known._replace(filter=BulkAnswer(answer=CANNOT_SAY, reason=known.doubt))
    if not known.candidates and not every_means:
        return known
    arguments = (file, known.row_group, known.question, known.candidates)
    answer = query_or_doubt("filter", by_filter, *arguments, dialect)
    dictionary = None
    if every_means:
        dictionary = query_or_doubt("dictionary", by_dictionary, *arguments)
    elif not (answer.answer == ABSENT or answer.values or filters_only):
        with suppress(RefusedError):  # a page beyond the limit of sizes is not needed
            dictionary = query_or_doubt("dictionary", by_dictionary, *arguments, _SMALL_DICTIONARY)
    return known._replace(filter=answer, dictionary=dictionary)


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


def without_statistics(file: ParquetFile, row_group: int, question: Question) -> RowGroupAnswers:
    """Return what is known of a row group before anything is queried."""
    doubt = doubt_of_chunk(file, row_group, question.column, question.values)
    verdicts = {}
    for at, literal in question.verdicts.items():
        verdicts[at] = RowGroupAnswer(row_group, literal.verdict or CANNOT_SAY, literal.note)
    return RowGroupAnswers(question, row_group, question.candidates(), verdicts, doubt)


def query_statistics(
    file: ParquetFile, row_group: int, question: Question, bounds_of: BoundsOf = bounds
) -> RowGroupAnswers:
    """Return what the null count, and min and max of the format or of an engine, say of the values
    in a chunk."""
    column = question.column
    doubt = doubt_of_chunk(file, row_group, column, question.values)
    if doubt is not None:
        candidates = question.candidates(answer=CANNOT_SAY, reason=doubt)
        verdict = RowGroupAnswer(row_group, CANNOT_SAY, doubt)
        verdicts = dict.fromkeys(question.verdicts, verdict)
        return RowGroupAnswers(question, row_group, candidates, verdicts, doubt)
    limits = None
    if file.footer.chunk_meta(row_group, column.index).has_only_nulls:
        candidates = Candidates(range(0), range(0), ABSENT, _ONLY_NULLS)
    else:
        limits = bounds_of(file.footer, row_group, column)
        candidates = question.candidates(limits)
        if limits is None:
            candidates = candidates._replace(answer=CANNOT_SAY, reason=_NO_BOUNDS)
    verdicts = {}
    for at, literal in question.verdicts.items():
        answer, note = _answer_special(file, row_group, column, literal, limits)
        verdicts[at] = RowGroupAnswer(row_group, answer, note)
    return RowGroupAnswers(question, row_group, candidates, verdicts)


def _answer_special(
    file: ParquetFile, row_group: int, column: Column, literal: Literal, limits: Bounds | None
) -> tuple[str, str | None]:
    """Return whether a chunk may hold null, a BOOLEAN, or a value that its column cannot be
    compared with."""
    if literal.is_null:
        return answer_null(file, row_group, column)
    if file.footer.chunk_meta(row_group, column.index).has_only_nulls:
        return ABSENT, _ONLY_NULLS
    plain = BOOLEAN_FORMS.get(literal.text.lower())
    if column.physical == "BOOLEAN" and plain is not None and limits is not None:
        is_inside = limits.low <= key_of(column, plain) <= limits.high
        return MAYBE if is_inside else ABSENT, None
    return literal.verdict or CANNOT_SAY, literal.note


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


def by_dictionary(
    file: ParquetFile,
    row_group: int,
    question: Question,
    candidates: Candidates,
    most_bytes: int | None = None,
) -> BulkAnswer | None:
    """Return which candidates the chunk's dictionary holds; None if the dictionary does not hold
    all values of the chunk, or takes more than `most_bytes`.

    Reads the dictionary page and hashes it; `absent` is certain, as with a filter.
    """
    column = question.column
    meta = file.footer.chunk_meta(row_group, column.index)
    if not meta.is_dictionary_encoded:
        return None
    start, _ = meta.page_range
    dictionary_bytes = (meta.first_data_page or start) - start
    if most_bytes is not None and not 0 < dictionary_bytes <= most_bytes:
        return None
    from sbbf_tool.parquet.plain_pages import PlainChunk

    with file.locate_errors(f"column {column.name}, row group {row_group}"):
        pages = file.pages(row_group, column)
        file.source.prefetch([(start, dictionary_bytes)])
        page = PlainChunk(pages, column).dictionary()
        if page is None:
            reason = "its dictionary page is very large, or has an unsupported codec"
            return BulkAnswer(answer=CANNOT_SAY, reason=reason)
        normalised = equals.compares_normalised(file.footer, column)
        hashes_of_equals = page.hashes_of_equals(normalised_intervals=normalised)
    hashes, owners = question.hashes_in(candidates)
    queried = set(hashes)
    held = queried.intersection(page.hashes).union(queried.intersection(hashes_of_equals))
    flags = bytes(map(held.__contains__, hashes))
    return BulkAnswer(build_bitmap(flags, owners))


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
