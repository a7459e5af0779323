"""A query of a column's filters: values as the column would hold them, and their hashes.

Many values are hashed in bulk, without a `Literal` for each: integers are parsed a run at a time,
and text is hashed where it lies. A value that the notation of the column treats specially, such as
null or `0x2a`, is parsed alone; so is each value of a column of another type.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import accumulate, islice, pairwise, starmap
from operator import le
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from sbbf_tool.arguments import as_values
from sbbf_tool.bloom import hashing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import literals, table_types
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import ABSENT, MAYBE, Literal, parse_integers, width_of
from sbbf_tool.parquet.statistics import Bounds, key_of, stated_bounds
from sbbf_tool.reports.probe import MANY_VALUES, LongSequence, QueriedValue, UnfitValue

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from sbbf_tool.bloom.interface import ValueHasher
    from sbbf_tool.parquet.footer import Footer


_RUN = 1024
"""Values that are parsed together; if one of them is no integer, its run is halved until it is
alone."""
_GLANCE = 1000
"""Values among which one in another notation is sought."""
_MANY_NUMBERS = 1 << 14
"""Numbers for which it pays to import numpy."""
_FPP_OF_INDEX = 1e-4
_HEXADECIMAL = (b"0x", b"0X")


class HashRow(Frozen):
    """The hashes of all values in one row, in the order in which the column compares the values,
    and then those of values without order."""

    hashes: array[int]
    owners: Sequence[int]
    """Position of the value of each hash; a range if the hashes are in the order of the values that
    have one hash each."""
    keys: Sequence[Any]
    """Keys of the values that have an order, ascending; they compare with `statistics.Bounds`."""
    special: dict[int, Literal]
    """The values that need no filter, or about which there is a note, or that are reported in other
    words, by position."""


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
    ) -> None:
        self.column = column
        self.values = values
        self.row = row
        self.unfit: tuple[UnfitValue, ...] = ()
        """The first values that the column cannot hold."""
        self.is_strict: bool | None = True
        """Whether there are no other files; None if there may be, and values that the column cannot
        hold are in no row."""
        self._forms: dict[int, _Forms] = {}
        if query_literals is not None:
            self.literals = query_literals

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def literals(self) -> list[Literal]:
        """All values in the notation of the column."""
        row = _Row(hashing, is_strict=self.is_strict)
        return [
            row.parse(self.column, position, value) for position, value in enumerate(self.values)
        ]

    @cached_property
    def verdicts(self) -> list[tuple[int, Literal]]:
        """The values that no filter decides about, except those that the column cannot hold, each
        with its position."""
        return [
            (at, each)
            for at, each in self.row.special.items()
            if each.verdict not in (None, ABSENT)
        ]

    @cached_property
    def _places(self) -> list[list[int]]:
        places: list[list[int]] = [[] for _ in self.values]
        for place, owner in enumerate(self.row.owners):
            places[owner].append(place)
        return places

    @cached_property
    def index(self) -> HashIndex:
        """The hashes by which stored values are looked up among these."""
        import numpy as np

        bloom = BloomFilter.sized_for(max(len(self), 1), _FPP_OF_INDEX)
        bloom.insert_hashes(self.row.hashes)
        order = np.argsort(np.asarray(self.row.hashes), kind="stable")
        owners = order if isinstance(self.row.owners, range) else np.asarray(self.row.owners)[order]
        hashes = memoryview(array("Q", np.asarray(self.row.hashes)[order].tobytes()))
        return HashIndex(hashes, memoryview(array("I", owners.astype(np.uint32).tobytes())), bloom)

    def forms(self, position: int) -> Mapping[int, bytes]:
        """Return the plain bytes by which the column stores a value, by their hashes."""
        return self._forms_of(position).by_hash

    def is_rounded(self, position: int, form: bytes) -> bool:
        """Return whether a form is not the value, but what it is in single precision."""
        return form in self._forms_of(position).rounded

    def _forms_of(self, position: int) -> _Forms:
        forms = self._forms.get(position)
        if forms is None:
            row = _Row(hashing, is_strict=self.is_strict)
            literal = self.row.special.get(position) or row.parse(
                self.column, position, self.values[position]
            )
            by_hash = {hashing.hash_value(form): form for form in literal.forms}
            forms = self._forms[position] = _Forms(by_hash, literal.rounded)
        return forms

    def is_in(self, candidates: Candidates, position: int) -> bool:
        """Return whether a form of a value is among the candidates."""
        return any(
            place in candidates.ordered or place in candidates.unordered
            for place in self._places[position]
        )

    def candidates(
        self, bounds: Bounds | None = None, *, answer: str = MAYBE, reason: str | None = None
    ) -> Candidates:
        """Return the values from `bounds.low` to `bounds.high`, and those without an order; all
        values without bounds."""
        keys = self.row.keys
        ordered = (
            range(len(keys))
            if bounds is None
            else range(bisect_left(keys, bounds.low), bisect_right(keys, bounds.high))
        )
        return Candidates(ordered, range(len(keys), len(self.row.hashes)), answer, reason)

    def hashes_in(self, candidates: Candidates) -> tuple[memoryview, Sequence[int]]:
        """Return the hashes of the candidates, and the position of the value of each."""
        hashes, owners = memoryview(self.row.hashes), self.row.owners
        if not candidates.unordered or candidates.ordered.stop == candidates.unordered.start:
            both = slice(
                candidates.ordered.start, candidates.ordered.stop + len(candidates.unordered)
            )
            return hashes[both], owners[both]
        ordered, others = (
            slice(each.start, each.stop) for each in (candidates.ordered, candidates.unordered)
        )
        return memoryview(self.row.hashes[ordered] + self.row.hashes[others]), [
            *owners[ordered],
            *owners[others],
        ]

    @cached_property
    def queried(self) -> Sequence[QueriedValue]:
        """How each value is reported."""
        special = self.row.special

        def rows() -> Iterator[tuple[str, str | None, str | None]]:
            for at in range(len(self)):
                literal = special.get(at)
                yield (
                    (self.text(at), None, None)
                    if literal is None
                    else (literal.text, literal.verdict, literal.note)
                )

        is_sent = len(self) <= MANY_VALUES
        return (
            tuple(starmap(QueriedValue, rows()))
            if is_sent
            else LongSequence(QueriedValue, rows, len(self), is_sent=False)
        )

    def text(self, position: int) -> str:
        """Return how a value is reported."""
        literal = self.row.special.get(position)
        if literal is not None:
            return literal.text
        value = (
            self.values.text(position) if isinstance(self.values, Texts) else self.values[position]
        )
        return value if isinstance(value, str) else self.literals[position].text

    @cached_property
    def _other_meaning(self) -> tuple[str, str] | None:
        texts = (value for value in islice(self.values, _GLANCE) if isinstance(value, str))
        return next(
            (
                (text, words)
                for text in texts
                if (words := literals.other_meaning(self.column, text))
            ),
            None,
        )

    def warnings(self, footer: Footer) -> tuple[str, ...]:
        """Return words about the first value that may be written in another notation than it was
        read in.

        There are none if a bound of the column in the file is in the notation of the value.
        """
        if self._other_meaning is None:
            return ()
        text, words = self._other_meaning
        low, _ = (stated_bounds(footer, 0, self.column) if footer.num_row_groups else None) or (
            b"",
            b"",
        )
        return () if literals.are_alike(low, text.encode("utf-8", "surrogateescape")) else (words,)

    @cached_property
    def has_buffers(self) -> bool:
        """Whether a value is in memory that may change."""
        return not isinstance(self.values, Texts) and any(
            isinstance(value, bytearray | memoryview) for value in self.values
        )

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
    row = _Row(hasher, is_strict=is_strict)
    if isinstance(values, Texts):
        question = Question(column, values, _hash_texts(column, values, row))
    else:
        parsed = [row.parse(column, position, value) for position, value in enumerate(values)]
        for position, (value, literal) in enumerate(zip(values, parsed, strict=True)):
            row.add(column, position, literal, value)
        question = Question(column, values, row.build(), parsed)
    num_nulls = (
        values.nulls if isinstance(values, Texts) else sum(value is None for value in values)
    )
    if row.first_error is not None and is_strict and row.num_unfit == len(values) - num_nulls:
        raise row.first_error
    question.unfit, question.is_strict = tuple(row.unfit), is_strict
    return question


class _Row:
    """A `HashRow` to which values are added in order."""

    def __init__(self, hasher: ValueHasher, *, is_strict: bool | None) -> None:
        self.hasher = hasher
        self._is_strict = is_strict
        self._hashes = array("Q")
        self._keys: list[Any] | array[int] = []
        self._owners: array[int] | None = None
        self._special: dict[int, Literal] = {}
        self.unfit: list[UnfitValue] = []
        """The first values that the column cannot hold."""
        self.num_unfit = 0
        self.first_error: UsageError | None = None

    def parse(self, column: Column, position: int, value: object, count: int = 0) -> Literal:
        """Parse a value; note it if the column cannot hold it. `count` is the number of values in a
        file of values."""
        try:
            literal = literals.parse_object(column, value)
        except UsageError as error:
            widened = table_types.parse_widened(column, value, error.message)
            if widened is not None:
                return widened
            literal = literals.parse_unfit(column, value, error.message)
            if literal.verdict is None:
                return literal  # another form of a number that the column can hold
            header = "; if it is a header, remove it" if position == 0 and count > 1 else ""
            where = f": value {position + 1:,} of {count:,}{header}" if count else ""
            if self.first_error is None:
                self.first_error = UsageError(
                    f"{error.message}{where}", place=error.place, hint=error.hint
                )
            self.num_unfit += 1
            if len(self.unfit) < MANY_VALUES:
                hint = f"; {error.hint}" if error.hint else ""
                self.unfit.append(
                    UnfitValue(str(value), position, f"{error.message}{header}{hint}")
                )
            return (
                literal
                if self._is_strict is not None
                else literal._replace(verdict=ABSENT, note=None)
            )
        if column.reading.table_type:
            return table_types.mark_rounded(column, value, literal)
        return literal if self._is_strict else literals.with_single_precision(column, literal)

    def add(self, column: Column, position: int, literal: Literal, value: object) -> None:
        """Add one value."""
        if (
            literal.verdict is not None
            or literal.note is not None
            or (isinstance(value, str) and literal.text != value)
        ):
            self._special[position] = literal
        for form in literal.forms if literal.verdict is None else ():
            self.add_run(
                range(position, position + 1),
                array("Q", (self.hasher.hash_value(form),)),
                (key_of(column, form),),
            )

    def add_run(self, owners: range, hashes: Buffer, keys: Sequence[Any]) -> None:
        """Add values at these positions, which have one hash and one key each. Numbers in arrays
        stay in one."""
        if self._owners is None and owners.start != len(self._hashes):
            self._owners = array("Q", range(len(self._hashes)))
        if self._owners is not None:
            self._owners.extend(owners)
        self._hashes.frombytes(memoryview(hashes).cast("B"))
        if isinstance(keys, array) and not self._keys:
            self._keys = array(keys.typecode)
        self._keys.extend(keys)

    def build(self) -> HashRow:
        """Order the hashes by their keys."""
        keys, hashes, owners = (
            self._keys,
            self._hashes,
            range(len(self._hashes)) if self._owners is None else self._owners,
        )
        if isinstance(keys, array) and len(keys) > _MANY_NUMBERS:
            import numpy as np

            # Sorting objects would take three times as long, and ten times the memory.
            numbers, row = np.frombuffer(keys, keys.typecode), np.frombuffer(hashes, np.uint64)
            places = np.argsort(numbers, kind="stable").astype(np.uint32)
            for each in (numbers, row):
                each[:] = each[places]
            owned = (
                places
                if isinstance(owners, range)
                else np.frombuffer(owners, np.uint64)[places].astype(np.uint32)
            )
            return HashRow(hashes, owned.data, keys, self._special)
        ordered = (
            [place for place, key in enumerate(keys) if key is not None]
            if None in keys
            else range(len(keys))
        )
        if len(ordered) < len(keys) or not all(map(le, keys, islice(keys, 1, None))):
            order = [
                *sorted(ordered, key=keys.__getitem__),
                *(place for place, key in enumerate(keys) if key is None),
            ]
            hashes = array("Q", map(hashes.__getitem__, order))
            owners = array("Q", map(owners.__getitem__, order))
            keys = [keys[place] for place in order[: len(ordered)]]
        # A slice of a view is no copy.
        return HashRow(
            hashes, owners if isinstance(owners, range) else memoryview(owners), keys, self._special
        )


def _hash_texts(column: Column, texts: Texts, row: _Row) -> HashRow:
    hasher = row.hasher

    def add_alone(positions: Iterable[int]) -> None:
        for position in positions:
            value = texts[position]
            row.add(
                column,
                position,
                row.parse(column, position - texts.nulls, value, len(texts) - texts.nulls),
                value,
            )

    def add_integers(start: int, stop: int) -> None:
        numbers = parse_integers(column, texts.encoded(start, stop))
        if numbers is not None:
            plain = numbers
            if sys.byteorder == "big":
                plain = numbers[:]
                plain.byteswap()
            row.add_run(range(start, stop), hasher.hash_fixed(plain, width_of(column)), numbers)
        elif stop - start == 1:
            add_alone([start])
        else:
            middle = (start + stop) // 2
            add_integers(start, middle)
            add_integers(middle, stop)

    add_alone(range(texts.nulls))
    values = range(texts.nulls, len(texts))
    if literals.are_integers(column):
        for start in values[::_RUN]:
            add_integers(start, min(start + _RUN, len(texts)))
    elif _are_plain_text(column, texts):
        offsets = memoryview(texts.offsets)[texts.nulls :]
        row.add_run(
            values,
            hasher.hash_variable(texts.data, offsets, offsets.itemsize),
            texts.encoded(texts.nulls, len(texts)),
        )
    else:
        add_alone(values)
    return row.build()


def _are_plain_text(column: Column, texts: Texts) -> bool:
    """Return whether the bytes of each text are those that the column stores."""
    if not literals.may_be_text(column) or column.reading.char_length:
        return False
    return literals.are_text(column) or not any(sign in texts.data for sign in _HEXADECIMAL)


_MANY_TEXTS = 1000
"""Texts that are worth one block."""
_DECODED_AT_ONCE = 4096


class Texts(Sequence["str | None"]):
    """Values as text in one block: compact in memory and when sent to another process. Each value
    is decoded when it is taken.

    The block has Arrow's layout: value i is bytes `offsets[i]` to `offsets[i + 1]` of `data`. Bytes
    that are not UTF-8 become surrogates. The first `nulls` values are null, and their spans are
    empty.
    """

    __slots__ = ("data", "nulls", "offsets")

    def __init__(self, data: bytes, offsets: array[int], nulls: int = 0) -> None:
        """Take n + 1 offsets as signed 64-bit integers."""
        self.data = data
        self.offsets = offsets
        self.nulls = nulls

    @classmethod
    def of(cls, blocks: Iterable[Sequence[bytes]], nulls: int = 0) -> Texts:
        """Join values that come in blocks, after this number of nulls."""
        data, offsets = bytearray(), array("q", [0] * (nulls + 1))
        for values in blocks:
            offsets.fromlist([*accumulate(map(len, values), initial=offsets.pop())])
            data += b"".join(values)
        return cls(bytes(data), offsets, nulls)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, position: int) -> str | None: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[str | None, ...]: ...

    def __getitem__(self, position: int | slice) -> str | tuple[str | None, ...] | None:
        if isinstance(position, slice):
            return tuple(self[at] for at in range(*position.indices(len(self))))
        at = range(len(self))[position]
        return None if at < self.nulls else self.text(at)

    def text(self, position: int) -> str:
        """Return the value at a position from 0 to n - 1, which is not that of a null."""
        return self.data[self.offsets[position] : self.offsets[position + 1]].decode(
            "utf-8", "surrogateescape"
        )

    def __iter__(self) -> Iterator[str | None]:
        yield from [None] * self.nulls
        for start in range(self.nulls, len(self), _DECODED_AT_ONCE):
            for value in self.encoded(start, min(start + _DECODED_AT_ONCE, len(self))):
                yield value.decode("utf-8", "surrogateescape")

    def encoded(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of the values from `start` up to `stop`."""
        data = self.data
        return [data[first:end] for first, end in pairwise(self.offsets[start : stop + 1])]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Texts):
            return NotImplemented
        return (self.nulls, self.data, self.offsets) == (other.nulls, other.data, other.offsets)

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __reduce__(self) -> tuple[type[Texts], tuple[bytes, array[int], int]]:
        return Texts, (self.data, self.offsets, self.nulls)

    def __repr__(self) -> str:
        return f"<Texts: {len(self):,} values>"


def values_of(values: object) -> Sequence[object]:
    """Return the values of an argument that takes one value or an iterable, as a tuple; many that
    are text as `Texts`."""
    if isinstance(values, Texts):
        return values
    items = tuple(as_values(values))
    if len(items) > _MANY_TEXTS and all(type(item) is str for item in items):
        try:
            return Texts.of([[item.encode("utf-8", "surrogateescape") for item in items]])
        except UnicodeEncodeError:
            # A surrogate that stands for no byte. The notations refuse it.
            pass
    return items
