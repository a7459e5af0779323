"""Inspect the indexes of the data files of a table, or one `.index` file: facts, and the notes of
the rules that read no data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from sbbf_tool.bloom import sizing
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon import rules
from sbbf_tool.extensions.paimon.bloom64 import KIND, BloomFilter64, parse_bloom64
from sbbf_tool.extensions.paimon.bloom64_spec import compute_sizing
from sbbf_tool.extensions.paimon.fast_hash import key_of
from sbbf_tool.extensions.paimon.files import FileIO, list_names, parse_file
from sbbf_tool.extensions.paimon.index_container import Container, IndexEntry, parse_container
from sbbf_tool.extensions.paimon.index_options import IndexRequest, parse_bloom_columns, why_unused
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.extensions.paimon.reports import (
    BloomFigures,
    IndexColumnTotal,
    IndexFigures,
    InspectedFile,
    PaimonInspectReport,
)
from sbbf_tool.extensions.paimon.table import (
    FILE,
    NONE,
    FileIndex,
    IndexedFile,
    PaimonTable,
    find_index,
    open_table,
)
from sbbf_tool.extensions.paimon.table_schema import (
    DataType,
    TableSchema,
    current_name,
    indexed_type,
    parse_indexed_column,
)
from sbbf_tool.frozen import Frozen
from sbbf_tool.numbers import format_percent
from sbbf_tool.reports.findings import Finding
from sbbf_tool.storage.folders import LocalFolders

PAIMON_KINDS = frozenset((KIND, "bitmap", "bsi", "range-bitmap"))
"""The index types of Paimon 0.8 to 2.1. Paimon's reader fails on other types."""

_FIRST_MISREAD_K = 128
_LARGE_FACTOR = 16
_LARGE_FOR_VALUES = 4
_NOTABLE_RATIO = 1.5
"""How many times more or fewer items than values a diagnosis mentions."""
_SMALL = 1 << 10


class Note(NamedTuple):
    """What a rule found in the index of one data file."""

    rule: str
    fact: str
    column: str | None = None
    """Name in the data file."""

    def to_finding(self, file: str) -> Finding:
        """Return the finding of `inspect`, whose message is the fact."""
        severity = rules.BY_NAME[self.rule].severity
        return Finding(self.rule, severity, file, self.column, self.fact)


class InspectedIndex(Frozen):
    """A data file, its index as Paimon finds it, and the notes about it."""

    file: InspectedFile
    index: FileIndex
    notes: tuple[Note, ...]


class IndexInspector:
    """Inspects the data files of a table one by one; each directory is listed once."""

    def __init__(self, table: PaimonTable) -> None:
        self._table = table
        self._names: dict[str, dict[str, list[str]]] = {}
        """The index files in each directory, by data file."""

    def inspect(self, live: IndexedFile) -> InspectedIndex:
        """Inspect the index of one data file, without reading its data."""
        file = live.file
        index_files = self._list_index_files(live)
        index = find_index(self._table.files, live)
        notes = list(_check_place(live, index))
        figures: tuple[IndexFigures, ...] = ()
        size = len(file.embedded_index or b"")
        if index.container is not None:
            size = len(index.container.data)
            schema = self._table.schema_of(file)
            figures, container_notes = inspect_container(
                index.container, file.row_count, schema, self._table.schema
            )
            notes += container_notes
        unused_reason = why_unused(self._table.schema)
        if index.place != NONE and unused_reason is not None:
            notes.append(Note(rules.UNUSED_INDEX, f"Paimon does not use it: {unused_reason}"))
        for name in index_files:
            if name not in file.index_files:
                fact = f"the snapshot does not refer to {name}; older snapshots may"
                notes.append(Note(rules.UNREFERENCED_INDEX, fact))
        inspected_file = InspectedFile(
            data_file=file.name,
            partition=live.partition_text,
            bucket=live.entry.bucket,
            rows=file.row_count,
            place=index.place,
            index_path=index.path,
            size=size,
            indexes=figures,
        )
        return InspectedIndex(inspected_file, index, tuple(notes))

    def _list_index_files(self, live: IndexedFile) -> Sequence[str]:
        """List the names of the index files of a data file, whether or not they are in use."""
        directory = live.directory
        if live.outside is None and directory not in self._names:
            self._names[directory] = _group_index_files(list_names(self._table.files, directory))
        names_by_data_file = self._names.get(directory, {})
        return names_by_data_file.get(live.file.name, ())


def _check_place(live: IndexedFile, index: FileIndex) -> Iterator[Note]:
    """Yield the notes about the place of an index and about the index as a whole."""
    file = live.file
    if live.outside is not None:
        yield Note(rules.OUTSIDE_TABLE, live.outside)
    if file.embedded_index is not None and file.index_files:
        names = ", ".join(file.index_files)
        yield Note(
            rules.DUPLICATE_INDEX,
            f"an index is in the manifest and in {names}: Paimon reads the one in the manifest",
        )
    if index.problem is not None:
        yield Note(rules.UNREADABLE_INDEX, index.problem)


