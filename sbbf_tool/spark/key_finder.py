"""The rows that have the keys of one block: the work of `key_rows` on executors."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from sbbf_tool.errors import SbbfError
from sbbf_tool.file.context import Context
from sbbf_tool.file.texts import Integers, Texts
from sbbf_tool.frozen import Frozen
from sbbf_tool.reports.plain import restore_bytes
from sbbf_tool.reports.probe import CANNOT_SAY, PRESENT
from sbbf_tool.reports.rows import FAILED, ListedFile
from sbbf_tool.running.discover import skip
from sbbf_tool.running.work import Work
from sbbf_tool.spark.key_types import KeyTypes
from sbbf_tool.verbs.probe import Probe

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sbbf_tool.file.keys import KeysLike
    from sbbf_tool.file.scan import ScannedFile
    from sbbf_tool.reports.probe import Hit

LEFT = "left to Spark"
"""Status of a file whose rows Spark finds; the reason is the type of its column."""
_FILES_PER_SCAN = 128
_ROWS_PER_BATCH = 100_000
_PLACE = attrgetter("row_group", "row", "position")
_REASON = attrgetter("reason")
_NO_ROW = np.zeros(0, np.int64)


class Search(Frozen):
    """What is looked for, and how files are opened."""

    column: str
    types: KeyTypes
    strict: bool
    keys: KeysLike = None


class Block(Frozen):
    """Distinct keys, as a stream of Arrow."""

    stream: bytes
    is_whole: bool
    """Whether it has all keys; otherwise they are too many, or of a type that is not sorted, and it
    has none."""

    def keys(self) -> pa.Array:
        with pa.ipc.open_stream(self.stream) as reader:
            return reader.read_all().column(0).combine_chunks()


class FoundRows(NamedTuple):
    """Rows of files that have a key; or one file that is not searched, without rows."""

    paths: pa.Array
    keys: pa.Array
    row_groups: NDArray[np.int64] = _NO_ROW
    rows: NDArray[np.int64] = _NO_ROW
    status: str = PRESENT
    reason: str | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the columns path, row_group, row, key, status and reason."""
        count = len(self.paths)
        columns = {
            "path": self.paths,
            "row_group": pa.array(self.row_groups),
            "row": pa.array(self.rows),
            "key": self.keys,
            "status": pa.repeat(pa.scalar(self.status), count),
            "reason": pa.repeat(pa.scalar(self.reason, pa.string()), count),
        }
        if self.status != PRESENT:
            columns["row_group"] = columns["row"] = pa.nulls(count, pa.int64())
        batch = pa.RecordBatch.from_pydict(columns)
        for start in range(0, count, _ROWS_PER_BATCH):
            yield batch.slice(start, _ROWS_PER_BATCH)


class _LeftToSparkError(SbbfError):
    """Spark alone compares the keys with a column of the type that is the message."""


def name_of(file: ListedFile) -> str:
    """Return the name by which a file is opened; none if it is skipped."""
    return "" if file.skipped else restore_bytes(file.path)


def finder_of(block: Block, search: Search) -> KeyFinder:
    """Return what finds the keys of a block. The tasks of a worker share it, so that keys are
    parsed and hashed once."""
    if search.keys is None:
        return _reused_finder(block, search)
    return KeyFinder(block, search)


@lru_cache(maxsize=1)
def _reused_finder(block: Block, search: Search) -> KeyFinder:
    return KeyFinder(block, search)


