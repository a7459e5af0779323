"""Verification that the page reader read the right values, by two independent means: the footer's
statistics, and pyarrow.

statistics     for every chunk: every value is within min_value and max_value, and the number of
               nulls is null_count
pyarrow        the filter holds every value that pyarrow decodes, and both count the same number of
               values: for one chunk of each kind that lacks statistics or whose writer the tests do
               not cover, and for every chunk that contradicts its statistics

A filter built from wrongly read pages excludes stored values, and reading the pages again in the
same way does not reveal this. Chunks that pyarrow decoded in the first place are compared with
statistics only.
"""

from __future__ import annotations

import os
import re
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.parquet.statistics import StatisticsCheck
from sbbf_tool.storage.threads import holding

if TYPE_CHECKING:
    from sbbf_tool.file.chunk_hashes import StoredValues


TESTED = frozenset(
    {
        ("parquet-cpp-arrow", "14.0.1"),
        ("parquet-cpp-arrow", "26.0.1"),
        ("DuckDB", "v2.0.0"),
        ("DuckDB", "v2.0.1"),
        ("parquet-mr", "1.17.0"),
        ("fastparquet-python", "2026.9.0"),
    }
)
"""Writers whose pages the tests compare, value by value, with the values that pyarrow decodes."""

# An application and its version, as parquet.thrift specifies for `FileMetaData`.
_CREATED_BY = re.compile(r"(?P<application>.*?)\s+version\s+(?P<version>[^\s(]+)", re.DOTALL)


class Verdict(NamedTuple):
    """The result for one chunk."""

    is_cross_checked: bool = False
    """Whether pyarrow also decoded the chunk, to the same values."""
    is_undecodable: bool = False
    """Whether pyarrow should also have decoded the chunk but cannot."""
    wrong_statistics: tuple[str, ...] = ()
    """The statistics in the footer that the values of the chunk contradict."""


NO_FINDING = Verdict()


class CrossChecks:
    """The kinds of chunk that pyarrow has also decoded. One object serves a run; threads may share
    it.

    A kind is the writer with its version, the column type, the encodings, the page types and the
    levels. However often the object is sent to another process, that process has one copy, which
    knows only the kinds found there.
    """

    def __init__(self, run: str | None = None) -> None:
        self._run = run or os.urandom(16).hex()
        self._lock = Lock()
        self._kinds: dict[object, _Kind] = {}

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return _in_this_process, (self._run,)

    def verify(
        self,
        file: ParquetFile,
        key: ChunkKey,
        values: StoredValues,
        check: StatisticsCheck,
        bloom: BloomFilter,
    ) -> Verdict:
        """Verify a filter built from `values`, which `check` has already seen. Raises RefusedError
        if pyarrow decodes other values."""
        contradictions = check.contradictions(values.non_null_count)
        if values.are_decoded:
            return Verdict(wrong_statistics=contradictions)
        if contradictions:
            try:
                wrong_statistics = _decode(file, key, values, check, bloom)
            except UnreadableError as error:
                facts = ", ".join(contradictions)
                reason = f"{facts}, and pyarrow cannot decode it ({error.message})"
                raise _refusal(file, key, reason) from error
            # No contradiction remains if only unused entries of a dictionary contradicted the
            # statistics.
            return Verdict(is_cross_checked=True, wrong_statistics=wrong_statistics)
        if check.is_complete and is_tested(file.footer.metadata.created_by):
            return NO_FINDING
        kind = self._kind(file, key, values)
        with holding(kind.lock):
            if kind.is_checked:
                return NO_FINDING
            try:
                wrong_statistics = _decode(file, key, values, check, bloom)
            except UnreadableError:
                return Verdict(is_undecodable=True)
            kind.is_checked = True
            return Verdict(is_cross_checked=True, wrong_statistics=wrong_statistics)

    def _kind(self, file: ParquetFile, key: ChunkKey, values: StoredValues) -> _Kind:
        meta = file.footer.chunk_meta(*key)
        column = file.footer.columns[key[1]]
        description = (
            file.footer.metadata.created_by,
            column.type_name,
            meta.encodings,
            meta.page_types | values.page_types,
            (column.max_definition, column.max_repetition),
        )
        with self._lock:
            return self._kinds.setdefault(description, _Kind())


@lru_cache(maxsize=8)
def _in_this_process(run: str) -> CrossChecks:
    """Return the object of a run in this process. Checks of one run do not count for another
    run."""
    return CrossChecks(run)


class _Kind:
    """Whether a chunk of one kind was decoded; hold the lock to read it."""

    def __init__(self) -> None:
        self.is_checked = False
        self.lock = Lock()


def _decode(
    file: ParquetFile,
    key: ChunkKey,
    values: StoredValues,
    check: StatisticsCheck,
    bloom: BloomFilter,
) -> tuple[str, ...]:
    """Decode a chunk with pyarrow and return which statistics the values contradict.

    Raises RefusedError if pyarrow decodes other values than `values`, UnreadableError if it cannot
    decode the chunk.
    """
    row_group, number = key
    column = file.footer.columns[number]
    decoded_values = StatisticsCheck(file.footer, row_group, column)
    count = 0
    missing = 0
    for run in file.values(row_group, column):
        missing += bloom.count_missing(run.hashes())
        decoded_values.add(run.extremes())
        count += len(run)
    if missing:
        raise _refusal(
            file, key, f"pyarrow decodes {missing:,} values that the page reader did not read"
        )
    figures = (values.count, check.smallest, check.largest)
    decoded_figures = (count, decoded_values.smallest, decoded_values.largest)
    if values.non_null_count is not None and figures != decoded_figures:
        raise _refusal(
            file,
            key,
            f"the page reader reads {values.count:,} values, but pyarrow decodes {count:,}, or "
            "different ones",
        )
    return decoded_values.contradictions(count)


def is_tested(created_by: str | None) -> bool:
    """Return whether the tests cover this version of this writer; False if the file does not state
    both."""
    if not isinstance(created_by, str):
        return False
    match = _CREATED_BY.match(created_by)
    if match is None:
        return False
    application = match["application"].strip()
    return (application, match["version"]) in TESTED


def _refusal(file: ParquetFile, key: ChunkKey, reason: str) -> RefusedError:
    return RefusedError(
        f"its values cannot be read with certainty: {reason}",
        file=file.name,
        place=f"column {file.footer.columns[key[1]].name}, row group {key[0]}",
        hint="omit the column, or rewrite the file; if other readers agree on its values, "
        "please report a bug in sbbf",
    )
