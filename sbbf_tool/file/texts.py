"""Values as text in one block, for questions with very many of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import overload

from sbbf_tool.arguments import QuotedText, UnquotedText, as_values

_MANY_TEXTS = 1000
"""Texts that are worth one block."""
_WORTH_HASHES = 100_000
"""Texts of which repeats are found by their hashes."""
_DECODED_AT_ONCE = 4096
_LARGEST = 1 << 64
"""Largest integer in a block; larger ones are in no column of integers."""


class Texts(Sequence["str | int | None"]):
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
        data = bytearray()
        offsets = array("q", [0] * (nulls + 1))
        for values in blocks:
            ends = accumulate(map(len, values), initial=offsets.pop())
            offsets.fromlist([*ends])
            data += b"".join(values)
        return cls(bytes(data), offsets, nulls)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, position: int) -> str | int | None: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[str | int | None, ...]: ...

    def __getitem__(self, position: int | slice) -> str | int | tuple[str | int | None, ...] | None:
        if isinstance(position, slice):
            positions = range(len(self))[position]
            return tuple(self[at] for at in positions)
        at = range(len(self))[position]
        if at < self.nulls:
            return None
        return self._value_of(self.text(at))

    def _value_of(self, text: str) -> str | int:
        return text

    def text(self, position: int) -> str:
        """Return the value at a position from 0 to n - 1, which is not that of a null."""
        start = self.offsets[position]
        end = self.offsets[position + 1]
        plain = self.data[start:end]
        return plain.decode("utf-8", "surrogateescape")

    def __iter__(self) -> Iterator[str | int | None]:
        yield from [None] * self.nulls
        for start in range(self.nulls, len(self), _DECODED_AT_ONCE):
            stop = min(start + _DECODED_AT_ONCE, len(self))
            for value in self.encoded(start, stop):
                yield self._value_of(value.decode("utf-8", "surrogateescape"))

    def encoded(self, start: int, stop: int) -> list[bytes]:
        """Return the bytes of the values from `start` up to `stop`."""
        data = self.data
        offsets = self.offsets[start : stop + 1]
        return [data[first:end] for first, end in pairwise(offsets)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Texts) or type(other) is not type(self):
            return NotImplemented
        if self.nulls != other.nulls or self.data != other.data:
            return False
        return self.offsets == other.offsets

    __hash__ = None  # type: ignore[assignment]  # as of a list

    def __reduce__(self) -> tuple[type[Texts], tuple[bytes, array[int], int]]:
        return type(self), (self.data, self.offsets, self.nulls)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} values>"


class Integers(Texts):
    """Integers in one block of text; each is an int when it is taken, which no column of text
    holds."""

    __slots__ = ()

    def _value_of(self, text: str) -> int:
        return int(text)


class QuotedTexts(Texts):
    """Values that a condition has in quotes."""

    __slots__ = ()

    def _value_of(self, text: str) -> str:
        return QuotedText(text)


class UnquotedTexts(Texts):
    """Values that a condition has without quotes."""

    __slots__ = ()

    def _value_of(self, text: str) -> str:
        return UnquotedText(text)


_BLOCKS: dict[type, type[Texts]] = {
    str: Texts,
    QuotedText: QuotedTexts,
    UnquotedText: UnquotedTexts,
}


def text_of(value: object) -> str:
    """Return how a value is reported that no column gives a notation."""
    return "null" if value is None else str(value)


def values_of(values: object) -> Sequence[object]:
    """Return the values of an argument that takes one value or an iterable, as a tuple; many that
    are text, or integers, as one block."""
    if isinstance(values, Texts):
        return values
    items = tuple(as_values(values))
    if len(items) <= _MANY_TEXTS:
        return items
    nulls = 0
    while nulls < len(items) and items[nulls] is None:
        nulls += 1
    kinds = set(map(type, items[nulls:]))
    if kinds == {int} and max(map(abs, items[nulls:])) <= _LARGEST:
        encoded = [b"%d" % item for item in items[nulls:]]
        return Integers.of([encoded], nulls)
    block = _BLOCKS.get(kinds.pop()) if len(kinds) == 1 else None
    if block is None:
        return items
    try:
        encoded = [item.encode("utf-8", "surrogateescape") for item in items[nulls:]]
    except UnicodeEncodeError:
        # A surrogate that stands for no byte. The notations refuse it.
        return items
    return block.of([encoded], nulls)


def each_once(values: Sequence[object]) -> Sequence[object]:
    """Return values without those that occur before, in their order. Values of two types differ."""
    if isinstance(values, Texts):
        repeats = _find_repeats(values)
        return _leave_out(values, repeats) if repeats else values
    distinct: dict[object, object] = {}
    for value in values:
        distinct.setdefault((type(value), repr(value)), value)
    return tuple(distinct.values())


def _find_repeats(values: Texts) -> list[int]:
    """Return the positions of values that occur before."""
    offsets = values.offsets
    positions: Iterable[int] = range(values.nulls, len(values))
    if len(values) > _WORTH_HASHES:
        import numpy as np  # to import it takes longer than to compare fewer values

        from sbbf_tool.bloom.hashing import hash_variable

        # Only values with the same hash can be the same.
        hashes = np.asarray(hash_variable(values.data, offsets, offsets.itemsize))
        ordered = np.sort(hashes)
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        places = np.flatnonzero(np.isin(hashes, repeated))
        positions = places[places >= values.nulls].tolist()
    seen = set()
    repeats = []
    for at in positions:
        value = values.data[offsets[at] : offsets[at + 1]]
        if value in seen:
            repeats.append(at)
        seen.add(value)
    return repeats


def _leave_out(values: Texts, positions: list[int]) -> Texts:
    """Return values without those at these positions, which ascend."""
    data = bytearray()
    ends = array("q", [0])
    shift = 0
    start = 0
    for stop in (*positions, len(values)):
        data += values.data[values.offsets[start] : values.offsets[stop]]
        ends.extend(end - shift for end in values.offsets[start + 1 : stop + 1])
        start = stop + 1
        if start <= len(values):
            shift += values.offsets[start] - values.offsets[stop]
    return type(values)(bytes(data), ends, values.nulls)
