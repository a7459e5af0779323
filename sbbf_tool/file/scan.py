"""Answers for many plain local files at once, without opening them one by one.

`parquet/_scan.h` answers in C, and describes what it checks; `scan_kinds` judges one file of each
kind for it. A file that it declines has no answer here: it is opened as if there were no scan, so
answers and errors never depend on this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool import log
from sbbf_tool.file.context import Context
from sbbf_tool.file.filter_answers import BulkAnswer, bitmap_of
from sbbf_tool.file.hits import find_answers, list_hits
from sbbf_tool.file.missing_column import statement_of
from sbbf_tool.file.parquet_file import ParquetFile, log_opened
from sbbf_tool.file.pruning import RowGroupAnswers
from sbbf_tool.file.question import Candidates, Question
from sbbf_tool.file.scan_kinds import KindJudgment, declining, key_of_kind, names_left_out
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import footer_structs
from sbbf_tool.reports.probe import MANY_VALUES, Hit

if TYPE_CHECKING:
    from sbbf_tool.file.table_file import FileName, TableFile
    from sbbf_tool.parquet.columns import Column

try:
    from sbbf_tool.parquet import _scan
except ImportError:
    _is_built = False
else:
    _is_built = True

_MOST_KINDS = 64
"""Kinds after which files of further ones are opened one by one: to judge a kind takes longer than
to open one file."""

Judge = Callable[[ParquetFile, bytes], KindJudgment]
"""A function that judges the kind of an open file; the bytes decide the kind."""


class ScannedFile(NamedTuple):
    """The answer of one file."""

    judgment: KindJudgment
    row_groups: int
    bytes_read: int
    hashes: Sequence[tuple[int, int]] = ()
    """The hashes that filters may hold: row group, and place in the row of the question."""

    def hits(self) -> Sequence[Hit]:
        """Return the values that the file may hold."""
        question = self.judgment.question
        assert question is not None
        owners = question.row.owners
        if len(self.hashes) > MANY_VALUES:
            return find_answers(question, tuple(self._answers(question))).hits
        row_groups: dict[int, list[int]] = {}
        for row_group, place in self.hashes:
            numbers = row_groups.setdefault(owners[place], [])
            # A value may have several hashes.
            if row_group not in numbers[-1:]:
                numbers.append(row_group)
        return list_hits(question, row_groups)

    def _answers(self, question: Question) -> Iterator[RowGroupAnswers]:
        """Yield what is known of the values in each row group that may hold any."""
        owners = question.row.owners
        candidates = Candidates(range(0), range(0))
        for row_group, hashes in groupby(self.hashes, itemgetter(0)):
            values = bitmap_of(owners[place] for _, place in hashes)
            yield RowGroupAnswers(question, row_group, candidates, (), filter=BulkAnswer(values))


class _Found(NamedTuple):
    """What one call says of a file."""

    kind: int
    row_groups: int
    size: int
    bytes_read: int


def can_scan() -> bool:
    """Return whether the extension is built, and footers are indexed, by which kinds are found."""
    return _is_built and footer_structs.has_walker


class FileScan:
    """Answers for local files about one question. Threads may share it."""

    def __init__(self, judge: Judge, context: Context, in_table: TableFile | None = None) -> None:
        """`in_table` is what the files have in common if they are those of a table."""
        self._judge = judge
        self._context = context
        self._in_table = in_table
        self._judgments: tuple[KindJudgment, ...] = ()
        self._judging = Lock()

    def __call__(self, paths: Sequence[str]) -> list[ScannedFile | None]:
        """Return the answer of each file; None for a file that must be opened."""
        answers: list[ScannedFile | None] = [None] * len(paths)
        places = [at for at, path in enumerate(paths) if _is_plain_name(path)]
        while places:
            judgments = self._judgments
            unknown = _scan_places(paths, places, judgments, answers)
            places = self._judge_first(paths, unknown, judgments)
        return answers

    def _judge_first(
        self, paths: Sequence[str], places: list[int], before: tuple[KindJudgment, ...]
    ) -> list[int]:
        """Judge the kind of the first of these files that can be judged; return the places of those
        to scan again."""
        for number, place in enumerate(places):
            with self._judging:
                if self._judgments is not before:
                    return places[number:]
                if len(before) >= _MOST_KINDS:
                    return []
                judgment = self._judge_file(paths[place])
                if judgment is not None:
                    self._judgments = (*before, judgment)
                    return places[number:]
        return []

    def _judge_file(self, path: str) -> KindJudgment | None:
        """Judge the kind of a file; None if the file cannot be judged."""
        key = None
        file_name: FileName = path
        if self._in_table is not None:
            file_name = replace(self._in_table, path=path)
        try:
            with ParquetFile.open(file_name, self._context) as file:
                key = key_of_kind(file.footer)
                if key is not None:
                    return self._judge(file, key)
        except Exception:
            # The verb opens the file again, and reports what is wrong with it.
            if key is not None:
                return declining(key)
        return None


def _is_plain_name(path: str) -> bool:
    return bool(path) and "\0" not in path and not path.startswith("file:")


def _scan_places(
    paths: Sequence[str],
    places: list[int],
    judgments: tuple[KindJudgment, ...],
    answers: list[ScannedFile | None],
) -> list[int]:
    """Scan the files at these places, and set their answers; return the places of those whose kind
    is unknown."""
    names = "".join([paths[place] + "\0" for place in places])
    kinds = tuple([judgment.kind for judgment in judgments])
    table = footer_structs.table_of_structs()
    packed_answers, packed_hits = _scan.scan(os.fsencode(names), kinds, table, names_left_out())
    numbers = memoryview(packed_answers).cast("q")
    hits = _group_hits(memoryview(packed_hits).cast("q"))
    width = len(_Found._fields)
    is_logged = log.shows_info()
    unknown = []
    for number, place in enumerate(places):
        found = _Found(*numbers[number * width : (number + 1) * width])
        if found.kind == _scan.UNKNOWN_KIND:
            unknown.append(place)
            continue
        if found.kind == _scan.DECLINED:
            continue
        judgment = judgments[found.kind]
        path = paths[place]
        if "=" in path and not judgment.is_in_table and _is_stated_by_folder(path, judgment):
            continue
        if is_logged:
            log_opened(path, found.size, found.row_groups)
        hashes = hits.get(number, ())
        answers[place] = ScannedFile(judgment, found.row_groups, found.bytes_read, hashes)
    return unknown


def _group_hits(numbers: memoryview[int]) -> dict[int, list[tuple[int, int]]]:
    """Return row group and place of the hashes that may be held, by file."""
    hits: dict[int, list[tuple[int, int]]] = {}
    for file, row_group, place in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True):
        hits.setdefault(file, []).append((row_group, place))
    return hits


def _is_stated_by_folder(path: str, judgment: KindJudgment) -> bool:
    """Return whether the folder of a file states its column: see `doubts.doubt_of_folder`."""
    assert judgment.question is not None
    column: Column = judgment.question.column
    if len(column.path) > 1:
        return False
    return statement_of(os.path.dirname(path), column.path[0].casefold()) is not None
