"""Which of the values that a row group may hold are there: its column is read, and values are
compared by their plain bytes.

Of dictionary and PLAIN pages, hashes select the values to compare, and levels and indices give
their rows. pyarrow decodes other pages.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.parquet.literals import BOOLEAN_FORMS
from sbbf_tool.parquet.notation import MAYBE
from sbbf_tool.parquet.plain_pages import NotPlainError, PlainChunk, PlainPage, may_be_plain

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
    return literal.verdict == MAYBE or (
        literal.text.lower() in BOOLEAN_FORMS and question.column.physical == "BOOLEAN"
    )


def find_values(file: ParquetFile, question: Question, answers: RowGroupAnswers) -> list[ValueRows]:
    """Find the values that a row group may hold in its pages. Raises UnreadableError and
    RefusedError if its pages cannot be read."""
    verdicts = zip(question.verdicts, answers.verdicts, strict=True)
    alone = [
        at for (at, _), verdict in verdicts if not verdict.is_absent and can_confirm(question, at)
    ]
    if not alone:
        with suppress(NotPlainError):
            return _collect(_search_pages(file, question, answers.row_group))
    return _collect(_search_values(file, question, answers.row_group, alone))


def drop_deleted(
    found: Mapping[int, list[ValueRows]],
    first_rows: Sequence[int],
    deletes: Iterable[Deletes],
    unreadable: list[str],
) -> tuple[dict[int, list[ValueRows]], str | None]:
    """Leave out the rows that a table has deleted. `first_rows` has the number in the file of the
    first row of each row group.

    Also return why other rows may be deleted too; None if they are not. Deletes that cannot be read
    are added to `unreadable`.
    """
    numbers = [
        first_rows[number] + np.asarray(value.rows, np.int64)
        for number, values in found.items()
        for value in values
    ]
    rows, reason = np.unique(np.concatenate([*numbers, np.zeros(0, np.int64)])), None
    for each in deletes:
        if not len(rows):
            break
        try:
            rows = rows[~each.among(rows)]
        except UnreadableError as error:
            unreadable.append(str(error))
            reason = f"the deleted rows are unreadable: {error.message}"
        except RefusedError as error:
            reason = error.message

    def keep(row_group: int, value: ValueRows) -> ValueRows:
        numbers = np.asarray(value.rows, np.int64)
        return value._replace(
            rows=array("Q", numbers[np.isin(first_rows[row_group] + numbers, rows)].tobytes())
        )

    kept = {
        number: [new for value in values if (new := keep(number, value)).rows]
        for number, values in found.items()
    }
    return kept, reason if len(rows) else None


def _collect(found: Iterator[tuple[Match, NDArray[np.int64]]]) -> list[ValueRows]:
    by_match: dict[Match, array[int]] = {}
    for match, rows in found:
        if len(rows):
            by_match.setdefault(match, array("Q")).frombytes(rows.astype(np.uint64).tobytes())
    for match, several in by_match.items():
        # A value may have several forms, and a list may hold one more than once.
        if len(several) > 1:
            by_match[match] = array("Q", np.unique(np.frombuffer(several, np.uint64)).tobytes())
    return [ValueRows(*each) for each in sorted(by_match.items())]


def _group(
    keys: NDArray[Any], places: NDArray[np.int64]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield each key, and the places that have it."""
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(places[order], starts[1:]), strict=False)


def _match(
    question: Question, hashes: memoryview, values: PlainPage | PlainValues
) -> Iterator[tuple[Match, NDArray[np.int64]]]:
    """Yield what is matched among these values, and its places."""
    flags = question.index.filter.check_hashes(hashes)
    if 1 not in flags:
        return
    places = np.flatnonzero(np.frombuffer(flags, np.bool_))
    for h, group in _group(np.frombuffer(hashes, np.uint64)[places], places):
        for at in question.index.owners_of(h):
            form = question.forms(at)[h]
            equal = group[values.are_equal(group, form)]
            if len(equal):
                yield Match(at, question.is_rounded(at, form)), equal


def _search_pages(
    file: ParquetFile, question: Question, row_group: int
) -> Iterator[tuple[Match, NDArray[np.int64]]]:
    """Yield what is matched, and rows that match, by levels and indices alone. Raises NotPlainError
    if that does not do."""
    column, pages = question.column, file.pages(row_group, question.column)
    with file.locate_errors(lambda: f"column {column.name}, row group {row_group}"):
        file.footer.ensure_type(row_group, column)
        if not may_be_plain(column, pages.meta) or (
            not column.max_repetition and pages.meta.num_values != file.footer.num_rows(row_group)
        ):
            raise NotPlainError
        meta = file.footer.chunk_meta(row_group, column.index)
        start, end = meta.page_range
        first = meta.first_data_page if meta.is_dictionary_encoded else None
        file.source.prefetch([(start, (first or end) - start)])
        in_dictionary: dict[int, list[Match]] = {}
        for page in PlainChunk(pages.read, column, pages.meta, pages.ensure_size).pages():
            if isinstance(page, PlainPage):
                found = list(_match(question, page.hashes, page))
                if found and column.max_repetition:
                    raise NotPlainError
                if page.rows is not None:
                    rows = page.rows() if found else np.arange(0)
                    yield from ((match, rows[places]) for match, places in found)
                    continue
                for match, entries in found:
                    for entry in entries.tolist():
                        in_dictionary.setdefault(entry, []).append(match)
                is_sought = np.zeros(len(page), np.bool_)
                is_sought[list(in_dictionary)] = True
                if first is not None:
                    if not found:
                        return
                    file.source.prefetch([(first, end - first)])
            elif in_dictionary:
                rows_of, indices = page()
                places = np.flatnonzero(is_sought[indices])
                rows = rows_of() if len(places) else places
                yield from (
                    (match, rows[group])
                    for entry, group in _group(indices[places], places)
                    for match in in_dictionary[entry]
                )


def _search_values(
    file: ParquetFile, question: Question, row_group: int, alone: list[int]
) -> Iterator[tuple[Match, NDArray[np.int64]]]:
    """Yield what is matched, also of the values that are `alone`, and rows that match; pyarrow
    decodes the pages."""
    from sbbf_tool.parquet.values import read_chunk

    special = {at: question.row.special[at] for at in alone}
    nulls = [at for at, literal in special.items() if literal.is_null]
    nans = [at for at, literal in special.items() if literal.verdict == MAYBE]
    booleans = [
        (BOOLEAN_FORMS[special[at].text.lower()], at)
        for at in alone
        if at not in nulls and at not in nans
    ]
    is_null = np.ones(file.footer.num_rows(row_group) or 0 if nulls else 0, np.bool_)
    pages = file.pages(row_group, question.column)
    for values in read_chunk(file.footer, row_group, question.column, pages, with_rows=True):
        rows = values.rows
        assert rows is not None
        if nulls:
            is_null[rows] = False
        if nans:
            yield from ((Match(at), rows[values.are_nan()]) for at in nans)
        for match, places in _match(question, values.hashes(), values):
            yield match, rows[places]
        yield from (
            (Match(at), rows[values.are_equal(np.arange(len(values)), form)])
            for form, at in booleans
        )
    yield from ((Match(at), np.flatnonzero(is_null)) for at in nulls)
