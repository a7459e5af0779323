"""Answers for many plain local files at once, without opening them one by one.

`parquet/_scan.h` answers in C, and describes what it checks; `scan_kinds` judges one file of each
kind for it. A file that it declines has no answer here: it is opened as if there were no scan, so
answers and errors never depend on this module.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sbbf_tool import log
from sbbf_tool.file.context import Context
from sbbf_tool.file.filter_answers import BulkAnswer, bitmap_of
from sbbf_tool.file.hits import FileAnswers, find_answers, list_hits, tuple_of_few
from sbbf_tool.file.missing_column import statement_of
from sbbf_tool.file.parquet_file import ParquetFile, log_opened
from sbbf_tool.file.pruning import RowGroupAnswers
from sbbf_tool.file.question import Candidates, Question
from sbbf_tool.file.scan_kinds import KindJudgment, declining, key_of_kind, names_left_out
from sbbf_tool.frozen import replace
from sbbf_tool.parquet import footer_structs
from sbbf_tool.reports.probe import MANY_VALUES, Hit, LongSequence, RowMatch
from sbbf_tool.storage.places import is_url

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.file.table_file import FileName, TableFile

try:
    from sbbf_tool.parquet import _scan
except ImportError:
    _is_built = False
else:
    _is_built = True

Report = TypeVar("Report")

_MOST_KINDS = 64
"""Kinds after which files of further ones are opened one by one: to judge a kind takes longer than
to open one file."""

_DETAIL = Struct("=8q")
_HIT_WIDTH = 3
_ROW_WIDTH = 4
"""Numbers per hit and per row; the first is that of the file."""

Judge = Callable[[ParquetFile, bytes], KindJudgment | None]
"""A function that judges the kind of an open file; the bytes decide the kind. None if the file does
not show how to judge others."""


class RowGroupDetails(NamedTuple):
    """What a footer states of a row group, and of its chunk of the column."""

    row_group: int
    rows: int
    """-1 if they are not stated."""
    num_bytes: int
    """Bytes of the pages of all chunks."""
    is_queried: bool
    """Whether statistics left values, or a filter, to query or to take."""
    bounds: tuple[bytes, bytes] | None
    """Min and max as `stated_bounds` returns them."""
    bitset: bytes
    """The filter, if the kind takes it, and the chunk has values."""


class ScannedFile(NamedTuple):
    """The answer of one file."""

    judgment: KindJudgment
    row_groups: int
    size: int
    bytes_read: int
    hashes: Sequence[int] = ()
    """The hashes that filters may hold, unless the kind confirms: three numbers each, of which the
    last two are row group, and place in the row of the question."""
    matches: Sequence[int] = ()
    """The rows that have the values, if the kind confirms: four numbers each, of which the last
    three are row group, row in the file, and place in the row of the question."""

    details: Sequence[RowGroupDetails] = ()
    """Of each row group, if the kind wants them; of the first one if only warnings depend on
    it."""

    @property
    def question(self) -> Question:
        question = self.judgment.question
        assert question is not None, "filters are judged or taken"
        return question

    def warnings(self) -> tuple[str, ...]:
        """Return words about a value that may be meant otherwise than it was read."""
        bounds = None
        if self.details:
            bounds = self.details[0].bounds
        return self.question.warnings_beside(bounds or ())

    def hits(self) -> Sequence[Hit]:
        """Return the values that the file may hold."""
        if len(self.hashes) > MANY_VALUES * _HIT_WIDTH:
            return find_answers(self.question, tuple(self._answers())).hits
        # A value may have several hashes.
        row_groups = defaultdict[int, set[int]](set)
        for row_group, place in self._groups_and_places():
            row_groups[self.question.row.owners[place]].add(row_group)
        return list_hits(self.question, row_groups)

    def row_groups_with_hits(self) -> set[int]:
        """Return the row groups that may hold a value."""
        return set(self.hashes[1::_HIT_WIDTH])

    def present(self, *, with_rows: bool) -> FileAnswers:
        """Return the values that rows have, and these rows."""
        question = self.question
        owners = question.row.owners
        # A value may have several hashes, and a hash several values.
        groups, numbers, places = (self.matches[at::_ROW_WIDTH] for at in range(1, _ROW_WIDTH))
        rows = sorted(set(zip(groups, numbers, map(owners.__getitem__, places), strict=True)))
        row_groups = defaultdict[int, set[int]](set)
        counts = Counter[int]()
        for row_group, _, at in rows:
            row_groups[at].add(row_group)
            counts[at] += 1
        hits = list_hits(question, row_groups, counts)
        if not with_rows:
            return FileAnswers(hits)
        name = question.column.name
        fields = ((row_group, row, question.text(at), name, at) for row_group, row, at in rows)
        return FileAnswers(hits, rows=tuple_of_few(LongSequence.of(RowMatch, fields)))

    def match_columns(self) -> MatchColumns:
        """Return the rows that have the values as columns of numpy, in the order of the file."""
        import numpy as np  # most scans list few rows

        numbers = np.asarray(self.matches, np.int64).reshape(-1, _ROW_WIDTH)
        positions = numbers[:, 3]
        owners = self.question.row.owners
        if not isinstance(owners, range):
            positions = np.asarray(owners)[positions]
        return MatchColumns(numbers[:, 1], numbers[:, 2], positions)

    def _groups_and_places(self) -> Iterator[tuple[int, int]]:
        return zip(self.hashes[1::_HIT_WIDTH], self.hashes[2::_HIT_WIDTH], strict=True)

    def _answers(self) -> Iterator[RowGroupAnswers]:
        """Yield what is known of the values in each row group that may hold any."""
        question = self.question
        owners = question.row.owners
        candidates = Candidates(range(0), range(0))
        for row_group, hashes in groupby(self._groups_and_places(), itemgetter(0)):
            values = bitmap_of(owners[place] for _, place in hashes)
            yield RowGroupAnswers(question, row_group, candidates, {}, filter=BulkAnswer(values))


class MatchColumns(NamedTuple):
    """Rows that have values; all columns have the same length."""

    row_groups: NDArray[np.int64]
    rows: NDArray[np.int64]
    positions: NDArray[np.int64]
    """Positions among the values."""


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

    def __init__(
        self,
        judge: Judge,
        context: Context,
        in_table: TableFile | None = None,
        *,
        is_certain: bool = False,
    ) -> None:
        """`in_table` is what the files have in common if they are those of a table. With
        `is_certain`, what filters alone answer is no answer."""
        self._judge = judge
        self._is_certain = is_certain
        self._context = context
        self._in_table = in_table
        self._judgments: tuple[KindJudgment, ...] = ()
        self._judging = Lock()
        self._num_unjudged = 0

    def __call__(self, paths: Sequence[str]) -> list[ScannedFile | None]:
        """Return the answer of each file; None for a file that must be opened."""
        answers: list[ScannedFile | None] = [None] * len(paths)
        places = [at for at, path in enumerate(paths) if _is_plain_name(path)]
        while places:
            judgments = self._judgments
            unknown = _scan_places(paths, places, judgments, answers)
            places = self._judge_first(paths, unknown, judgments)
        if self._is_certain:
            return [None if file is not None and file.hashes else file for file in answers]
        return answers

    def reports(
        self, report_of: Callable[[str, ScannedFile], Report | None], paths: Sequence[str]
    ) -> list[Report | None]:
        """Return the report of each file by its path and answer; None for a file that must be
        opened."""
        reports: list[Report | None] = []
        for path, file in zip(paths, self(paths), strict=True):
            report = None
            if file is not None:
                report = report_of(path, file)
            reports.append(report)
        return reports

    def _judge_first(
        self, paths: Sequence[str], places: list[int], before: tuple[KindJudgment, ...]
    ) -> list[int]:
        """Judge the kind of the first of these files that can be judged; return the places of those
        to scan again."""
        for number, place in enumerate(places):
            with self._judging:
                if self._judgments is not before:
                    return places[number:]
                if len(before) + self._num_unjudged >= _MOST_KINDS:
                    return []
                judgment = self._judge_file(paths[place])
                if judgment is not None:
                    self._judgments = (*before, judgment)
                    return places[number:]
                self._num_unjudged += 1
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
                    judgment = self._judge(file, key)
                    if judgment is None or not judgment.is_example:
                        return judgment
                    answers: list[ScannedFile | None] = [None]
                    _scan_places([path], [0], (judgment,), answers)
                    return judgment if answers[0] is not None else None
        except Exception:
            # The verb opens the file again, and reports what is wrong with it.
            if key is not None:
                return declining(key)
        return None


def _is_plain_name(path: str) -> bool:
    if not path or "\0" in path or path.startswith("file:") or is_url(path):
        return False
    try:
        return path.isascii() or bool(os.fsencode(path))
    except UnicodeEncodeError:
        return False


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
    packed_answers, packed_hits, packed_rows, packed_details = _scan.scan(
        os.fsencode(names), kinds, table, names_left_out(), _codecs_for(judgments)
    )
    numbers = memoryview(packed_answers).cast("q")
    hits = _split_by_file(packed_hits, _HIT_WIDTH)
    matches = _split_by_file(packed_rows, _ROW_WIDTH)
    details = _read_details(packed_details)
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
        answers[place] = ScannedFile(
            judgment,
            found.row_groups,
            found.size,
            found.bytes_read,
            hits.get(number, ()),
            matches.get(number, ()),
            details.get(number, ()),
        )
    return unknown


def _codecs_for(judgments: Sequence[KindJudgment]) -> tuple[Any, ...]:
    """Return the codecs of pages, if any are read."""
    if not any(judgment.confirms for judgment in judgments):
        return ()
    from sbbf_tool.parquet.codecs import COMPILED_CODECS  # most scans read filters alone

    return COMPILED_CODECS


def _split_by_file(packed: bytes, width: int) -> dict[int, memoryview]:
    """Return the numbers of each file. They come in groups of so many, of which the first is that
    of the file; those of a file follow each other."""
    numbers = memoryview(packed).cast("q")
    counts = Counter(numbers[::width].tolist())
    parts = {}
    start = 0
    for file, count in counts.items():
        end = start + count * width
        parts[file] = numbers[start:end]
        start = end
    return parts


def _read_details(packed: bytes) -> dict[int, list[RowGroupDetails]]:
    """Return the details of row groups by file: eight numbers each, and the bytes of min, max and
    filter."""
    details: dict[int, list[RowGroupDetails]] = {}
    position = 0
    while position < len(packed):
        file, number, rows, num_bytes, is_queried, low_bytes, high_bytes, filter_bytes = (
            _DETAIL.unpack_from(packed, position)
        )
        position += _DETAIL.size
        bounds = None
        if low_bytes >= 0:
            middle = position + low_bytes
            low = packed[position:middle]
            position = middle + high_bytes
            bounds = (low, packed[middle:position])
        bitset = packed[position : position + filter_bytes]
        position += filter_bytes
        of_file = details.setdefault(file, [])
        of_file.append(RowGroupDetails(number, rows, num_bytes, bool(is_queried), bounds, bitset))
    return details


def _is_stated_by_folder(path: str, judgment: KindJudgment) -> bool:
    """Return whether the folder of a file states its column: see `doubts.doubt_of_folder`."""
    column = judgment.column
    if column is None:
        return any(column.type is None for column in judgment.report.named_columns)
    if len(column.path) > 1:
        return False
    return statement_of(os.path.dirname(path), column.path[0].casefold()) is not None
