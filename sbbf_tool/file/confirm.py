"""Which of the values that a row group may hold are there: its column is read, and values are
compared by their plain bytes.

Of dictionary and PLAIN pages, hashes select the values to compare, and levels and indices give
their rows. pyarrow decodes other pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise, starmap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.parquet.comparison import Pairs
from sbbf_tool.parquet.idl.ttypes import PageType
from sbbf_tool.parquet.literals import BOOLEAN_FORMS
from sbbf_tool.parquet.notation import MAYBE
from sbbf_tool.parquet.plain_page import PlainPage
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk, may_be_plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.file.pruning import RowGroupAnswers
    from sbbf_tool.file.question import Question
    from sbbf_tool.file.table_file import Deletes
    from sbbf_tool.parquet.values import PlainValues


ROUNDED = "what is stored is the value in single precision, which may stand for it"
"""Why reading does not show whether rows have a value."""


class Match(NamedTuple):
    """What a stored value equals."""

    position: int
    """Position among the values of the question."""
    is_rounded: bool = False
    """Whether it does not equal the value, but what the value is in single precision."""


class ValueRows(NamedTuple):
    """A value in a row group."""

    match: Match
    rows: array[int]
    """Numbers in the row group, from 0, of the rows that match, ascending."""


def can_confirm(question: Question, position: int) -> bool:
    """Return whether reading the column shows where a value is that no filter can judge."""
    literal = question.row.special[position]
    if literal.is_null:
        return not question.column.max_repetition
    if literal.verdict == MAYBE:
        return True
    if question.column.physical != "BOOLEAN":
        return False
    return literal.text.lower() in BOOLEAN_FORMS


def find_values(file: ParquetFile, question: Question, answers: RowGroupAnswers) -> list[ValueRows]:
    """Find the values that a row group may hold in its pages. Raises UnreadableError and
    RefusedError if its pages cannot be read."""
    alone = []
    for at, verdict in answers.verdicts.items():
        if not verdict.is_absent and can_confirm(question, at):
            alone.append(at)
    if not alone:
        with suppress(NotPlainError):
            return _collect(_search_pages(file, question, answers.row_group))
    matches = _search_values(file, question, answers.row_group, alone)
    return _collect(matches)


class RemainingRows(NamedTuple):
    """What is left of the rows that have values."""

    by_row_group: dict[int, list[ValueRows]]
    doubt: str | None
    """Why some of them may be deleted too; None if they are not."""
    unreadable: list[str]
    """Deletes that cannot be read: place and reason."""


def drop_deleted(
    by_row_group: Mapping[int, list[ValueRows]],
    first_rows: Sequence[int],
    deletes: Iterable[Deletes],
) -> RemainingRows:
    """Leave out the rows that a table has deleted. `first_rows` has the number in the file of the
    first row of each row group."""
    numbers = [np.zeros(0, np.int64)]
    for row_group, values in by_row_group.items():
        for value in values:
            rows_of_value = np.asarray(value.rows, np.int64)
            numbers.append(first_rows[row_group] + rows_of_value)
    rows = np.unique(np.concatenate(numbers))
    doubt = None
    unreadable = []
    for each in deletes:
        if not len(rows):
            break
        try:
            rows = rows[~each.among(rows)]
        except UnreadableError as error:
            unreadable.append(str(error))
            doubt = f"the deleted rows are unreadable: {error.message}"
        except RefusedError as error:
            doubt = error.message
    if not len(rows):
        doubt = None
    remaining = {}
    for row_group, values in by_row_group.items():
        rows_of_group = rows - first_rows[row_group]
        remaining[row_group] = keep_rows(values, partial(np.isin, test_elements=rows_of_group))
    return RemainingRows(remaining, doubt, unreadable)


def keep_rows(
    values: Iterable[ValueRows], are_kept: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
) -> list[ValueRows]:
    """Keep the rows that a function marks, and the values that have some."""
    kept = []
    for match, rows in values:
        numbers = np.asarray(rows, np.int64)
        numbers = numbers[are_kept(numbers)]
        if len(numbers):
            kept_rows = array("Q", numbers.tobytes())
            kept.append(ValueRows(match, kept_rows))
    return kept


class _Matches(NamedTuple):
    """Pairs of a match and of a place or a row that has it."""

    codes: NDArray[np.int64]
    """Each match as a number, see `_decode`."""
    places: NDArray[np.int64]

    def __bool__(self) -> bool:
        return len(self.places) > 0

    def at(self, rows: NDArray[np.int64]) -> _Matches:
        """Return these matches with the rows of their places."""
        return _Matches(self.codes, rows[self.places])


def _encode(positions: Any, is_rounded: Any) -> Any:
    """Return matches as numbers: twice the position, and 1 more for what is rounded."""
    return 2 * positions + is_rounded


def _decode(code: int) -> Match:
    return Match(code // 2, bool(code % 2))


def _collect(found: Iterator[_Matches]) -> list[ValueRows]:
    by_match: dict[Match, array[int]] = {}
    for matches in found:
        for match, rows in _group(matches):
            several = by_match.setdefault(match, array("Q"))
            several.frombytes(rows.tobytes())
    for match, several in by_match.items():
        # A value may have several forms, and a list may hold one more than once.
        if len(several) > 1:
            numbers = np.frombuffer(several, np.uint64)
            by_match[match] = array("Q", np.unique(numbers).tobytes())
    return list(starmap(ValueRows, sorted(by_match.items())))


def _group(matches: _Matches) -> Iterator[tuple[Match, NDArray[np.uint64]]]:
    """Yield each match, and its rows."""
    order = np.argsort(matches.codes, kind="stable")
    codes = matches.codes[order]
    rows = matches.places[order].astype(np.uint64)
    changes = np.diff(codes, prepend=-1)
    starts = np.flatnonzero(changes).tolist()
    for start, end in pairwise([*starts, len(rows)]):
        match = _decode(int(codes[start]))
        yield match, rows[start:end]


def _join(keys: NDArray[Any], values: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find each pair of a key and a value that are equal: return their places among the keys, which
    are ascending and may repeat, and among the values."""
    first = np.searchsorted(keys, values, "left")
    counts = np.searchsorted(keys, values, "right") - first
    places = np.arange(len(values))
    of_values = np.repeat(places, counts)
    num_before = np.cumsum(counts) - counts
    offsets = np.repeat(first - num_before, counts)
    of_keys = np.arange(len(of_values)) + offsets
    return of_keys, of_values


