"""What the filters and dictionaries of a file say of the values of a question, as it is reported:
the values that may be there, and the row groups that may hold any of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from sbbf_tool.file.filter_answers import bitmap_of, count_bits, iterate, unite
from sbbf_tool.parquet.notation import MAYBE
from sbbf_tool.reports.probe import (
    MANY_VALUES,
    PRESENT,
    Hit,
    InconclusiveRowGroups,
    LongSequence,
    ProbeReport,
    RowMatch,
)

if TYPE_CHECKING:
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.file.pruning import RowGroupAnswers
    from sbbf_tool.file.question import Question

Item = TypeVar("Item")
HitFields: TypeAlias = tuple[object, ...]
"""The fields of a `Hit`."""


class FileAnswers(NamedTuple):
    """What is known of values in a file."""

    hits: Sequence[Hit] = ()
    inconclusive: tuple[InconclusiveRowGroups, ...] = ()
    rows: Sequence[RowMatch] = ()
    """The rows that have the values, if they are listed."""
    unreadable: Sequence[str] = ()
    """What could not be read to answer: place and reason."""

    def report(
        self, file: ParquetFile, num_values: int, unreadable: Iterable[str] = (), **fields: Any
    ) -> ProbeReport:
        """Return the report of these answers, with `unreadable` places that were read before."""
        return ProbeReport(
            file=file.name,
            num_values=num_values,
            row_groups=file.footer.num_row_groups,
            hits=self.hits,
            inconclusive=self.inconclusive,
            bytes_read=file.source.bytes_read,
            requests=file.source.requests,
            unreadable=(*unreadable, *self.unreadable),
            rows=self.rows,
            **fields,
        )


def find_answers(question: Question, answers: Sequence[RowGroupAnswers]) -> FileAnswers:
    """Return what is known without reading the column."""
    hits = _find_hits(question, answers)
    return FileAnswers(hits, _find_undecided(question, answers))


def list_hits(
    question: Question,
    row_groups: Mapping[int, Iterable[int]],
    counts: Mapping[int, int] | None = None,
) -> Sequence[Hit]:
    """List the hits of few values, by position, each with the row groups whose filters may hold it;
    or, with the number of rows that have each, those that certainly hold it."""
    answer = MAYBE if counts is None else PRESENT
    rows = (
        (question.text(at), tuple(sorted(row_groups[at])), answer, None, counts and counts[at], at)
        for at in sorted(row_groups)
    )
    if len(question) <= MANY_VALUES:
        return tuple(starmap(Hit, rows))
    return LongSequence.of(Hit, rows)


def tuple_of_few(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items as a tuple, unless they are many."""
    return items if len(items) > MANY_VALUES else tuple(items)


def _find_hits(question: Question, answers: Sequence[RowGroupAnswers]) -> Sequence[Hit]:
    """Return the values that a filter or a dictionary may hold, and those that only statistics can
    judge, if they do not exclude them."""
    alone = _list_hits_alone(question, answers)
    bitmaps = [(each.row_group, each.answers.values) for each in answers]
    alone_with_hits = (at for at, hits in alone.items() if hits)
    bitmaps.append((-1, bitmap_of(alone_with_hits)))

    def rows() -> Iterator[HitFields]:
        for at, row_groups in iterate(bitmaps):
            hits = alone.get(at)
            if hits:
                yield from hits
            else:
                yield question.text(at), row_groups, MAYBE, None, None, at

    if len(question) <= MANY_VALUES:
        return tuple(starmap(Hit, rows()))
    united = unite(bitmap for _, bitmap in bitmaps)
    count = count_bits(united)
    if count > MANY_VALUES:
        return LongSequence(Hit, rows, count)
    return LongSequence.of(Hit, rows())


def _list_hits_alone(
    question: Question, answers: Sequence[RowGroupAnswers]
) -> dict[int, list[HitFields]]:
    """List the fields of the hits of each value that no filter decides about, by position."""
    hits: dict[int, list[HitFields]] = {}
    for at, literal in question.verdicts.items():
        row_groups = defaultdict[tuple[str, str | None], list[int]](list)
        for each in answers:
            verdict = each.verdicts[at]
            if not verdict.is_absent:
                row_groups[verdict.answer, verdict.reason].append(each.row_group)
        hits[at] = []
        for (answer, reason), numbers in row_groups.items():
            fields = (literal.text, tuple(numbers), answer, reason, None, at)
            hits[at].append(fields)
    return hits


def _find_undecided(
    question: Question, answers: Sequence[RowGroupAnswers]
) -> tuple[InconclusiveRowGroups, ...]:
    """Return the row groups that no filter or dictionary has excluded for the values that
    statistics leave."""
    groups = defaultdict[tuple[str, str | None, tuple[int, ...] | None], list[int]](list)
    for each in answers:
        if each.is_undecided:
            positions = _list_remaining(each)
            groups[each.answers.answer, each.answers.reason, positions].append(each.row_group)
    undecided = []
    for (answer, reason, positions), numbers in groups.items():
        row_groups = tuple(numbers)
        texts = None
        if positions is not None:
            texts = tuple(map(question.text, positions))
        undecided.append(InconclusiveRowGroups(row_groups, answer, reason, texts, positions or ()))
    return tuple(undecided)


def _list_remaining(answers: RowGroupAnswers) -> tuple[int, ...] | None:
    """List the values that statistics leave, by position; None if these are all, and for a long
    question."""
    question = answers.question
    if len(question) > MANY_VALUES:
        return None
    _, owners = question.hashes_in(answers.candidates)
    if len(owners) == len(question.row.hashes):
        return None
    return tuple(sorted(set(owners)))
