"""`inspect`: report which column chunks have a filter, and how selective each is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Unpack

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import sizing
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.layout import unreferenced_ranges
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen, opt
from sbbf_tool.numbers import format_count
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import FilterHeader, StoredFilter
from sbbf_tool.parquet.pages import ChunkMeta
from sbbf_tool.query_engines.uses import list_warnings_in
from sbbf_tool.query_engines.verdicts import as_engines
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.reports.tabular import Tabular
from sbbf_tool.rules.notes import find_locked, key_notes, other_file_notes, type_notes
from sbbf_tool.storage.inputs import Readable
from sbbf_tool.verbs.verb import Needs, ReadingVerb, ReadOptions


class FilterReport(Frozen):
    """Column chunk and its filter; all fields from `offset` on are None if there is no filter, or
    it is `unreadable`."""

    row_group: int
    column: str
    physical_type: str
    logical_type: str | None
    chunk_bytes: int
    """Compressed bytes of the pages of the chunk."""
    num_values: int
    """Number of values according to the metadata, including nulls."""
    has_filter: bool
    offset: int | None = None
    header_bytes: int | None = None
    bitset_bytes: int | None = None
    stated_length: int | None = None
    """`bloom_filter_length` in the footer."""
    blocks: int | None = None
    fill_ratio: float | None = None
    """Share of bits set."""
    estimated_fpp: float | None = None
    """False-positive rate, estimated from the bits that are set."""
    estimated_ndv: float | None = None
    """Number of distinct values, estimated from the bits that are set; None if the filter is
    saturated."""
    bits_per_value: float | None = None
    share_of_chunk: float | None = None
    """Bytes of the filter per byte of the pages of the chunk."""
    warnings: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    """For a filter with the header of a draft: the dialects that the header fits."""
    dialect: str | None = None
    """The one of these dialects in which the filter holds the values of the column; None if there
    is none or several."""
    unreadable: str | None = None
    """Why the filter cannot be read: its bytes contradict the format."""
    saturated: bool = False
    """Whether the filter excludes fewer than half of the absent values."""
    encrypted: bool = False
    """Whether the column is encrypted. Header and bitset are then encrypted modules, whose overhead
    counts in `header_bytes`."""


class ColumnTotal(Frozen):
    """A column over all row groups."""

    column: str
    row_groups_with_filter: int
    """Number of row groups that have a filter; filters that are `unreadable` do not count."""
    row_groups: int
    filter_bytes: int
    chunk_bytes: int
    mean_fpp: float | None
    """Mean over the row groups whose fpp could be estimated: the share of row groups without the
    value that are read anyway."""


class UnreferencedRange(Frozen):
    """Bytes that nothing in the footer refers to."""

    offset: int
    length: int
    kind: str


class InspectReport(Tabular):
    _row = FilterReport
    _first = ("file",)

    file: str
    file_bytes: int
    footer_bytes: int
    created_by: str | None
    rows: int
    row_groups: int
    filters: tuple[FilterReport, ...]
    columns: tuple[ColumnTotal, ...]
    unreferenced: tuple[UnreferencedRange, ...]
    notes: tuple[str, ...] = ()
    named_columns: tuple[NamedColumn, ...] = ()
    """What the file has under each of the names of columns that were given."""
    locked_columns: tuple[str, ...] = ()
    """Columns whose metadata is encrypted and whose key was not given; they may have filters."""

    @property
    def unreadable_filters(self) -> tuple[FilterReport, ...]:
        return tuple(filter(attrgetter("unreadable"), self.filters))

    def _summary(self) -> str:
        num_filters = sum(chunk.has_filter for chunk in self.filters)
        return f"{self.file}: {format_count(num_filters, 'filter')}"


_SATURATED = "saturated: it excludes fewer than half of the absent values"
_EMPTY = "empty, but the column chunk has values: readers that use it find none of them"


class Inspect(ReadingVerb[InspectReport]):
    """Inspect the file's Bloom filters: one `FilterReport` per filter, and with `all_chunks` one
    per chunk without a filter.

    `columns` names the columns to inspect (if empty, all columns). With `quick` only headers
    are read: figures that need the bitset are None, and unreferenced bytes are not searched, as
    with `search=False`. A filter whose bytes contradict the format is reported as
    `unreadable`. Raises UnreadableError (not a Parquet file), UsageError (no such column),
    RefusedError (encrypted footer without a key).
    """

    name = "inspect"
    report = InspectReport
    columns: Iterable[str] = opt("Only these columns", default=(), convert=as_names)
    all_chunks: bool = opt("Also column chunks without a filter", default=False)
    quick: bool = opt("Read only footers and headers", default=False)
    search: bool = opt("Search for unreferenced bytes", default=True)
    engine_names: Iterable[str] = opt(
        "The query engines that warnings are about", default=(), convert=as_engines
    )

    def needs(self) -> Needs:
        return Needs(columns=tuple(self.columns))

    def on(self, file: ParquetFile) -> InspectReport:
        names = tuple(self.columns)
        chosen = file.find_columns(names)
        file.expect_filters(chosen, whole=not self.quick, headers_only=self.quick)
        rows = []
        filters = []
        for row_group, column in self._chunks(file, chosen):
            row, stored = _chunk_report(file, row_group, column, not self.quick)
            rows.append(row)
            if stored is not None:
                filters.append(stored)
        has_all_columns = len(chosen) == len(file.footer.columns)
        is_readable = not any(row.unreadable for row in rows)
        unreferenced = []
        if self.search and not self.quick and has_all_columns and is_readable:
            for unit in unreferenced_ranges(file, filters):
                gap = UnreferencedRange(unit.start, unit.length, unit.kind)
                unreferenced.append(gap)
        locked = find_locked(file)
        locked_columns = [column.name for column in chosen if column.index in locked]
        metadata = file.footer.metadata
        return InspectReport(
            file=file.name,
            file_bytes=file.source.size,
            footer_bytes=file.footer.stored_bytes,
            created_by=metadata.created_by,
            rows=metadata.num_rows or 0,
            row_groups=file.footer.num_row_groups,
            filters=tuple(rows),
            columns=_totals(file, chosen, rows, self.all_chunks),
            unreferenced=tuple(unreferenced),
            notes=(
                *other_file_notes(file),
                *type_notes(file, chosen),
                *_engine_notes(file, chosen, rows, self.engine_names),
                *key_notes(file),
            ),
            named_columns=file.name_columns(names),
            locked_columns=tuple(locked_columns),
        )

    def _chunks(self, file: ParquetFile, columns: Sequence[Column]) -> Iterator[tuple[int, Column]]:
        """Yield row group and column of each chunk that the report has a row for."""
        places = None
        if not self.all_chunks:
            # Most chunks of a wide file have no filter, and a report for each would cost more than
            # reading the footer.
            places = file.footer.filter_places({column.index for column in columns})
            if not places:
                return
        for row_group in range(file.footer.num_row_groups):
            for column in columns:
                if places is None or (row_group, column.index) in places:
                    yield row_group, column


def inspect(
    path: Readable,
    columns: Iterable[str] = (),
    *,
    all_chunks: bool = False,
    quick: bool = False,
    search: bool = True,
    engines: Iterable[str] = (),
    engine_names: Iterable[str] = (),
    **options: Unpack[ReadOptions],
) -> InspectReport:
    """Inspect the filters of one file; see `Inspect`, in which `engines` are `engine_names`, and
    `ReadingVerb` for the options."""
    return Inspect(columns, all_chunks, quick, search, engines or engine_names)(path, **options)


def _chunk_report(
    file: ParquetFile, row_group: int, column: Column, measure: bool
) -> tuple[FilterReport, StoredFilter | None]:
    """Return the report on a chunk, and its filter as far as it can be read."""
    meta = file.footer.chunk_meta(row_group, column.index)
    place = file.footer.filter_place(row_group, column.index)
    fields: dict[str, Any] = {}
    stored: StoredFilter | None = None
    encryption = None
    if meta.is_encrypted:
        encryption = file.encryption_of(row_group, column)
    if encryption:
        fields["warnings"] = (encryption,)
    elif place is None:
        fields["warnings"] = _offset_warnings(meta)
    else:
        fields.update(offset=place.offset, stated_length=place.length)
        try:
            stored = file.stored_filter(row_group, column)
            assert stored is not None
            of_draft: dict[str, Any] = {}
            if stored.header.readings:
                stored, of_draft = _draft(file, stored, measure)
            fields |= _of_header(stored, meta.bytes)
            if measure and not stored.header.unsupported_reason:
                fields |= _of_bitset(file, stored)
                if fields["saturated"]:
                    fields["warnings"] += (_SATURATED,)
                elif not fields["fill_ratio"] and meta.non_null_values:
                    fields["warnings"] += (_EMPTY,)
            fields |= of_draft
        except UnreadableError as error:
            fields["unreadable"] = error.with_place
    report = FilterReport(
        row_group=row_group,
        column=column.name,
        physical_type=column.physical,
        logical_type=str(column.logical) if column.logical else None,
        chunk_bytes=meta.bytes,
        num_values=meta.values or 0,
        has_filter=place is not None,
        encrypted=meta.is_encrypted,
        **fields,
    )
    return report, stored


def _of_header(stored: StoredFilter, chunk_bytes: int) -> dict[str, Any]:
    """Return the fields of a report that come from a filter's header."""
    warnings = stored.warnings()
    if stored.header.unsupported_reason:
        warnings.insert(0, f"its bits cannot be interpreted: {stored.header.unsupported_reason}")
    return {
        "header_bytes": stored.header_bytes + stored.bitset_bytes - stored.header.num_bytes,
        "bitset_bytes": stored.header.num_bytes,
        "blocks": stored.num_blocks,
        "share_of_chunk": stored.length / chunk_bytes if chunk_bytes > 0 else None,
        "warnings": tuple(warnings),
    }


