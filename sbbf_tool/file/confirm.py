"""Which of the values that a row group may hold are there: its column is read, and values are compared by their plain bytes.

The hashes of the pages exclude most chunks without decoding; the others are decoded with the row of each value.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.bitmaps import positions
from sbbf_tool.file.chunk_hashes import StoredValues
from sbbf_tool.parquet.literals import BOOLEAN_FORMS
from sbbf_tool.parquet.notation import MAYBE

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.file.pruning import RowGroupAnswers
    from sbbf_tool.file.question import Question


_FPP = 1e-6


class ValueRows(NamedTuple):
    """A value in a row group."""

    position: int
    """Position among the values of the question."""
    rows: array[int]
    """Numbers in the row group, from 0, of the rows that have the value, ascending."""


def can_confirm(question: Question, position: int) -> bool:
    """Return whether reading the column shows where a value is that no filter can judge."""
    literal = question.row.special[position]
    if literal.is_null:
        return not question.column.max_repetition
    return literal.verdict == MAYBE or (literal.text.lower() in BOOLEAN_FORMS and question.column.physical == "BOOLEAN")


class _HashIndex:
    """Hashes to look up, and the position of the value of each. A filter of them passes one in a million others."""

    def __init__(self, hashes: array[int] | memoryview, owners: Sequence[int]) -> None:
        self.hashes, self.owners = hashes, owners
        self.filter = BloomFilter.sized_for(max(len(hashes), 1), _FPP)
        self.filter.insert_hashes(hashes)


def find_values(file: ParquetFile, question: Question, answers: RowGroupAnswers) -> list[ValueRows]:
    """Find the values that a row group may hold in its pages. Raises UnreadableError and RefusedError if its pages cannot be read."""
    if answers.is_undecided:
        index = _HashIndex(*question.hashes_in(answers.candidates))
    else:
        forms = [(h, position) for position in positions(answers.answers.values) for h in question.forms(position)]
        index = _HashIndex(array("Q", (h for h, _ in forms)), array("Q", (position for _, position in forms)))
    verdicts = zip(question.verdicts, answers.verdicts, strict=True)
    alone = [at for (at, _), verdict in verdicts if not verdict.is_absent and can_confirm(question, at)]
    row_group = answers.row_group
    values = StoredValues(file, (row_group, question.column.index))
    if not alone and not any(1 in index.filter.check_hashes(hashes) for hashes in values.hashes()):
        return []
    found: dict[int, array[int]] = {}
    for position, row in _search(file, question, row_group, index, alone):
        rows = found.setdefault(position, array("Q"))
        if not rows or rows[-1] != row:  # a list may hold the value more than once
            rows.append(row)
    return [ValueRows(position, rows) for position, rows in sorted(found.items())]


def _search(file: ParquetFile, question: Question, row_group: int, index: _HashIndex, alone: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the position of each value, and each row that has it."""
    import numpy as np

    from sbbf_tool.parquet.values import read_chunk

    special = {at: question.row.special[at] for at in alone}
    nulls = [at for at, literal in special.items() if literal.is_null]
    nans = [at for at, literal in special.items() if literal.verdict == MAYBE]
    booleans = [(BOOLEAN_FORMS[special[at].text.lower()], at) for at in alone if at not in nulls and at not in nans]
    order = np.argsort(np.asarray(index.hashes, np.uint64), kind="stable")
    hashes_sought, owners = np.asarray(index.hashes, np.uint64)[order], np.asarray(index.owners)[order]
    has_value = np.zeros(file.footer.num_rows(row_group) or 0, np.bool_) if nulls else None
    pages = file.pages(row_group, question.column)
    for values in read_chunk(pages.open_arrow, file.footer, row_group, question.column, pages, with_rows=True):
        rows = values.rows
        assert rows is not None
        if has_value is not None:
            has_value[rows] = True
        if nans:
            for row in rows[values.are_nan()].tolist():
                yield from ((at, row) for at in nans)
        hashes = values.hashes()
        places = np.flatnonzero(np.frombuffer(index.filter.check_hashes(hashes), np.bool_)) if len(owners) else np.arange(0)
        found = np.frombuffer(hashes, np.uint64)[places]
        starts, ends = (np.searchsorted(hashes_sought, found, side).tolist() for side in ("left", "right"))
        for place, h, start, end in zip(places.tolist(), found.tolist(), starts, ends, strict=True):
            if start < end:
                plain, row = values[place], int(rows[place])
                yield from ((at, row) for at in owners[start:end].tolist() if question.forms(at)[h] == plain)
        for place in range(len(values)) if booleans else ():
            yield from ((at, int(rows[place])) for form, at in booleans if values[place] == form)
    if has_value is not None:
        for row in np.flatnonzero(~has_value).tolist():
            yield from ((at, row) for at in nulls)