def _group_index_files(names: Iterable[str]) -> dict[str, list[str]]:
    """Group the index files among the names in a directory by their data file."""
    names_by_data_file: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.endswith(INDEX_SUFFIX):
            names_by_data_file.setdefault(data_file_of(name), []).append(name)
    return names_by_data_file


def inspect_container(
    container: Container,
    rows: int | None = None,
    schema: TableSchema | None = None,
    current_schema: TableSchema | None = None,
) -> tuple[tuple[IndexFigures, ...], tuple[Note, ...]]:
    """Inspect every index of a container; return their figures, and the notes about them.

    `schema` is the schema of the data file, which has `rows` rows, and `current_schema` the current
    one, if known.
    """
    requests = _requests_of(schema)
    figures = []
    notes = []
    for column, kinds in container.indexes.items():
        indexed = parse_indexed_column(column)
        data_type = indexed_type(schema, indexed)
        if schema is not None and data_type is None:
            fact = f"schema {schema.id} has no such column"
            notes.append(Note(rules.UNKNOWN_COLUMN, fact, column))
        for entry in kinds.values():
            bloom, entry_notes = _inspect_index(
                container, column, entry, data_type, requests.get(column)
            )
            notes += entry_notes
            if bloom is not None and rows is not None:
                notes += _check_size(bloom, entry.length, rows, column)
            index_figures = IndexFigures(
                column=column,
                current_column=current_name(schema, current_schema, indexed),
                type=None if data_type is None else str(data_type),
                kind=entry.kind,
                size=entry.length,
                empty=entry.empty,
                bloom=bloom,
            )
            figures.append(index_figures)
    return tuple(figures), tuple(notes)


def _requests_of(schema: TableSchema | None) -> dict[str, IndexRequest]:
    if schema is None:
        return {}
    try:
        return parse_bloom_columns(schema.options)
    except UnreadableError:
        return {}  # an option that is no number; Paimon fails on it


def _inspect_index(
    container: Container,
    column: str,
    entry: IndexEntry,
    data_type: DataType | None,
    request: IndexRequest | None,
) -> tuple[BloomFigures | None, list[Note]]:
    """Return the figures of an index, None for one without a readable filter, and notes."""
    notes = []
    if entry.kind not in PAIMON_KINDS:
        fact = f"unknown index type {entry.kind!r}: Paimon's reader fails"
        notes.append(Note(rules.UNKNOWN_KIND, fact, column))
    if entry.empty:
        fact = "the index is EMPTY: Paimon skips the file for every value"
        notes.append(Note(rules.EMPTY_INDEX, fact, column))
    if entry.kind != KIND or entry.empty:
        return None, notes
    if data_type is not None and key_of(data_type) is None:
        fact = f"Paimon has no hash for {data_type}: its reader fails"
        notes.append(Note(rules.NO_HASH, fact, column))
    try:
        bloom = _inspect_filter(container.body_of(entry), request)
    except UnreadableError as error:
        notes.append(Note(rules.UNREADABLE_INDEX, error.message, column))
        return None, notes
    notes += _check_filter(bloom, column)
    return bloom, notes


def _inspect_filter(body: bytes, request: IndexRequest | None) -> BloomFigures:
    """Inspect a filter; `request` is that of the table's options. Raises UnreadableError."""
    bloom = parse_bloom64(body)
    fill = bloom.fill_ratio
    ndv = bloom.estimated_ndv
    return BloomFigures(
        num_bits=bloom.num_bits,
        k=bloom.k,
        paimon_probes=bloom.paimon_probes,
        fill_ratio=fill,
        estimated_fpp=bloom.estimate_fpp(bloom.paimon_probes),
        estimated_ndv=ndv,
        diagnosis=_diagnose(bloom, fill, ndv, request),
    )


def _check_filter(bloom: BloomFigures, column: str) -> Iterator[Note]:
    """Yield the notes about the bits of a filter."""
    if bloom.k >= _FIRST_MISREAD_K:
        behaviour = "never skips a file"
        if bloom.paimon_probes:
            behaviour = f"checks {bloom.paimon_probes} bits per value"
        fact = f"k = {bloom.k}: Paimon's Java reader takes the bytes of k as signed and {behaviour}"
        yield Note(rules.MANY_HASH_FUNCTIONS, fact, column)
    elif bloom.k == 0:
        yield Note(rules.NO_HASH_FUNCTIONS, "k = 0: the filter never skips a file", column)
    if bloom.fill_ratio == 0:
        fact = (
            "no bit is set: Paimon skips the file for every value, "
            "which is correct only if all values are null"
        )
        yield Note(rules.EMPTY_INDEX_FILTER, fact, column)
    elif bloom.estimated_fpp > sizing.SATURATED_FPP and bloom.paimon_probes:
        fact = (
            f"{bloom.fill_ratio:.0%} of the bits are set: about {bloom.estimated_fpp:.0%} "
            "of absent values pass"
        )
        yield Note(rules.SATURATED_INDEX, fact, column)


