"""Inspect the indexes of the data files of a table, or one `.index` file: facts, and the notes of
the rules that read no data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
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
        return Finding(self.rule, rules.BY_NAME[self.rule].severity, file, self.column, self.fact)


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
        file, notes = live.file, []
        if live.outside is not None:
            notes.append(Note(rules.OUTSIDE_TABLE, live.outside))
        elif live.directory not in self._names:
            self._names[live.directory] = _group_index_files(
                list_names(self._table.files, live.directory)
            )
        index = find_index(self._table.files, live)
        if file.embedded_index is not None and file.index_files:
            fact = (
                f"an index is in the manifest and in {', '.join(file.index_files)}: "
                "Paimon reads the one in the manifest"
            )
            notes.append(Note(rules.DUPLICATE_INDEX, fact))
        if index.problem is not None:
            notes.append(Note(rules.UNREADABLE_INDEX, index.problem))
        figures: tuple[IndexFigures, ...] = ()
        if index.container is not None:
            schema = self._table.schema_of(file)
            figures = inspect_container(
                index.container, notes, file.row_count, schema, self._table.schema
            )
        if index.place != NONE and (unused_reason := why_unused(self._table.schema)):
            notes.append(Note(rules.UNUSED_INDEX, f"Paimon does not use it: {unused_reason}"))
        notes += (
            Note(
                rules.UNREFERENCED_INDEX,
                f"the snapshot does not refer to {name}; older snapshots may",
            )
            for name in self._names.get(live.directory, {}).get(file.name, ())
            if name not in file.index_files
        )
        size = len(index.container.data) if index.container else len(file.embedded_index or b"")
        place = (live.partition_text, live.entry.bucket, file.row_count, index.place, index.path)
        return InspectedIndex(InspectedFile(file.name, *place, size, figures), index, tuple(notes))


def _group_index_files(names: Iterable[str]) -> dict[str, list[str]]:
    """Group the index files among the names in a directory by their data file."""
    names_by_data_file: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.endswith(INDEX_SUFFIX):
            names_by_data_file.setdefault(data_file_of(name), []).append(name)
    return names_by_data_file


def inspect_container(
    container: Container,
    notes: list[Note],
    rows: int | None = None,
    schema: TableSchema | None = None,
    current_schema: TableSchema | None = None,
) -> tuple[IndexFigures, ...]:
    """Inspect every index of a container and append to `notes`.

    `schema` is the schema of the data file, which has `rows` rows, and `current_schema` the current
    one, if known.
    """
    requests = _requests_of(schema)
    figures = []
    for column, kinds in container.indexes.items():
        indexed = parse_indexed_column(column)
        data_type = indexed_type(schema, indexed)
        if schema is not None and data_type is None:
            notes.append(
                Note(rules.UNKNOWN_COLUMN, f"schema {schema.id} has no such column", column)
            )
        current_column = current_name(schema, current_schema, indexed)
        for kind, entry in kinds.items():
            bloom = _inspect_index(container, notes, column, entry, data_type, requests.get(column))
            if bloom is not None and rows is not None:
                notes += _check_size(bloom, entry.length, rows, column)
            type_text = str(data_type) if data_type else None
            figures.append(
                IndexFigures(
                    column, current_column, type_text, kind, entry.length, entry.empty, bloom
                )
            )
    return tuple(figures)


def _requests_of(schema: TableSchema | None) -> dict[str, IndexRequest]:
    try:
        return parse_bloom_columns(schema.options) if schema is not None else {}
    except UnreadableError:
        return {}  # an option that is no number; Paimon fails on it


def _inspect_index(
    container: Container,
    notes: list[Note],
    column: str,
    entry: IndexEntry,
    data_type: DataType | None,
    request: IndexRequest | None,
) -> BloomFigures | None:
    if entry.kind not in PAIMON_KINDS:
        notes.append(
            Note(
                rules.UNKNOWN_KIND,
                f"unknown index type {entry.kind!r}: Paimon's reader fails",
                column,
            )
        )
    if entry.empty:
        notes.append(
            Note(
                rules.EMPTY_INDEX,
                "the index is EMPTY: Paimon skips the file for every value",
                column,
            )
        )
    if entry.kind != KIND or entry.empty:
        return None
    if data_type is not None and key_of(data_type) is None:
        notes.append(
            Note(rules.NO_HASH, f"Paimon has no hash for {data_type}: its reader fails", column)
        )
    try:
        bloom = parse_bloom64(container.body_of(entry))
    except UnreadableError as error:
        notes.append(Note(rules.UNREADABLE_INDEX, error.message, column))
        return None
    rate = bloom.estimate_fpp(bloom.paimon_probes)
    fill, ndv = bloom.fill_ratio, bloom.estimated_ndv
    figures = BloomFigures(
        bloom.num_bits,
        bloom.k,
        bloom.paimon_probes,
        fill,
        rate,
        ndv,
        _diagnose(bloom, fill, ndv, request),
    )
    notes += _check_filter(figures, column)
    return figures


def _check_filter(bloom: BloomFigures, column: str) -> Iterable[Note]:
    if bloom.k >= _FIRST_MISREAD_K:
        behaviour = (
            "never skips a file"
            if not bloom.paimon_probes
            else f"checks {bloom.paimon_probes} bits per value"
        )
        fact = f"k = {bloom.k}: Paimon's Java reader takes the bytes of k as signed and {behaviour}"
        yield Note(rules.MANY_HASH_FUNCTIONS, fact, column)
    elif bloom.k == 0:
        yield Note(rules.NO_HASH_FUNCTIONS, "k = 0: the filter never skips a file", column)
    if bloom.fill_ratio == 0:
        fact = (
            "no bit is set: Paimon skips the file for every value, which is correct only "
            "if all values are null"
        )
        yield Note(rules.EMPTY_INDEX_FILTER, fact, column)
    elif bloom.estimated_fpp > sizing.SATURATED_FPP and bloom.paimon_probes:
        fact = (
            f"{bloom.fill_ratio:.0%} of the bits are set: about {bloom.estimated_fpp:.0%} "
            "of absent values pass"
        )
        yield Note(rules.SATURATED_INDEX, fact, column)


def _check_size(bloom: BloomFigures, size: int, rows: int, column: str) -> Iterable[Note]:
    if not bloom.k or size <= _SMALL:
        return
    needed_bytes = _bytes_for(rows, bloom.k)
    if size > _LARGE_FACTOR * needed_bytes:
        fact = (
            f"{size:,} bytes for {rows:,} rows: {needed_bytes:,} bytes are enough even if "
            "all values are distinct"
        )
        yield Note(rules.LARGE_FOR_ROWS, fact, column)
    elif (
        bloom.estimated_ndv
        and bloom.diagnosis
        and size > _LARGE_FOR_VALUES * _bytes_for(round(bloom.estimated_ndv), bloom.k)
    ):
        yield Note(rules.LARGE_FOR_VALUES, bloom.diagnosis, column)


def _bytes_for(values: int, k: int) -> int:
    """Return the bytes of an index with k hash functions in which this many values set half of the
    bits: k / ln 2 bits per value."""
    return math.ceil(max(1, values) * k / math.log(2) / 8) + 4


def _diagnose(
    bloom: BloomFilter64, fill: float, ndv: float | None, request: IndexRequest | None
) -> str | None:
    """Return what the fill ratio says of the number of items; None if the number fits the values,
    or cannot be known."""
    if not bloom.k or fill == 0:
        return None
    items = request.items if request is not None and _is_sized_for(bloom, request) else None
    capacity = bloom.num_bits * math.log(2) / bloom.k if items is None else items
    size = f"its size for {capacity:,.0f} values" if items is None else f"items = {items}"
    start = f"{format_percent(fill)} full where 50 % is best: {size}"
    if ndv is None:
        return f"{start} is too few"
    ratio = capacity / max(1.0, ndv)
    if ratio >= _NOTABLE_RATIO:
        return (
            f"{start} is {f'{ratio:,.0f}' if ratio >= 10 else f'{ratio:.2g}'} x the "
            f"{ndv:,.0f} values"
        )
    return f"{start} is less than the {ndv:,.0f} values" if ratio <= 1 / _NOTABLE_RATIO else None


def _is_sized_for(bloom: BloomFilter64, request: IndexRequest) -> bool:
    """Return whether Paimon gives a filter of these options the size of this one."""
    try:
        return request.items is not None and compute_sizing(request.items, request.fpp) == (
            bloom.num_bits,
            bloom.k,
        )
    except UsageError:
        return False


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
    target, files = os.fsdecode(target), files or LocalFolders()
    if target.endswith(INDEX_SUFFIX):
        if snapshot is not None or branch is not None:
            raise UsageError("an index file has no snapshots and no branches", file=target)
        container, notes = parse_file(files, target, parse_container), list[Note]()
        file = InspectedFile(
            target,
            "",
            None,
            None,
            FILE,
            target,
            len(container.data),
            inspect_container(container, notes),
        )
        return PaimonInspectReport(
            target,
            None,
            (file,),
            _sum_columns((file,)),
            tuple(note.to_finding(target) for note in notes),
        )
    table = open_table(files, target, snapshot=snapshot, branch=branch, allow_outside=allow_outside)
    inspector = IndexInspector(table)
    inspected = [inspector.inspect(live) for live in table.live_files]
    reports = tuple(each.file for each in inspected)
    findings = tuple(
        note.to_finding(each.file.data_file) for each in inspected for note in each.notes
    )
    return PaimonInspectReport(
        table.path, table.snapshot_id, reports, _sum_columns(reports), findings
    )


def _sum_columns(files: Sequence[InspectedFile]) -> tuple[IndexColumnTotal, ...]:
    filters: dict[str, list[tuple[int, float]]] = {}
    for file in files:
        for index in file.indexes:
            if index.bloom is not None:
                filters.setdefault(index.current_column or index.column, []).append(
                    (index.size, index.bloom.estimated_fpp)
                )
    return tuple(
        IndexColumnTotal(
            column,
            len(figures),
            len(files),
            sum(size for size, _ in figures),
            fmean(rate for _, rate in figures),
        )
        for column, figures in filters.items()
    )
