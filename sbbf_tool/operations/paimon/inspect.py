"""Inspect the indexes of the data files of a table, or one `.index` file, and report findings.

| rule                | meaning                                                                                             |
|---------------------|-----------------------------------------------------------------------------------------------------|
| duplicate-index     | containers in the manifest and in a file: Paimon reads the one in the manifest, even if outdated    |
| unreferenced-index  | an index file that only older snapshots may refer to                                                |
| outside-table       | the table must not refer to the file, which is read only with `allow_outside`                       |
| unreadable-index    | the container contradicts the format or is missing, or there are several                            |
| unused-index        | Paimon's planner does not use the indexes of the table                                              |
| unknown-column      | the schema of the data file has no such column                                                      |
| unknown-kind        | an index type that Paimon does not have: its reader fails                                           |
| no-hash             | a filter on a type without a hash in Paimon: its reader fails                                       |
| empty-index         | an EMPTY entry                                                                                      |
| unreadable-filter   | the filter's bytes contradict the format                                                            |
| many-hash-functions | k of 128 or more, which Paimon's Java reader misreads                                               |
| no-hash-functions   | k = 0                                                                                               |
| empty-filter        | a filter with no bit set                                                                            |
| saturated           | a false-positive rate above one half                                                                |
| large-for-rows      | many times the size that the rows need; Paimon's defaults give 599,071 bytes for ten rows           |
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.paimon.bloom64 import KIND, parse_bloom64
from sbbf_tool.paimon.data_types import DataType
from sbbf_tool.paimon.fast_hash import key_of
from sbbf_tool.paimon.file_index import FILE, NONE, find_index
from sbbf_tool.paimon.files import Files, list_names, parse_file
from sbbf_tool.paimon.index_container import Container, IndexEntry, parse_container
from sbbf_tool.paimon.manifest import INDEX_SUFFIX, data_file_of
from sbbf_tool.paimon.reading_rules import why_unused
from sbbf_tool.paimon.table import LiveFile, Table, open_table
from sbbf_tool.paimon.table_schema import TableSchema, indexed_type, parse_indexed_column
from sbbf_tool.reports.findings import ERROR, WARNING, Finding
from sbbf_tool.reports.paimon import BloomFigures, ColumnTotal, IndexFigures, InspectedFile, InspectReport
from sbbf_tool.storage.folders import LocalFolders

PAIMON_KINDS = frozenset((KIND, "bitmap", "bsi", "range-bitmap"))
"""The index types of Paimon 0.8 to 2.1. Paimon's reader fails on other types."""

_ERROR_RULES = ("unreadable-index", "unreadable-filter")
"""The rules whose findings are errors; findings of other rules are warnings."""
_FIRST_MISREAD_K = 128
_SATURATED_FPP = 0.5
_LARGE_FACTOR = 16
_SMALL = 1 << 10


def inspect_paimon(
    target: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    files: Files | None = None,
) -> InspectReport:
    """Inspect a table (its directory), by default at its latest snapshot, or a container (a path that ends in `.index`).

    Raises UnreadableError if the target is neither of them; broken indexes of a table are reported as findings.
    """
    target, files = os.fsdecode(target), files or LocalFolders()
    if not target.endswith(INDEX_SUFFIX):
        return inspect_table(open_table(files, target, snapshot=snapshot, branch=branch, allow_outside=allow_outside))
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=target)
    return inspect_container(parse_file(files, target, parse_container), target)


def inspect_container(container: Container, name: str) -> InspectReport:
    """Inspect a container alone, without the types of its columns."""
    inspection = _Inspection(name)
    file = InspectedFile(name, "", None, None, FILE, name, container.size, inspection.inspect_indexes(container))
    return InspectReport(name, None, (file,), _sum_columns((file,)), tuple(inspection.findings))


def inspect_table(table: Table) -> InspectReport:
    """Inspect every data file of the snapshot of a table."""
    findings: list[Finding] = []
    files = []
    on_disk: dict[str, dict[str, list[str]]] = {}
    for live in table.live_files:
        inspection = _Inspection(live.file.name, live.file.row_count)
        if live.outside is not None:
            inspection.note("outside-table", live.outside)
        elif live.directory not in on_disk:
            on_disk[live.directory] = _group_index_files(list_names(table.files, live.directory))
        files.append(_inspect_file(table, live, inspection))
        for name in on_disk.get(live.directory, {}).get(live.file.name, ()):
            if name not in live.file.index_files:
                inspection.note("unreferenced-index", f"the snapshot does not refer to {name}; older snapshots may")
        findings += inspection.findings
    snapshot = table.snapshot.id if table.snapshot else None
    return InspectReport(table.path, snapshot, tuple(files), _sum_columns(files), tuple(findings))


def _sum_columns(files: Sequence[InspectedFile]) -> tuple[ColumnTotal, ...]:
    filters: dict[str, list[tuple[int, float]]] = {}
    for file in files:
        for index in file.indexes:
            if index.bloom is not None:
                filters.setdefault(index.current_column or index.column, []).append((index.size, index.bloom.estimated_fpp))
    return tuple(
        ColumnTotal(column, len(figures), len(files), sum(size for size, _ in figures), fmean(rate for _, rate in figures))
        for column, figures in filters.items()
    )