def _match(question: Question, hashes: memoryview, values: PlainPage | PlainValues) -> _Matches:
    """Find the values that are among these, and their places. All keys are compared at once."""
    index = question.index
    flags = index.filter.check_hashes(hashes)
    places = np.flatnonzero(np.frombuffer(flags, np.bool_))
    hashes_of_keys = np.asarray(index.hashes)
    hashes_of_places = np.frombuffer(hashes, np.uint64)[places]
    keys, which = _join(hashes_of_keys, hashes_of_places)
    places = places[which]
    if not len(places):
        return _Matches(places, places)
    distinct_keys, numbers = np.unique(keys, return_inverse=True)
    owners = np.asarray(index.owners)[distinct_keys]
    owners = owners.astype(np.int64)
    forms = []
    is_rounded = np.zeros(len(owners), np.bool_)
    distinct_hashes = hashes_of_keys[distinct_keys]
    owned_hashes = zip(owners.tolist(), distinct_hashes.tolist(), strict=True)
    for at, (owner, h) in enumerate(owned_hashes):
        forms_by_hash = question.forms(owner)
        form = forms_by_hash[h]
        forms.append(form)
        is_rounded[at] = question.is_rounded(owner, form)
    codes = _encode(owners, is_rounded)[numbers]
    are_equal = values.are_equal(Pairs(places, forms, numbers))
    return _Matches(codes[are_equal], places[are_equal])


