"""The values of a query, parsed by the notation of a column, and hashed into one row.

Many values are hashed in bulk, without a `Literal` for each: integers are parsed a run at a time,
and text is hashed where it lies. A value that the notation of the column treats specially, such as
null or `0x2a`, is parsed alone; so is each value of a column of another type.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import le
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UsageError
from sbbf_tool.file.texts import Integers, Texts, UnquotedTexts
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import (
    ABSENT,
    Literal,
    parse_block_of_integers,
    parse_integers,
    width_of,
)
from sbbf_tool.parquet.statistics import key_of
from sbbf_tool.reports.probe import MANY_VALUES, UnfitValue

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from sbbf_tool.bloom.interface import ValueHasher


_RUN = 1024
"""Values that are parsed together; if one of them is no integer, its run is halved until it is
alone."""
_MANY_NUMBERS = 1 << 14
"""Numbers for which it pays to import numpy."""
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


class ValueParser:
    """Parses values of a column, and notes those that it cannot hold."""

    def __init__(self, column: Column, *, is_strict: bool | None) -> None:
        self.column = column
        self._is_strict = is_strict
        self.unfit: list[UnfitValue] = []
        """The first values that the column cannot hold."""
        self.num_unfit = 0
        self.first_error: UsageError | None = None

    def parse(self, position: int, value: object, count: int = 0) -> Literal:
        """Parse a value; note it if the column cannot hold it. `count` is the number of values in a
        file of values."""
        if self.column.reading.table_type:
            return self._parse_widened(position, value, count)
        try:
            literal = literals.parse_object(self.column, value)
        except UsageError as error:
            return self._parse_other(position, value, count, error)
        if self._is_strict:
            return literal
        return literals.with_single_precision(self.column, literal)

    def _parse_widened(self, position: int, value: object, count: int) -> Literal:
        """Parse a value of a column that its table has widened."""
        # Most columns are in no such table.
        from sbbf_tool.parquet import table_types

        try:
            literal = literals.parse_object(self.column, value)
        except UsageError as error:
            widened = table_types.parse_widened(self.column, value, error.message)
            if widened is not None:
                return widened
            return self._parse_other(position, value, count, error)
        return table_types.mark_rounded(self.column, value, literal)

    def _parse_other(self, position: int, value: object, count: int, error: UsageError) -> Literal:
        """Parse a value that is not written as the column writes its own."""
        literal = literals.parse_unfit(self.column, value, error.message)
        if literal.verdict is None:
            return literal  # another form of a number that the column can hold
        self._note_unfit(position, value, count, error)
        if self._is_strict is None:
            return literal._replace(verdict=ABSENT, note=None)
        return literal

    def _note_unfit(self, position: int, value: object, count: int, error: UsageError) -> None:
        message = error.message
        header = ""
        if position == 0 and count > 1:
            header = "; if it is a header, remove it"
        if self.first_error is None:
            where = ""
            if count:
                where = f": value {position + 1:,} of {count:,}"
            text = f"{message}{where}{header}"
            self.first_error = UsageError(text, place=error.place, hint=error.hint)
        self.num_unfit += 1
        if len(self.unfit) < MANY_VALUES:
            hint = f"; {error.hint}" if error.hint else ""
            reason = f"{message}{header}{hint}"
            self.unfit.append(UnfitValue(str(value), position, reason))


class HashRowBuilder:
    """A `HashRow` to which values are added in order."""

    def __init__(self, parser: ValueParser, hasher: ValueHasher) -> None:
        self._parser = parser
        self._column = parser.column
        self._hasher = hasher
        self._hashes = array("Q")
        self._keys: list[Any] | array[int] = []
        self._owners: array[int] | None = None
        self._special: dict[int, Literal] = {}

    def add(self, position: int, value: object, literal: Literal) -> None:
        """Add one value."""
        is_reworded = isinstance(value, str) and literal.text != value
        if literal.verdict is not None or literal.note is not None or is_reworded:
            self._special[position] = literal
        if literal.verdict is not None:
            return
        owner = range(position, position + 1)
        for form in literal.forms:
            hashes = array("Q", [self._hasher.hash_value(form)])
            key = key_of(self._column, form)
            self._add_run(owner, hashes, [key])

    def add_texts(self, texts: Texts) -> None:
        """Add all values of a block of text."""
        column = self._column
        self._add_alone(texts, range(texts.nulls))
        values = range(texts.nulls, len(texts))
        if literals.are_integers(column):
            run = _RUN
            if len(values) > _MANY_NUMBERS:
                run = _MANY_NUMBERS
            for start in values[::run]:
                stop = min(start + run, len(texts))
                self._add_integers(texts, start, stop)
        elif _are_plain_text(column, texts):
            offsets = memoryview(texts.offsets)[texts.nulls :]
            hashes = self._hasher.hash_variable(texts.data, offsets, offsets.itemsize)
            keys = texts.encoded(values.start, values.stop)
            self._add_run(values, hashes, keys)
        else:
            self._add_alone(texts, values)

    def _add_alone(self, texts: Texts, positions: Iterable[int]) -> None:
        count = len(texts) - texts.nulls
        for position in positions:
            value = texts[position]
            literal = self._parser.parse(position - texts.nulls, value, count)
            self.add(position, value, literal)

    def _add_integers(self, texts: Texts, start: int, stop: int) -> None:
        """Add the values from `start` up to `stop`, those that are no integers alone."""
        if stop - start > _RUN:
            offsets = memoryview(texts.offsets)[start : stop + 1]
            numbers = parse_block_of_integers(self._column, texts.data, offsets)
        else:
            numbers = parse_integers(self._column, texts.encoded(start, stop))
        if numbers is not None:
            plain = numbers
            if sys.byteorder == "big":
                plain = numbers[:]
                plain.byteswap()
            width = width_of(self._column)
            hashes = self._hasher.hash_fixed(plain, width)
            self._add_run(range(start, stop), hashes, numbers)
        elif stop - start == 1:
            self._add_alone(texts, [start])
        else:
            middle = (start + stop) // 2
            self._add_integers(texts, start, middle)
            self._add_integers(texts, middle, stop)

    def _add_run(self, owners: range, hashes: Buffer, keys: Sequence[Any]) -> None:
        """Add values at these positions, which have one hash and one key each. Numbers in arrays
        stay in one."""
        num_hashes = len(self._hashes)
        if self._owners is None and owners.start != num_hashes:
            self._owners = array("Q", range(num_hashes))
        if self._owners is not None:
            self._owners.extend(owners)
        self._hashes.frombytes(memoryview(hashes).cast("B"))
        if isinstance(keys, array) and not self._keys:
            self._keys = array(keys.typecode)
        self._keys.extend(keys)

    def build(self) -> HashRow:
        """Order the hashes by their keys."""
        keys = self._keys
        if isinstance(keys, array) and len(keys) > _MANY_NUMBERS:
            return self._build_of_numbers(keys)
        hashes = self._hashes
        owners: Sequence[int] = range(len(hashes))
        if self._owners is not None:
            owners = self._owners
        with_order: Sequence[int] = range(len(keys))
        without_order: Sequence[int] = ()
        if None in keys:
            with_order = [place for place, key in enumerate(keys) if key is not None]
            without_order = [place for place, key in enumerate(keys) if key is None]
        if without_order or not _are_ascending(keys):
            ordered = sorted(with_order, key=keys.__getitem__)
            order = [*ordered, *without_order]
            hashes = array("Q", map(hashes.__getitem__, order))
            owners = array("Q", map(owners.__getitem__, order))
            keys = list(map(keys.__getitem__, ordered))
        if isinstance(owners, array):
            owners = memoryview(owners)  # a slice of a view is no copy
        return HashRow(hashes, owners, keys, self._special)

    def _build_of_numbers(self, keys: array[int]) -> HashRow:
        """Sort in place: sorting objects would take three times as long, and ten times the
        memory."""
        import numpy as np

        numbers = np.frombuffer(keys, keys.typecode)
        hashes = np.frombuffer(self._hashes, np.uint64)
        places = np.argsort(numbers, kind="stable")
        order = places.astype(np.uint32)
        numbers[:] = numbers[order]
        hashes[:] = hashes[order]
        owners = order
        if self._owners is not None:
            owners_in_order = np.frombuffer(self._owners, np.uint64)[order]
            owners = owners_in_order.astype(np.uint32)
        return HashRow(self._hashes, owners.data, keys, self._special)


def _are_ascending(keys: Sequence[Any]) -> bool:
    next_keys = islice(keys, 1, None)
    return all(map(le, keys, next_keys))


def _are_plain_text(column: Column, texts: Texts) -> bool:
    """Return whether the bytes of each text are those that the column stores."""
    if isinstance(texts, Integers | UnquotedTexts):
        return False
    if not literals.may_be_text(column) or column.reading.char_length:
        return False
    if literals.are_text(column):
        return True
    return not any(sign in texts.data for sign in _HEXADECIMAL)