def _group_index_files(names: Iterable[str]) -> dict[str, list[str]]:
    """Group the index files among the names in a directory by their data file."""
    names_by_data_file: dict[str, list[str]] = {}
    for name in sorted(names):
        if name.endswith(INDEX_SUFFIX):
            names_by_data_file.setdefault(data_file_of(name), []).append(name)
    return names_by_data_file


def _inspect_file(table: Table, live: LiveFile, inspection: _Inspection) -> InspectedFile:
    file = live.file
    index = find_index(table.files, live)
    if file.embedded_index is not None and file.index_files:
        inspection.note(
            "duplicate-index", f"an index is in the manifest and in {', '.join(file.index_files)}: Paimon reads the one in the manifest"
        )
    if index.problem is not None:
        inspection.note("unreadable-index", index.problem)
    indexes: tuple[IndexFigures, ...] = ()
    if index.container is not None:
        indexes = inspection.inspect_indexes(index.container, table.schema_of(file), table.schema)
    if index.place != NONE and (unused_reason := why_unused(table.schema)):
        inspection.note("unused-index", f"Paimon does not use it: {unused_reason}")
    size = index.container.size if index.container else len(file.embedded_index or b"")
    return InspectedFile(file.name, live.partition_text, live.entry.bucket, file.row_count, index.place, index.path, size, indexes)


class _Inspection:
    """Inspection of the index of one data file, which collects `findings`."""

    def __init__(self, data_file: str, rows: int | None = None) -> None:
        self.data_file = data_file
        self.rows = rows
        self.findings: list[Finding] = []

    def note(self, rule: str, message: str, column: str | None = None) -> None:
        severity = ERROR if rule in _ERROR_RULES else WARNING
        self.findings.append(Finding(rule, severity, self.data_file, column, message))

    def inspect_indexes(
        self, container: Container, schema: TableSchema | None = None, current_schema: TableSchema | None = None
    ) -> tuple[IndexFigures, ...]:
        """Inspect every index of a container; `schema` is the schema of the data file, `current_schema` the current one, if known."""
        figures = []
        for column, kinds in container.indexes.items():
            indexed = parse_indexed_column(column)
            data_type = indexed_type(schema, indexed)
            if schema is not None and data_type is None:
                self.note("unknown-column", f"schema {schema.id} has no such column", column)
            field = schema.field(indexed.column) if schema else None
            field = current_schema.field_by_id(field.id) if current_schema and field else None
            current_column = str(replace(indexed, column=field.name)) if field else None
            for kind, entry in kinds.items():
                bloom = self._inspect_index(container, column, entry, data_type)
                type_text = str(data_type) if data_type else None
                figures.append(IndexFigures(column, current_column, type_text, kind, entry.length, entry.empty, bloom))
        return tuple(figures)

    def _inspect_index(self, container: Container, column: str, entry: IndexEntry, data_type: DataType | None) -> BloomFigures | None:
        if entry.kind not in PAIMON_KINDS:
            self.note("unknown-kind", f"unknown index type {entry.kind!r}: Paimon's reader fails", column)
        if entry.empty:
            self.note("empty-index", "the index is EMPTY: Paimon skips the file for every value", column)
        if entry.kind != KIND or entry.empty:
            return None
        if data_type is not None and key_of(data_type) is None:
            self.note("no-hash", f"Paimon has no hash for {data_type}: its reader fails", column)
        try:
            bloom = parse_bloom64(container.body_of(entry))
        except UnreadableError as error:
            self.note("unreadable-filter", error.message, column)
            return None
        rate = bloom.estimate_fpp(bloom.paimon_probes)
        figures = BloomFigures(bloom.num_bits, bloom.k, bloom.paimon_probes, bloom.fill_ratio, rate, bloom.estimated_ndv)
        self._check_filter(figures, entry.length, column)
        return figures

    def _check_filter(self, bloom: BloomFigures, size: int, column: str) -> None:
        if bloom.k >= _FIRST_MISREAD_K:
            behaviour = "never skips a file" if not bloom.paimon_probes else f"checks {bloom.paimon_probes} bits per value"
            self.note("many-hash-functions", f"k = {bloom.k}: Paimon's Java reader takes the bytes of k as signed and {behaviour}", column)
        elif bloom.k == 0:
            self.note("no-hash-functions", "k = 0: the filter never skips a file", column)
        if bloom.fill_ratio == 0:
            self.note(
                "empty-filter", "no bit is set: Paimon skips the file for every value, which is correct only if all values are null", column
            )
        elif bloom.estimated_fpp > _SATURATED_FPP and bloom.paimon_probes:
            share = f"about {bloom.estimated_fpp:.0%} of absent values pass"
            self.note("saturated", f"{bloom.fill_ratio:.0%} of the bits are set: {share}", column)
        if self.rows is not None and bloom.k:
            needed_bytes = math.ceil(max(1, self.rows) * bloom.k / math.log(2) / 8) + 4  # k / ln 2 bits per value: half of them set
            if size > max(_SMALL, _LARGE_FACTOR * needed_bytes):
                message = f"{size:,} bytes for {self.rows:,} rows: {needed_bytes:,} bytes are enough even if all values are distinct"
                self.note("large-for-rows", message, column)
