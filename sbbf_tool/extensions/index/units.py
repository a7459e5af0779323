"""The units of one file: the filters of its row groups as they lie in the file, or built from its
data.

A filter is taken if a query would trust it (`file.filter_answers`); otherwise one is built from the
column, as `add-filter` does. A file that may hold any value, for example because a key is missing,
has no unit.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.filter import BLOCK_BYTES, BloomFilter
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.editing.build import HashMemory, build_filter, ensure_buildable, first_bytes
from sbbf_tool.errors import (
    AuthenticationError,
    NoColumnError,
    SbbfError,
    UnreadableError,
    UsageError,
)
from sbbf_tool.extensions.index.segment import describe_type
from sbbf_tool.extensions.index.segment_pages import WHOLE_FILE
from sbbf_tool.file.cross_check import CrossChecks
from sbbf_tool.file.doubts import doubt_of_chunk, doubt_of_filter
from sbbf_tool.file.missing_column import find_missing
from sbbf_tool.file.partitions import partition_values
from sbbf_tool.frozen import Frozen, opt, replace
from sbbf_tool.parquet import equals
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.statistics import key_of, reliable_bounds, stated_bounds
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.rules.satisfaction import FPP_TOLERANCE
from sbbf_tool.verbs.verb import Needs, ReadingVerb, as_name

if TYPE_CHECKING:
    from sbbf_tool.editing.edit import Edit
    from sbbf_tool.file.context import Context
    from sbbf_tool.file.parquet_file import ParquetFile
    from sbbf_tool.file.scan import ScannedFile
    from sbbf_tool.file.scan_kinds import KindJudgment
    from sbbf_tool.file.table_file import TableFile
    from sbbf_tool.verbs.verb import Scanner

_MOST_BOUND_BYTES = 64
"""Longer bounds are not kept, as of long texts."""
_MOST_SCANNED_BYTES = 1 << 16
"""Bytes of the filters of a file that a scan takes: the reports of thousands of files are in memory
while others are opened."""


class FileUnit(Frozen):
    """The filter of a row group, or of several row groups together."""

    row_group: int
    """Number of the row group, or -1 for all row groups."""
    rows: int
    low: bytes | None
    high: bytes | None
    """Bounds of the values, as plain bytes; None if the file does not state reliable ones."""
    bitset: bytes
    fpp: float


class FileUnits(Frozen):
    """What an index keeps of a file."""

    file: str
    type: str
    """Type of the column as JSON; see `segment.describe_type`."""
    rows: int
    units: tuple[FileUnit, ...] = ()
    reason: str | None = None
    """Why the file may hold any value."""
    filter_bytes: int = 0
    data_bytes: int = 0
    """Bytes of the column that were read, in a dry run those that would be read."""
    index_bytes: int = 0
    """In a dry run, about the bytes of the units; otherwise exactly."""
    named_columns: tuple[NamedColumn, ...] = ()


class IndexUnits(ReadingVerb[FileUnits]):
    """Return the units of a file for an index of `column`.

    With `fpp`, the FPPs of all units of the file add up to at most so much, about; without it,
    filters are taken as they lie in the file, and new ones get the usual FPP. A dry run builds
    nothing.
    """

    name = "index"
    report = FileUnits
    column: str = opt("The column of the index", convert=as_name)
    fpp: float | None = opt("The highest FPP of a file", default=None)
    dry_run: bool = opt("Read no data", default=False)
    checks: CrossChecks | None = opt("What the run has compared with another reader", default=None)

    def needs(self) -> Needs:
        return Needs(data=True, columns=(self.column,))

    def scanner(
        self, context: Context, in_table: TableFile | None = None, edit: Edit | None = None
    ) -> Scanner[FileUnits] | None:
        from sbbf_tool.file.scan import FileScan, can_scan

        if self.dry_run or context.keys or not can_scan():
            return None
        scan = FileScan(self._judge_kind, context, in_table)
        return partial(scan.reports, self._report_scanned)

    def _judge_kind(self, file: ParquetFile, key: bytes) -> KindJudgment:
        """Judge what decides which filters are taken of files of the same kind as this one."""
        from sbbf_tool.file.scan_kinds import judge_column

        column = find_column(file.footer.columns, self.column)
        _ensure_excludable(file, column)
        report = FileUnits(
            file.name,
            _describe(column),
            rows=0,
            named_columns=file.name_columns((self.column,)),
        )
        return judge_column(file, key, column, report)

    def _report_scanned(self, path: str, file: ScannedFile) -> FileUnits | None:
        """Return the units of a file with filters that can all be taken; None for another one."""
        column = file.judgment.column
        assert column is not None
        if not file.judgment.is_in_table and _is_stated_by_folder(path, column):
            return None
        num_filters = 0
        for part in file.details:
            num_filters += part.is_queried
        rows = 0
        filter_bytes = 0
        chunks = []
        filters = []
        for part in file.details:
            if part.rows < 0:
                return None
            rows += part.rows
            if not part.is_queried:
                continue
            bloom = _take(part.bitset, self.fpp, num_filters)
            if bloom is None:
                return None
            filter_bytes += len(part.bitset)
            filters.append(bloom)
            chunks.append(_UnitChunk(part.row_group, part.rows, part.bounds))
        units = tuple(_list_units(column, chunks, filters, self.fpp))
        if filter_bytes > _MOST_SCANNED_BYTES or _exclude_too_little(units):
            return None
        changes: dict[str, Any] = {
            "file": path,
            "rows": rows,
            "units": units,
            "filter_bytes": filter_bytes,
            "index_bytes": _bytes_of(units),
        }
        return FileUnits(**{**vars(file.judgment.report), **changes})

    def on(self, file: ParquetFile) -> FileUnits:
        named_columns = file.name_columns((self.column,))
        try:
            column = find_column(file.footer.columns, self.column)
            numbers = _numbers_with_values(file, column)
            if not file.is_in_table and _is_stated_by_folder(file.name, column):
                raise UnreadableError(
                    "a folder states a value of the column, which readers may use in place of the "
                    "stored ones"
                )
            _ensure_excludable(file, column)
            file.expect_filters([column], whole=True, row_groups=numbers)
            report = _Units(self, file, column, numbers).build()
        except AuthenticationError:
            raise
        except NoColumnError as error:
            report = self._report_missing(file, error)
        except SbbfError as error:
            report = FileUnits(file.name, "{}", _rows_of(file), reason=error.message)
        return replace(report, named_columns=named_columns)

    def _report_missing(self, file: ParquetFile, error: NoColumnError) -> FileUnits:
        """Return a unit with an empty filter for a file in which the column is certainly null, and
        none for others without the column."""
        missing = find_missing(file, self.column, strict=False)
        rows = _rows_of(file)
        if missing is None or not missing.is_certain or missing.partition_value is not None:
            return FileUnits(file.name, "{}", rows, reason=error.message)
        unit = FileUnit(WHOLE_FILE, rows, None, None, bytes(sizing.MIN_BYTES), 0.0)
        return FileUnits(file.name, "{}", rows, (unit,))


def _rows_of(file: ParquetFile) -> int:
    row_groups = range(file.footer.num_row_groups)
    return sum(file.footer.num_rows(number) or 0 for number in row_groups)


def _numbers_with_values(file: ParquetFile, column: Column) -> list[int]:
    """Return the row groups that have values of the column. Raises SbbfError for a column chunk of
    which nothing may be excluded."""
    numbers = []
    for number in range(file.footer.num_row_groups):
        if file.is_encrypted(number, column):
            raise UnreadableError("the column is encrypted, and an index would disclose its values")
        if reason := doubt_of_chunk(file, number, column, ()):
            raise UnreadableError(reason)
        if not file.footer.chunk_meta(number, column.index).has_only_nulls:
            numbers.append(number)
    return numbers


def _is_stated_by_folder(path: str, column: Column) -> bool:
    folder_keys = partition_values(f"{os.path.dirname(path)}/")
    return column.path[0].casefold() in map(str.casefold, folder_keys)


def _ensure_excludable(file: ParquetFile, column: Column) -> None:
    """Raise UnreadableError if values of the column may be other ones for a reader than those that
    are hashed."""
    if reason := column.doubt or equals.uncertainty(file.footer, column):
        raise UnreadableError(reason)
    if column.variant:
        raise UnreadableError("VARIANT")
    if column.is_null_typed or column.physical == "BOOLEAN":
        raise UnreadableError(f"no filter excludes values of a column of type {column.type_name}")


class _Units:
    """The units of one file."""

    def __init__(
        self, verb: IndexUnits, file: ParquetFile, column: Column, numbers: list[int]
    ) -> None:
        self._verb = verb
        self._file = file
        self._column = column
        self._numbers = numbers
        self._filter_bytes = 0
        self._data_bytes = 0
        self._planned_bytes = 0

    def build(self) -> FileUnits:
        filters: list[BloomFilter] = []
        for number in self._numbers:
            bloom = self._stored(number) or self._new(number)
            if bloom is not None:
                filters.append(bloom)
        units: tuple[FileUnit, ...] = ()
        if self._verb.dry_run:
            index_bytes = self._planned_bytes + sum(bloom.num_bytes for bloom in filters)
        else:
            chunks = list(map(self._chunk, self._numbers))
            units = tuple(_list_units(self._column, chunks, filters, self._verb.fpp))
            index_bytes = _bytes_of(units)
        if _exclude_too_little(units):
            raise UnreadableError("its filters exclude fewer than half of the values")
        return FileUnits(
            self._file.name,
            _describe(self._column),
            _rows_of(self._file),
            units,
            filter_bytes=self._filter_bytes,
            data_bytes=self._data_bytes,
            index_bytes=index_bytes,
        )

    def _chunk(self, number: int) -> _UnitChunk:
        footer = self._file.footer
        stated = stated_bounds(footer, number, self._column)
        return _UnitChunk(number, footer.num_rows(number) or 0, stated)

    def _stored(self, number: int) -> BloomFilter | None:
        """Return the filter of a row group as it lies in the file; None if a query would not trust
        it, or if it is too weak."""
        file = self._file
        try:
            stored = file.stored_filter(number, self._column)
            if stored is None or doubt_of_filter(file, stored):
                return None
            bitset = file.read_bitset(stored)
        except AuthenticationError:
            raise
        except UnreadableError:
            return None
        self._filter_bytes += len(bitset)
        bitset = bitset[: stored.num_blocks * BLOCK_BYTES]
        return _take(bitset, self._verb.fpp, len(self._numbers))

    def _new(self, number: int) -> BloomFilter | None:
        """Build the filter of a row group from its data, and query it for every value; return None
        in a dry run."""
        file = self._file
        key = (number, self._column.index)
        ensure_buildable(file, number, self._column)
        fpp = self._verb.fpp
        if fpp is None:
            fpp = DEFAULT_FPP
        target = Sizing(fpp / len(self._numbers))
        if self._verb.dry_run:
            self._data_bytes += file.footer.chunk_meta(*key).bytes
            self._planned_bytes += first_bytes(file, key, target)
            return None
        built = build_filter(file, key, target, self._verb.checks or CrossChecks(), HashMemory())
        self._data_bytes += built.bytes_read
        return built.bloom


class _UnitChunk(NamedTuple):
    """What a unit states of a row group."""

    row_group: int
    rows: int
    stated_bounds: tuple[bytes, bytes] | None


def _describe(column: Column) -> str:
    return json.dumps(describe_type(column), sort_keys=True)


def _take(bitset: bytes, fpp: float | None, num_filters: int) -> BloomFilter | None:
    """Return the filter of one of so many row groups as it lies in the file, or folded; None if it
    is too weak. The FPP of a file is at most the sum of those of its units."""
    bloom = BloomFilter(bitset)
    # Filters of other sizes would each need a class of their own.
    if not any(bitset) or bloom.num_blocks & (bloom.num_blocks - 1):
        return None
    if fpp is None:
        is_strong = bloom.fpp <= sizing.SATURATED_FPP / num_filters
        return bloom if is_strong else None
    share = fpp / num_filters
    if bloom.fpp > FPP_TOLERANCE * share:
        return None
    return bloom.fold_to_fpp(share)


def _list_units(
    column: Column, chunks: Sequence[_UnitChunk], filters: list[BloomFilter], fpp: float | None
) -> Iterator[FileUnit]:
    """Yield one unit for all row groups with values if their filters can be united, else one for
    each."""
    united = _unite(filters, fpp)
    if united is not None:
        yield _build_unit(WHOLE_FILE, column, chunks, united)
        return
    for chunk, bloom in zip(chunks, filters, strict=True):
        yield _build_unit(chunk.row_group, column, [chunk], bloom)


def _build_unit(
    row_group: int, column: Column, chunks: Sequence[_UnitChunk], bloom: BloomFilter
) -> FileUnit:
    low, high = _bounds_of(column, chunks) or (None, None)
    rows = sum(chunk.rows for chunk in chunks)
    return FileUnit(row_group, rows, low, high, bytes(bloom.bitset), bloom.fpp)


def _bounds_of(column: Column, chunks: Sequence[_UnitChunk]) -> tuple[bytes, bytes] | None:
    """Return the bounds of row groups; None if they are unknown for one of them."""
    lows: list[bytes] = []
    highs: list[bytes] = []
    for chunk in chunks:
        stated = chunk.stated_bounds
        if stated is None or reliable_bounds(column, stated) is None:
            return None
        if max(map(len, stated)) > _MOST_BOUND_BYTES:
            return None
        low, high = stated
        lows.append(low)
        highs.append(high)
    if not chunks:
        return None
    key = partial(key_of, column)
    return min(lows, key=key), max(highs, key=key)


def _bytes_of(units: Iterable[FileUnit]) -> int:
    return sum(len(unit.bitset) for unit in units)


def _exclude_too_little(units: Iterable[FileUnit]) -> bool:
    return sum(unit.fpp for unit in units) > sizing.SATURATED_FPP


def _unite(filters: list[BloomFilter], fpp: float | None) -> BloomFilter | None:
    """Return one filter for all row groups, if it excludes as much as they do; without `fpp`, as
    much as all of them together."""
    if not filters:
        return BloomFilter.empty(sizing.MIN_BYTES)
    limit = fpp
    if limit is None:
        limit = sum(bloom.fpp for bloom in filters)
    least = min(bloom.num_bytes for bloom in filters)
    united = filters[0].fold_to_bytes(least)
    for bloom in filters[1:]:
        try:
            united |= bloom.fold_to_bytes(least)
        except UsageError:
            return None
        if united.fpp > limit:
            return None
    if fpp is None:
        return united
    return united.fold_to_fpp(fpp)
