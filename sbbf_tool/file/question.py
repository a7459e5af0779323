"""A query of a column's filters: values as the column would hold them, and their hashes."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import islice, starmap
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom import hashing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.file.hash_row import HashRow, HashRowBuilder, ValueParser
from sbbf_tool.file.texts import Texts
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import ABSENT, MAYBE, Literal
from sbbf_tool.parquet.statistics import Bounds, stated_bounds
from sbbf_tool.reports.probe import MANY_VALUES, LongSequence, QueriedValue, UnfitValue

if TYPE_CHECKING:
    from sbbf_tool.bloom.interface import ValueHasher
    from sbbf_tool.parquet.footer import Footer


_GLANCE = 1000
"""Values among which one in another notation is sought."""
_FPP_OF_INDEX = 1e-4


class Candidates(NamedTuple):
    """The hashes of a question whose values statistics do not exclude, and what statistics say of
    these values."""

    ordered: range
    unordered: range
    answer: str = MAYBE
    reason: str | None = None

    def __bool__(self) -> bool:
        return bool(self.ordered or self.unordered)


class HashIndex(Frozen):
    """Hashes in their own order, the position of the value of each, and a filter that holds
    them."""

    hashes: memoryview
    owners: memoryview
    filter: BloomFilter


class _Forms(NamedTuple):
    """The plain bytes by which a column stores a value."""

    by_hash: Mapping[int, bytes]
    rounded: tuple[bytes, ...]


class Question:
    """Values as a column would hold them, and the hashes of the forms of each value."""

    def __init__(
        self,
        column: Column,
        values: Sequence[object],
        row: HashRow,
        query_literals: list[Literal] | None = None,
        unfit: tuple[UnfitValue, ...] = (),
        *,
        is_strict: bool | None = True,
    ) -> None:
        """`unfit` are the first values that the column cannot hold. With `is_strict`, there are no
        other files; with None, there may be, and values that the column cannot hold are in no
        row."""
        self.column = column
        self.values = values
        self.row = row
        self.unfit = unfit
        self.is_strict = is_strict
        self._forms: dict[int, _Forms] = {}
        if query_literals is not None:
            self.literals = query_literals

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def literals(self) -> list[Literal]:
        """All values in the notation of the column."""
        parser = ValueParser(self.column, is_strict=self.is_strict)
        return [parser.parse(position, value) for position, value in enumerate(self.values)]

    @cached_property
    def verdicts(self) -> dict[int, Literal]:
        """The values that no filter decides about, except those that the column cannot hold, by
        position."""
        special = self.row.special.items()
        return {at: literal for at, literal in special if literal.verdict not in (None, ABSENT)}

    @cached_property
    def index(self) -> HashIndex:
        """The hashes by which stored values are looked up among these."""
        import numpy as np

        ndv = max(len(self), 1)
        bloom = BloomFilter.sized_for(ndv, _FPP_OF_INDEX)
        bloom.insert_hashes(self.row.hashes)
        hashes = np.asarray(self.row.hashes)
        order = np.argsort(hashes, kind="stable")
        owners = order
        if not isinstance(self.row.owners, range):
            owners = np.asarray(self.row.owners)[order]
        owners = owners.astype(np.uint32)
        ordered_hashes = array("Q", hashes[order].tobytes())
        ordered_owners = array("I", owners.tobytes())
        return HashIndex(memoryview(ordered_hashes), memoryview(ordered_owners), bloom)

    def forms(self, position: int) -> Mapping[int, bytes]:
        """Return the plain bytes by which the column stores a value, by their hashes."""
        return self._forms_of(position).by_hash

    def is_rounded(self, position: int, form: bytes) -> bool:
        """Return whether a form is not the value, but what it is in single precision."""
        return form in self._forms_of(position).rounded

    def _forms_of(self, position: int) -> _Forms:
        forms = self._forms.get(position)
        if forms is not None:
            return forms
        literal = self.row.special.get(position)
        if literal is None:
            parser = ValueParser(self.column, is_strict=self.is_strict)
            literal = parser.parse(position, self.values[position])
        by_hash = {hashing.hash_value(form): form for form in literal.forms}
        forms = _Forms(by_hash, literal.rounded)
        self._forms[position] = forms
        return forms

    def candidates(
        self, bounds: Bounds | None = None, *, answer: str = MAYBE, reason: str | None = None
    ) -> Candidates:
        """Return the values from `bounds.low` to `bounds.high`, and those without an order; all
        values without bounds."""
        keys = self.row.keys
        ordered = range(len(keys))
        if bounds is not None:
            first = bisect_left(keys, bounds.low)
            end = bisect_right(keys, bounds.high)
            ordered = range(first, end)
        unordered = range(len(keys), len(self.row.hashes))
        return Candidates(ordered, unordered, answer, reason)

    def hashes_in(self, candidates: Candidates) -> tuple[memoryview, Sequence[int]]:
        """Return the hashes of the candidates, and the position of the value of each."""
        hashes = self.row.hashes
        owners = self.row.owners
        ordered = candidates.ordered
        unordered = candidates.unordered
        if not unordered or ordered.stop == unordered.start:
            end = ordered.stop + len(unordered)
            both = slice(ordered.start, end)
            return memoryview(hashes)[both], owners[both]
        first = slice(ordered.start, ordered.stop)
        last = slice(unordered.start, unordered.stop)
        hashes_of_both = hashes[first] + hashes[last]
        owners_of_both = [*owners[first], *owners[last]]
        return memoryview(hashes_of_both), owners_of_both

    @cached_property
    def queried(self) -> Sequence[QueriedValue]:
        """How each value is reported."""
        special = self.row.special

        def rows() -> Iterator[tuple[str, str | None, str | None]]:
            for at in range(len(self)):
                literal = special.get(at)
                if literal is None:
                    yield self.text(at), None, None
                else:
                    yield literal.text, literal.verdict, literal.note

        if len(self) <= MANY_VALUES:
            return tuple(starmap(QueriedValue, rows()))
        return LongSequence(QueriedValue, rows, len(self), is_sent=False)

    def text(self, position: int) -> str:
        """Return how a value is reported."""
        literal = self.row.special.get(position)
        if literal is not None:
            return literal.text
        if isinstance(self.values, Texts):
            return self.values.text(position)
        value = self.values[position]
        if isinstance(value, str):
            return str(value)  # without its quotes
        return self.literals[position].text

    @cached_property
    def _other_meaning(self) -> tuple[str, str] | None:
        """The first value that may be meant otherwise than it was read, and words about it."""
        for value in islice(self.values, _GLANCE):
            if not isinstance(value, str):
                continue
            words = literals.other_meaning(self.column, value)
            if words:
                return value, words
        return None

    @property
    def may_have_other_meaning(self) -> bool:
        """Whether a file may give reason to a warning; see `warnings`."""
        return self._other_meaning is not None

    def warnings(self, footer: Footer) -> tuple[str, ...]:
        """Return words about the first value that may be written in another notation than it was
        read in.

        There are none if a bound of the column in the file is in the notation of the value.
        """
        stated = None
        if self.may_have_other_meaning and footer.num_row_groups:
            stated = stated_bounds(footer, 0, self.column)
        return self.warnings_beside(stated or ())

    def warnings_beside(self, bounds: Iterable[bytes]) -> tuple[str, ...]:
        """Return the `warnings` for a file that states these bounds in its first row group."""
        if self._other_meaning is None:
            return ()
        text, words = self._other_meaning
        plain = text.encode("utf-8", "surrogateescape")
        if any(literals.are_alike(bound, plain) for bound in bounds):
            return ()
        return (words,)

    @cached_property
    def has_buffers(self) -> bool:
        """Whether a value is in memory that may change."""
        if isinstance(self.values, Texts):
            return False
        return any(isinstance(value, bytearray | memoryview) for value in self.values)

    def is_about(self, values: Sequence[object]) -> bool:
        """Return whether the question is about the same object with values, unless these may have
        changed since."""
        return self.values is values and not self.has_buffers

    def of(self, column: Column) -> Question:
        """Return the same question for a column that stores its values in the same form."""
        question = copy(self)
        question.column = column
        return question

    def rehash(self, hasher: ValueHasher) -> Question:
        """Return the same question for filters with another hash function."""
        return question_of(self.column, self.values, hasher, is_strict=self.is_strict)


def question_of(
    column: Column,
    values: Sequence[object],
    hasher: ValueHasher = hashing,
    *,
    is_strict: bool | None = True,
) -> Question:
    """Build the question for these values of a column: see `probe`.

    The column may be unable to hold some of the values, which are then `unfit`: columns of the same
    name in other files may hold them. With `is_strict`, raises UsageError for the first of them if
    it can hold none; with None, they are absent whatever readers convert.
    """
    parser = ValueParser(column, is_strict=is_strict)
    builder = HashRowBuilder(parser, hasher)
    query_literals = None
    if isinstance(values, Texts):
        builder.add_texts(values)
        num_nulls = values.nulls
    else:
        query_literals = [parser.parse(position, value) for position, value in enumerate(values)]
        for position, literal in enumerate(query_literals):
            builder.add(position, values[position], literal)
        num_nulls = sum(value is None for value in values)
    holds_none = parser.num_unfit == len(values) - num_nulls
    if parser.first_error is not None and is_strict and holds_none:
        raise parser.first_error
    row = builder.build()
    unfit = tuple(parser.unfit)
    return Question(column, values, row, query_literals, unfit, is_strict=is_strict)