class _Entries:
    """The entries of a dictionary that are values of the question."""

    def __init__(self, found: _Matches, num_entries: int) -> None:
        order = np.argsort(found.places, kind="stable")
        self._codes = found.codes[order]
        self._entries = found.places[order]
        self._are_sought = np.zeros(num_entries, np.bool_)
        self._are_sought[self._entries] = True

    def __bool__(self) -> bool:
        return bool(len(self._entries))

    def match(self, indices: NDArray[np.uint32]) -> _Matches:
        """Find the values among those that refer to the dictionary, and their places."""
        places = np.flatnonzero(self._are_sought[indices])
        entries, which = _join(self._entries, indices[places])
        return _Matches(self._codes[entries], places[which])


def _search_pages(file: ParquetFile, question: Question, row_group: int) -> Iterator[_Matches]:
    """Yield values, and rows that have them, by levels and indices alone. Raises NotPlainError if
    that does not do."""
    column = question.column
    pages = file.pages(row_group, column)
    with file.locate_errors(lambda: f"column {column.name}, row group {row_group}"):
        file.footer.ensure_type(row_group, column)
        if not may_be_plain(column, pages.meta):
            raise NotPlainError
        num_rows = file.footer.num_rows(row_group)
        if not column.max_repetition and pages.meta.num_values != num_rows:
            raise NotPlainError
        meta = file.footer.chunk_meta(row_group, column.index)
        start, end = meta.page_range
        # Where all values are in a dictionary, it may show that no other page is needed.
        data_start = meta.first_data_page if meta.is_dictionary_encoded else None
        first_bytes = (data_start or end) - start
        file.source.prefetch([(start, first_bytes)])
        entries: _Entries | None = None
        for page in PlainChunk(pages, column).pages():
            if not isinstance(page, PlainPage):
                if entries:
                    rows_of, indices = page()
                    matches = entries.match(indices)
                    if matches:
                        yield matches.at(rows_of())
                continue
            matches = _match(question, page.hashes, page)
            if matches and column.max_repetition:
                raise NotPlainError
            if page.page_type != PageType.DICTIONARY_PAGE:
                if matches and page.rows is not None:
                    yield matches.at(page.rows())
                continue
            entries = _Entries(matches, len(page))
            if data_start is not None:
                if not matches:
                    return
                file.source.prefetch([(data_start, end - data_start)])


def _search_values(
    file: ParquetFile, question: Question, row_group: int, alone: list[int]
) -> Iterator[_Matches]:
    """Yield values, also those that are `alone`, and rows that have them; pyarrow decodes the
    pages."""
    nulls = []
    nans = []
    booleans = {}
    for at in alone:
        literal = question.row.special[at]
        if literal.is_null:
            nulls.append(at)
        elif literal.verdict == MAYBE:
            nans.append(at)
        else:
            booleans[at] = BOOLEAN_FORMS[literal.text.lower()]
    num_flags = 0
    if nulls:
        num_flags = file.footer.num_rows(row_group) or 0
    is_null = np.ones(num_flags, np.bool_)
    for values in file.values(row_group, question.column, with_rows=True):
        rows = values.rows
        assert rows is not None
        if nulls:
            is_null[rows] = False
        if nans:
            rows_of_nan = rows[values.are_nan()]
            for at in nans:
                yield _of_one(at, rows_of_nan)
        matches = _match(question, values.hashes(), values)
        yield matches.at(rows)
        for at, form in booleans.items():
            pairs = Pairs.of_all(len(values), form)
            are_equal = values.are_equal(pairs)
            yield _of_one(at, rows[are_equal])
    rows_of_null = np.flatnonzero(is_null)
    for at in nulls:
        yield _of_one(at, rows_of_null)


def _of_one(position: int, rows: NDArray[np.int64]) -> _Matches:
    code = _encode(position, False)
    return _Matches(np.full(len(rows), code), rows)