def _of_bitset(file: ParquetFile, stored: StoredFilter) -> dict[str, Any]:
    """Return the fields of a report that come from a filter's bitset."""
    bloom = BloomFilter(file.read_bitset(stored))
    ndv = None if math.isinf(bloom.estimated_ndv) else bloom.estimated_ndv
    return {
        "fill_ratio": bloom.fill_ratio,
        "estimated_fpp": bloom.fpp,
        "estimated_ndv": ndv,
        "bits_per_value": stored.header.num_bytes * 8 / ndv if ndv else None,
        "saturated": bloom.fpp > sizing.SATURATED_FPP,
    }


def _draft(
    file: ParquetFile, stored: StoredFilter, measure: bool
) -> tuple[StoredFilter, dict[str, Any]]:
    """Read the filter of a draft in the dialect that its values determine; return it with the
    report's fields about the dialect."""
    from sbbf_tool.file.drafts import recognise_draft  # few files have filters of a draft

    header = stored.header
    dialects = []
    lengths = set()
    for possible in header.readings:
        dialects.append(possible.dialect.name)
        lengths.add(possible.length)
    dialect = None
    read_as = stored
    dialect_note = "the values of the column were not compared"
    if measure:
        reading = recognise_draft(file, stored)
        if reading is None:
            dialect_note = "the values of the column match several or none"
        else:
            dialect = reading.dialect.name
            read_as = reading.stored
            dialect_note = f"the values of the column match {dialect}"
    if len(lengths) == 1:  # every reading has the same bitset
        read_as = stored._replace(header=FilterHeader(header.length, header.num_bytes))
    warning = f"no reader uses it: {header.unsupported_reason}; {dialect_note}"
    return read_as, {
        "dialects": tuple(dialects),
        "dialect": dialect,
        "warnings": (warning, *read_as.warnings()),
    }