class KeyFinder:
    """Finds the rows that have the keys of one block."""

    def __init__(self, block: Block, search: Search) -> None:
        self._block = block
        self._types = search.types
        self._keys = block.keys()
        self._comparable: dict[Any, bool] = {}
        verb = Probe(search.column, _values_of(self._keys), rows=True, compares=self._compare)
        self._work = Work(verb, Context(search.keys, strict=search.strict))
        self._scan = verb.file_scan(self._work.context)

    def find(self, files: Sequence[ListedFile]) -> Iterator[FoundRows]:
        """Yield the rows of files, and each file that is not searched."""
        for start in range(0, len(files), _FILES_PER_SCAN):
            part = files[start : start + _FILES_PER_SCAN]
            scanned = self._scan_files(part)
            found = self._collect(part, scanned)
            if found is not None:
                yield found
            for file, answer in zip(part, scanned, strict=True):
                if answer is None:
                    yield from self._search(file)

    def _scan_files(self, files: Sequence[ListedFile]) -> Sequence[ScannedFile | None]:
        if self._scan is None or not self._block.is_whole:
            return [None] * len(files)
        return self._scan(list(map(name_of, files)))

    def _collect(
        self, files: Sequence[ListedFile], scanned: Sequence[ScannedFile | None]
    ) -> FoundRows | None:
        """Return the rows of those files that were scanned; None if there are none."""
        counts = [0] * len(files)
        row_groups = []
        rows = []
        positions = []
        for at, answer in enumerate(scanned):
            if answer is None or not answer.matches:
                continue
            numbers = answer.match_columns()
            counts[at] = len(numbers.rows)
            row_groups.append(numbers.row_groups)
            rows.append(numbers.rows)
            positions.append(numbers.positions)
        if not rows:
            return None
        paths = pa.array([file.path for file in files], pa.string())
        return FoundRows(
            paths.take(pa.array(np.repeat(range(len(files)), counts))),
            self._keys.take(pa.array(np.concatenate(positions))),
            np.concatenate(row_groups),
            np.concatenate(rows),
        )

    def _search(self, file: ListedFile) -> Iterator[FoundRows]:
        """Open a file, and yield its rows; if not all of them are certain, say why."""
        row = skip(file) if file.skipped else self._work(restore_bytes(file.path))
        report = row.report
        if isinstance(row.error, _LeftToSparkError):
            yield self._without_rows(file, LEFT, row.error.message)
        elif report is None:
            yield self._without_rows(file, row.status, row.reason)
        else:
            matches = map(_PLACE, report.rows)
            while part := list(islice(matches, _ROWS_PER_BATCH)):
                row_groups, rows, positions = np.array(part, np.int64).T.copy()
                paths = pa.repeat(pa.scalar(file.path), len(part))
                keys = self._keys.take(pa.array(positions))
                yield FoundRows(paths, keys, row_groups, rows)
            uncertain = filter(_is_uncertain, report.hits)
            doubts = list(map(_REASON, (*uncertain, *report.inconclusive)))
            if report.unreadable:
                yield self._without_rows(file, FAILED, "; ".join(report.unreadable))
            elif doubts:
                yield self._without_rows(file, CANNOT_SAY, doubts[0])

    def _without_rows(self, file: ListedFile, status: str, reason: str | None) -> FoundRows:
        key = pa.nulls(1, self._keys.type)
        return FoundRows(pa.array([file.path]), key, status=status, reason=reason)

    def _compare(self, column: Any) -> bool:
        """Raise _LeftToSparkError unless all keys are compared with a column by their own value."""
        form = (column.physical, column.logical, column.doubt)
        is_comparable = self._comparable.get(form)
        if is_comparable is None:
            accepts = self._block.is_whole and self._types.compare(column)
            if callable(accepts):
                accepts = all(map(accepts, self._keys.to_pylist()))
            is_comparable = accepts
            self._comparable[form] = is_comparable
        if not is_comparable:
            raise _LeftToSparkError(column.type_name)
        return True


def _is_uncertain(hit: Hit) -> bool:
    return hit.answer != PRESENT


def _values_of(keys: pa.Array) -> Sequence[object]:
    """Return the keys as values of a query; text and integers in one block."""
    block: type[Texts]
    if pa.types.is_integer(keys.type):
        block = Integers
    elif pa.types.is_string(keys.type):
        block = Texts
    else:
        return tuple(keys.to_pylist())
    _, offset_buffer, data = keys.cast(pa.large_string()).buffers()
    offsets = array("q")
    offsets.frombytes(memoryview(offset_buffer)[: offsets.itemsize * (len(keys) + 1)])
    return block(data.to_pybytes() if data else b"", offsets)
