"""Result of `probe`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, overload

from sbbf_tool.numbers import format_count
from sbbf_tool.reports import bitmaps
from sbbf_tool.reports.named_columns import NamedColumn
from sbbf_tool.reports.rows import FileRow
from sbbf_tool.reports.tabular import Tabular

ABSENT, MAYBE, NO_FILTER = "absent", "maybe", "no filter"

MANY_VALUES = 1000
"""For more values than this, answers are kept as bitmaps."""


@dataclass(frozen=True)
class RowGroupAnswer:
    """Answer of the filter of one row group for one value: `absent`, `maybe`, `no filter`, or `cannot say` with the reason."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == ABSENT


@dataclass(frozen=True)
class UnfitValue:
    """A value that the column of a file cannot hold; columns of the same name in other files may."""

    value: str
    position: int
    """Position among the values, from 0; nulls that come first are not counted."""
    reason: str


@dataclass(frozen=True)
class ValueAnswer:
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the value is certainly in no row group. True for a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


class FilterAnswers(NamedTuple):
    """Answers of the filter of one row group for all values."""

    row_group: int
    values: bytes
    """The values that the filter may hold, as a bitmap; see `bloom.bitmaps`."""
    answer: str
    """Answer for the other values."""
    reason: str | None


class SpecialValue(Protocol):
    """A value that is reported in its own words, with a note, or with a verdict that needs no filter."""

    @property
    def text(self) -> str: ...

    @property
    def verdict(self) -> str | None: ...

    @property
    def note(self) -> str | None: ...


class ValueAnswers(Sequence[ValueAnswer]):
    """The answers for many values, each made when it is looked at. Values that have the same answers share them.

    It equals a tuple of the same answers, and is one after it was sent to another process.
    """

    def __init__(self, texts: Sequence[str | None], filters: Sequence[FilterAnswers], special: Mapping[int, SpecialValue]) -> None:
        """Take the text of each value, the answers of the filter of each row group, and the values that are not answered by these alone.

        Only values in `special`, by position, may have a verdict or a note, and no text.
        """
        self._texts = texts
        self._special = special
        self.filters = tuple(filters)
        self._rest = tuple(RowGroupAnswer(each.row_group, each.answer, each.reason) for each in self.filters)
        self._maybe = tuple(RowGroupAnswer(each.row_group, MAYBE) for each in self.filters)
        self._verdicts: dict[tuple[str, str | None], tuple[RowGroupAnswer, ...]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, position: int) -> ValueAnswer: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[ValueAnswer, ...]: ...

    def __getitem__(self, position: int | slice) -> ValueAnswer | tuple[ValueAnswer, ...]:
        if isinstance(position, slice):
            return tuple(self[at] for at in range(*position.indices(len(self))))
        at = range(len(self))[position]
        numbers = tuple(number for number, each in enumerate(self.filters) if bitmaps.is_set(each.values, at))
        return self._answer(at, self._texts[at], numbers)

    def __iter__(self) -> Iterator[ValueAnswer]:
        hits = bitmaps.iterate([each.values for each in self.filters])
        next_hit, numbers = next(hits, (-1, ()))
        for at, text in enumerate(self._texts):
            if at == next_hit:
                yield self._answer(at, text, numbers)
                next_hit, numbers = next(hits, (-1, ()))
            else:
                yield self._answer(at, text, ())

    @property
    def are_absent(self) -> bool:
        """Whether every value is certainly absent from all row groups."""
        return next(self.find_values(), None) is None and not self.open_filters

    @property
    def open_filters(self) -> tuple[FilterAnswers, ...]:
        """The row groups that may hold any of the values, because no filter excludes them."""
        is_judged = len(self._special) < len(self) or any(literal.verdict is None for literal in self._special.values())
        return tuple(each for each in self.filters if each.answer != ABSENT) if is_judged else ()

    def find_values(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield each value that may be stored, and the row groups that may hold it, apart from those that may hold any value."""
        numbers = tuple(each.row_group for each in self.filters)
        special = bitmaps.bitmap_of(at for at, literal in self._special.items() if literal.verdict not in (None, ABSENT) and numbers)
        for at, hits in bitmaps.iterate([*(each.values for each in self.filters), special]):
            literal = self._special.get(at)
            if literal is not None and literal.verdict is not None:
                yield literal.text, numbers
            else:
                yield literal.text if literal is not None else self._texts[at] or "", tuple([numbers[number] for number in hits])

    def _answer(self, at: int, text: str | None, numbers: tuple[int, ...]) -> ValueAnswer:
        """Return the answers for one value, which these filters may hold."""
        literal = self._special.get(at)
        if literal is not None and literal.verdict is not None:
            key = literal.verdict, literal.note
            if key not in self._verdicts:
                self._verdicts[key] = tuple(RowGroupAnswer(each.row_group, *key) for each in self.filters)
            return ValueAnswer(literal.text, self._verdicts[key], literal.note)
        answers = self._rest
        if numbers:
            mixed = [*answers]
            for number in numbers:
                mixed[number] = self._maybe[number]
            answers = tuple(mixed)
        return ValueAnswer(text or "", answers) if literal is None else ValueAnswer(literal.text, answers, literal.note)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | ValueAnswers):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type[tuple[ValueAnswer, ...]], tuple[tuple[ValueAnswer, ...]]]:
        return tuple, (tuple(self),)


@dataclass(frozen=True)
class Answer:
    """Row of a table of answers."""

    value: str | None
    """None if the answer applies to all values."""
    row_group: int
    answer: str
    reason: str | None


@dataclass(frozen=True, repr=False)
class ProbeReport(Tabular):
    _row = Answer
    _first = ("file", "column")

    file: str
    column: str
    type: str | None
    """None if the file does not have the column, although its table does."""
    # A tuple or, for more than MANY_VALUES, `ValueAnswers`.
    values: Sequence[ValueAnswer]
    bytes_read: int
    requests: int = 0
    """Requests to a server; 0 for a local file."""
    unreadable: tuple[str, ...] = ()
    """Filters whose bytes contradict the format, so that they cannot exclude their row group: place and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not those of filters."""
    unfit: tuple[UnfitValue, ...] = ()
    """The values, at most 1,000, that the column cannot hold."""
    warnings: tuple[str, ...] = ()
    """What may be meant otherwise than it was queried, such as bytes in another notation."""

    @property
    def is_absent(self) -> bool:
        """Whether every value is certainly absent from the whole file."""
        return self.values.are_absent if isinstance(self.values, ValueAnswers) else all(value.is_absent for value in self.values)

    def _rows(self) -> Iterable[object]:
        for value in self.values:
            for answer in value.row_groups:
                yield Answer(value.value, answer.row_group, answer.answer, answer.reason)

    def _summary(self) -> str:
        return f"{self.file}: {format_count(len(self.values), 'value')}, {'absent' if self.is_absent else 'not excluded'}"


@dataclass(frozen=True)
class ProbeRow(FileRow):
    report: ProbeReport | None = None