def _offset_warnings(meta: ChunkMeta) -> tuple[str, ...]:
    offset, _ = meta.stated_filter
    if offset is None:
        return ()
    return (f"bloom_filter_offset is {offset}, which means that there is no filter",)


def _engine_notes(
    file: ParquetFile,
    columns: Sequence[Column],
    rows: Sequence[FilterReport],
    engines: Iterable[str],
) -> Iterator[str]:
    """Yield a line for each column with a filter that some engine uses less than expected."""
    filtered = {row.column for row in rows if row.has_filter}
    for column in columns:
        if column.name in filtered:
            warnings = list_warnings_in(file.footer, column, engines)
            if warnings:
                yield f"column {column.name}: {'; '.join(warnings)}"


def _totals(
    file: ParquetFile, columns: Sequence[Column], rows: list[FilterReport], all_chunks: bool
) -> tuple[ColumnTotal, ...]:
    with_filter: dict[str, list[FilterReport]] = {}
    for row in rows:
        if row.has_filter:
            with_filter.setdefault(row.column, []).append(row)
    totals = []
    for column in columns:
        filters = with_filter.get(column.name, [])
        if not filters and not all_chunks:
            continue
        rates = []
        filter_bytes = 0
        for row in filters:
            filter_bytes += (row.header_bytes or 0) + (row.bitset_bytes or 0)
            if row.estimated_fpp is not None:
                rates.append(row.estimated_fpp)
        chunk_bytes = 0
        for number in range(file.footer.num_row_groups):
            chunk_bytes += file.footer.chunk_meta(number, column.index).bytes
        total = ColumnTotal(
            column=column.name,
            row_groups_with_filter=sum(row.unreadable is None for row in filters),
            row_groups=file.footer.num_row_groups,
            filter_bytes=filter_bytes,
            chunk_bytes=chunk_bytes,
            mean_fpp=sum(rates) / len(rates) if rates else None,
        )
        totals.append(total)
    return tuple(totals)
