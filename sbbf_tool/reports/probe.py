"""Result of `probe`: where in a file the values may be. Values that are certainly absent from it
are not listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any, ClassVar, NamedTuple, TypeVar

from sbbf_tool.errors import UsageError
from sbbf_tool.frozen import Frozen, field
from sbbf_tool.numbers import format_count
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular

ABSENT = "absent"
MAYBE = "maybe"
PRESENT = "present"
CANNOT_SAY = "cannot say"
NO_FILTER = "no filter"

CONDITION = "condition"
"""Type in a report on rows that satisfy a condition, whose text is its only value."""

MANY_VALUES = 1000
"""For more values than this, hits are made when they are looked at."""

Item = TypeVar("Item")


class RowGroupAnswer(Frozen):
    """Answer of the filter of one row group for one value: `absent`, `maybe`, `no filter`, or
    `cannot say` with the reason."""

    row_group: int
    answer: str
    reason: str | None = None

    @property
    def is_absent(self) -> bool:
        return self.answer == ABSENT


class ValueAnswer(Frozen):
    value: str
    row_groups: tuple[RowGroupAnswer, ...]
    note: str | None = None

    @property
    def is_absent(self) -> bool:
        """Whether the value is certainly in no row group. True for a file without row groups."""
        return all(answer.is_absent for answer in self.row_groups)


class UnfitValue(Frozen):
    """A value that the column of a file cannot hold; columns of the same name in other files
    may."""

    value: str
    position: int
    """Position among the values, from 0; nulls that come first are not counted."""
    reason: str


class QueriedValue(NamedTuple):
    """A value as it is reported; its verdict if no filter decides about it."""

    text: str
    verdict: str | None = None
    note: str | None = None


class Hit(Frozen):
    """Row groups that may hold a value."""

    value: str
    row_groups: tuple[int, ...]
    answer: str = MAYBE
    """`maybe`; `present` if the column was read; or `cannot say` of a value that filters cannot
    answer for."""
    reason: str | None = None
    count: int | None = None
    """Number of rows of these row groups that have the value, if it is `present`."""
    position: int = field(default=0, compare=False, local=True)
    """Position among the values, from 0."""
    column: str | None = None
    """The column, if the report is about all."""


class LongSequence(Sequence[Item]):
    """Many items, each made of its fields when it is looked at. They equal a tuple of the same
    items.

    Unless `is_sent`, another process gets none of them. If `rows` is a value of its own, another
    process gets that instead of the items.
    """

    def __init__(
        self,
        item: Callable[..., Item],
        rows: Callable[[], Iterable[tuple[Any, ...]]],
        count: int,
        *,
        is_sent: bool = True,
    ) -> None:
        self._item = item
        self.rows = rows
        """Yields the fields of each item, which are cheaper than items."""
        self._count = count
        self._is_sent = is_sent

    @classmethod
    def of(cls, item: Callable[..., Item], rows: Iterable[tuple[Any, ...]]) -> LongSequence[Item]:
        """Return the items with these fields."""
        rows = tuple(rows)
        return cls(item, lambda: rows, len(rows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Item]:
        return starmap(self._item, self.rows())

    def __getitem__(self, position: Any) -> Any:
        return tuple(self)[position]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | LongSequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self.rows, Frozen):
            return LongSequence, (self._item, self.rows, self._count)
        rows = tuple(self.rows()) if self._is_sent else ()
        return LongSequence.of, (self._item, rows)


class RowMatch(Frozen):
    """A row that has a value."""

    row_group: int
    row: int
    """Number of the row in the file, from 0."""
    value: str
    column: str
    position: int = field(default=0, compare=False, repr=False, local=True)
    """Position among the values, from 0."""


class InconclusiveRowGroups(Frozen):
    """Row groups that may hold values about which nothing was queried that could exclude them: `no
    filter`, or `cannot say` and why."""

    row_groups: tuple[int, ...]
    answer: str
    reason: str | None
    values: tuple[str, ...] | None = None
    """The values between min and max, if the others are absent; None for all values, and if there
    are more than 1,000."""
    positions: tuple[int, ...] = field(default=(), compare=False, repr=False, local=True)
    """Positions of `values` among the values, from 0."""
    column: str | None = None
    """The column, if the report is about all."""


class ProbeAnswer(Frozen):
    """Row of a table of answers."""

    column: str | None
    value: str | None
    """None if the answer applies to all values."""
    row_group: int
    answer: str
    reason: str | None


class ProbeReport(Tabular):
    _row: ClassVar[type | None] = ProbeAnswer
    _first: ClassVar[tuple[str, ...]] = ("file",)

    file: str
    column: str | None
    """None for all columns."""
    type: str | None
    """None if the file does not have the column, although its table does; `any` for all columns;
    `condition` if the only value is the text of a condition, and the columns are those of it."""
    num_values: int
    """Number of values that were queried."""
    row_groups: int
    # A tuple or, for more than MANY_VALUES, a `LongSequence`.
    hits: Sequence[Hit]
    """The values that the file may hold, apart from the row groups that may hold any of them."""
    inconclusive: tuple[InconclusiveRowGroups, ...]
    bytes_read: int
    requests: int = 0
    """Requests to a server; 0 for a local file."""
    unreadable: tuple[str, ...] = ()
    """Filters whose bytes contradict the format, so that they cannot exclude their row group: place
    and reason."""
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under the name of the column. If it lacks the column, the answers are not
    those of filters."""
    unfit: tuple[UnfitValue, ...] = ()
    """The values, at most 1,000, that the column cannot hold."""
    warnings: tuple[str, ...] = ()
    """What may be meant otherwise than it was queried, such as bytes in another notation."""
    rows: Sequence[RowMatch] = ()
    """The rows that have the values, in order; empty unless `Probe.rows` is set."""
    notes: tuple[str, ...] = ()
    """How values were read, such as `read as UTC`."""
    queried: Sequence[QueriedValue] = field(default=(), repr=False, compare=False, local=True)
    """The values; more than 1,000 stay in the process that has queried them."""

    @property
    def is_absent(self) -> bool:
        """Whether every value is certainly absent from the whole file."""
        return not self.hits and not self.inconclusive

    @property
    def values(self) -> tuple[ValueAnswer, ...]:
        """The answers of all row groups for each value. Raises UsageError if the report lacks the
        values: see `queried`."""
        if len(self.queried) != self.num_values:
            raise UsageError(
                "the report has no answer for each value", hint="use hits and inconclusive"
            )
        absent = [RowGroupAnswer(number, ABSENT) for number in range(self.row_groups)]
        by_position: dict[int, list[RowGroupAnswer]] = {}

        def set_answers(
            position: int, row_groups: Iterable[int], answer: str, reason: str | None
        ) -> None:
            answers = by_position.setdefault(position, absent.copy())
            for number in row_groups:
                answers[number] = RowGroupAnswer(number, answer, reason)

        # Of a column that the file has, hits say where values may be that no filter can judge.
        undecided = {None} if self.type is not None else {None, CANNOT_SAY}
        for each in self.inconclusive:
            positions: Iterable[int] = each.positions
            if each.values is None:
                positions = range(len(self.queried))
            for at in positions:
                if self.queried[at].verdict in undecided:
                    set_answers(at, each.row_groups, each.answer, each.reason)
        for hit in self.hits:
            set_answers(hit.position, hit.row_groups, hit.answer, hit.reason)
        values = []
        for at, value in enumerate(self.queried):
            answers = tuple(by_position.get(at, absent))
            note = None
            if value.verdict in (None, ABSENT):
                note = value.note
            values.append(ValueAnswer(value.text, answers, note))
        return tuple(values)

    def _rows(self) -> Iterable[object]:
        """Return the row groups of each value that may be there, then those that may hold any of
        the values."""
        for hit in self.hits:
            column = hit.column or self.column
            for row_group in hit.row_groups:
                yield ProbeAnswer(column, hit.value, row_group, hit.answer, hit.reason)
        for each in self.inconclusive:
            column = each.column or self.column
            for value in each.values or (None,):
                for row_group in each.row_groups:
                    yield ProbeAnswer(column, value, row_group, each.answer, each.reason)

    def _summary(self) -> str:
        answer = "absent" if self.is_absent else "not excluded"
        return f"{self.file}: {format_count(self.num_values, 'value')}, {answer}"


class RowsReport(ProbeReport):
    """The same report as a table of the rows that have the values."""

    _row: ClassVar[type | None] = RowMatch
    _first: ClassVar[tuple[str, ...]] = ("file",)

    def _rows(self) -> Iterable[object]:
        return self.rows
