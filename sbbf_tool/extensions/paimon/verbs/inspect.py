"""Inspect the indexes of the data files of a table, or one `.index` file, and report findings under the rules of `rules`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from statistics import fmean

from sbbf_tool.errors import UsageError
from sbbf_tool.extensions.paimon import findings as indexes
from sbbf_tool.extensions.paimon.files import FileIO, parse_file
from sbbf_tool.extensions.paimon.index_container import parse_container
from sbbf_tool.extensions.paimon.manifest import INDEX_SUFFIX
from sbbf_tool.extensions.paimon.reports import IndexColumnTotal, InspectedFile, PaimonInspectReport
from sbbf_tool.extensions.paimon.table import FILE, open_table
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
    if target.endswith(INDEX_SUFFIX):
        if snapshot is not None or branch is not None:
            raise UsageError("an index file has no snapshots and no branches", file=target)
        container, notes = parse_file(files, target, parse_container), list[indexes.Note]()
        file = InspectedFile(target, "", None, None, FILE, target, len(container.data), indexes.inspect_container(container, notes))
        return PaimonInspectReport(target, None, (file,), _sum_columns((file,)), tuple(note.to_finding(target) for note in notes))
    table = open_table(files, target, snapshot=snapshot, branch=branch, allow_outside=allow_outside)
    inspector = indexes.IndexInspector(table)
    inspected = [inspector.inspect(live) for live in table.live_files]
    reports = tuple(each.file for each in inspected)
    findings = tuple(note.to_finding(each.file.data_file) for each in inspected for note in each.notes)
    return PaimonInspectReport(table.path, table.snapshot_id, reports, _sum_columns(reports), findings)


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
