"""Inspect the indexes of the data files of a table, or one `.index` file, and report findings under the rules of `rules.index_rules`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import fmean

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon import findings as indexes
from sbbf_tool.extensions.paimon.files import FileIO, parse_file
from sbbf_tool.extensions.paimon.index_container import Container, parse_container
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.reports import IndexColumnTotal, InspectedFile, PaimonInspectReport
from sbbf_tool.extensions.paimon.table import FILE, PaimonTable, open_table
from sbbf_tool.reports.findings import Finding
from sbbf_tool.storage.folders import LocalFolders


def inspect_paimon(
    target: str | os.PathLike[str],
    *,
    snapshot: int | None = None,
    branch: str | None = None,
    allow_outside: bool = False,
    files: FileIO | None = None,
) -> PaimonInspectReport:
    """Inspect a table (its directory), by default at its latest snapshot, or a container (a path that ends in `.index`).

    Raises UnreadableError if the target is neither of them; broken indexes of a table are reported as findings.
    """
    target, files = os.fsdecode(target), files or LocalFolders()
    if not target.endswith(INDEX_SUFFIX):
        return inspect_table(open_table(files, target, snapshot=snapshot, branch=branch, allow_outside=allow_outside))
    if snapshot is not None or branch is not None:
        raise UsageError("an index file has no snapshots and no branches", file=target)
    return inspect_container(parse_file(files, target, parse_container), target)


def inspect_container(container: Container, name: str) -> PaimonInspectReport:
    """Inspect a container alone, without the types of its columns."""
    notes: list[indexes.Note] = []
    file = InspectedFile(name, "", None, None, FILE, name, len(container.data), indexes.inspect_container(container, notes))
    return PaimonInspectReport(name, None, (file,), _sum_columns((file,)), tuple(note.to_finding(name) for note in notes))


def inspect_table(table: PaimonTable) -> PaimonInspectReport:
    """Inspect every data file of the snapshot of a table."""
    findings: list[Finding] = []
    files = []
    inspector = indexes.IndexInspector(table)
    for live in table.live_files:
        inspected_index = inspector.inspect(live)
        files.append(inspected_index.file)
        findings += (note.to_finding(live.file.name) for note in inspected_index.notes)
    return PaimonInspectReport(table.path, table.snapshot_id, tuple(files), _sum_columns(files), tuple(findings))


def _sum_columns(files: Sequence[InspectedFile]) -> tuple[IndexColumnTotal, ...]:
    filters: dict[str, list[tuple[int, float]]] = {}
    for file in files:
        for index in file.indexes:
            if index.bloom is not None:
                filters.setdefault(index.current_column or index.column, []).append((index.size, index.bloom.estimated_fpp))
    return tuple(
        IndexColumnTotal(column, len(figures), len(files), sum(size for size, _ in figures), fmean(rate for _, rate in figures))
        for column, figures in filters.items()
    )