def _check_size(bloom: BloomFigures, size: int, rows: int, column: str) -> Iterator[Note]:
    """Yield the notes about the size of an index, in bytes, for a data file of these rows."""
    if not bloom.k or size <= _SMALL:
        return
    needed_bytes = _bytes_for(rows, bloom.k)
    if size > _LARGE_FACTOR * needed_bytes:
        fact = (
            f"{size:,} bytes for {rows:,} rows: {needed_bytes:,} bytes are enough even if "
            "all values are distinct"
        )
        yield Note(rules.LARGE_FOR_ROWS, fact, column)
    elif bloom.estimated_ndv and bloom.diagnosis:
        needed_bytes = _bytes_for(round(bloom.estimated_ndv), bloom.k)
        if size > _LARGE_FOR_VALUES * needed_bytes:
            yield Note(rules.LARGE_FOR_VALUES, bloom.diagnosis, column)


def _bytes_for(values: int, k: int) -> int:
    """Return the bytes of an index in which this many values set half of the bits.

    With k hash functions these are k / ln 2 bits per value.
    """
    num_bits = max(1, values) * k / math.log(2)
    return math.ceil(num_bits / 8) + 4


def _diagnose(
    bloom: BloomFilter64, fill: float, ndv: float | None, request: IndexRequest | None
) -> str | None:
    """Return what the fill ratio says of the number of items.

    Return None if the number fits the values, or cannot be known.
    """
    if not bloom.k or fill == 0:
        return None
    items = _items_of(bloom, request)
    if items is not None:
        capacity = float(items)
        size = f"items = {items}"
    else:
        capacity = bloom.num_bits * math.log(2) / bloom.k
        size = f"its size for {capacity:,.0f} values"
    start = f"{format_percent(fill)} full where 50 % is best: {size}"
    if ndv is None:
        return f"{start} is too few"
    ratio = capacity / max(1.0, ndv)
    if ratio >= _NOTABLE_RATIO:
        times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
        return f"{start} is {times} x the {ndv:,.0f} values"
    if ratio <= 1 / _NOTABLE_RATIO:
        return f"{start} is less than the {ndv:,.0f} values"
    return None


def _items_of(bloom: BloomFilter64, request: IndexRequest | None) -> int | None:
    """Return the items of the options if Paimon gives a filter of these the size of this one."""
    if request is None or request.items is None:
        return None
    try:
        num_bits, k = compute_sizing(request.items, request.fpp)
    except UsageError:
        return None
    return request.items if (num_bits, k) == (bloom.num_bits, bloom.k) else None


def inspect_paimon(
    target: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    files: FileIO | None = None,
) -> PaimonInspectReport:
    """Inspect a table (its directory), by default at its latest snapshot, or a container (a path
    that ends in `.index`).

    Raises UnreadableError if the target is neither of them; broken indexes of a table are reported
    as findings.
    """
    path = os.fsdecode(target)
    files = files or LocalFolders()
    if path.endswith(INDEX_SUFFIX):
        if snapshot is not None or branch is not None:
            raise UsageError("an index file has no snapshots and no branches", file=path)
        return _inspect_index_file(files, path)
    table = open_table(files, path, snapshot=snapshot, branch=branch, allow_outside=allow_outside)
    inspector = IndexInspector(table)
    reports = []
    findings = []
    for live in table.live_files:
        inspected = inspector.inspect(live)
        reports.append(inspected.file)
        findings += [note.to_finding(live.file.name) for note in inspected.notes]
    return PaimonInspectReport(
        table.path, table.snapshot_id, tuple(reports), _sum_columns(reports), tuple(findings)
    )


def _inspect_index_file(files: FileIO, path: str) -> PaimonInspectReport:
    container = parse_file(files, path, parse_container)
    figures, notes = inspect_container(container)
    file = InspectedFile(
        data_file=path,
        partition="",
        bucket=None,
        rows=None,
        place=FILE,
        index_path=path,
        size=len(container.data),
        indexes=figures,
    )
    findings = tuple(note.to_finding(path) for note in notes)
    return PaimonInspectReport(path, None, (file,), _sum_columns([file]), findings)


def _sum_columns(files: Sequence[InspectedFile]) -> tuple[IndexColumnTotal, ...]:
    sizes: dict[str, list[int]] = {}
    rates: dict[str, list[float]] = {}
    for file in files:
        for index in file.indexes:
            if index.bloom is not None:
                column = index.current_column or index.column
                sizes.setdefault(column, []).append(index.size)
                rates.setdefault(column, []).append(index.bloom.estimated_fpp)
    return tuple(
        IndexColumnTotal(
            column=column,
            files_with_filter=len(sizes[column]),
            files=len(files),
            filter_bytes=sum(sizes[column]),
            mean_fpp=fmean(rates[column]),
        )
        for column in sizes
    )
