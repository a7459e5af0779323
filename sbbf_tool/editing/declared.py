"""How the filters of a file compare with its declarations, and which of them a change builds and
drops."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.editing.build import HashMemory, build_filter
from sbbf_tool.editing.choice import judge_filters
from sbbf_tool.editing.edit import Edit
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.rules.filter_spec import RequestedFilters
from sbbf_tool.rules.satisfaction import MISSING, SATISFIED, Judgment, may_be_saturated


class DeclaredPlan(NamedTuple):
    """What a change does to the filters of a file."""

    judgments: Mapping[ChunkKey, Judgment]
    """How the filter of each declared chunk compares with its declaration."""
    needless: Set[ChunkKey]
    """Chunks for which the declared limits leave no filter that is worth writing."""
    undeclared: Set[ChunkKey]
    """Chunks with a filter that no declaration names."""
    to_build: Mapping[ChunkKey, Sizing]
    to_drop: Set[ChunkKey]

    @property
    def has_work(self) -> bool:
        return bool(self.to_build or self.to_drop)

    def replaces(self, key: ChunkKey) -> bool:
        return key in self.to_build or key in self.to_drop


def plan_declared(
    file: ParquetFile, requests: RequestedFilters, edit: Edit, *, removes_undeclared: bool
) -> DeclaredPlan:
    """Compare the filters of a file with their declarations, and choose those to build and to
    drop."""
    judgments = judge_filters(file, requests.sizes)
    to_build = {}
    needless = set()
    to_drop = set()
    for key, judgment in judgments.items():
        if judgment.outcome == SATISFIED:
            continue
        size = requests.sizes[key]
        if not _is_unattainable(file, key, size, edit):
            to_build[key] = size
            continue
        needless.add(key)
        if judgment.outcome != MISSING:
            to_drop.add(key)
    undeclared = file.footer.filter_places().keys() - requests.sizes.keys()
    if removes_undeclared:
        to_drop |= undeclared
    return DeclaredPlan(judgments, needless, undeclared, to_build, to_drop)


def _is_unattainable(file: ParquetFile, key: ChunkKey, target: Sizing, edit: Edit) -> bool:
    """Return whether the declared limits leave room only for a filter that is not worth writing.

    The data are read if the footer leaves it open: only the filter itself shows it.
    """
    if not may_be_saturated(target, file.footer.chunk_meta(*key).most_values):
        return False
    built = build_filter(file, key, target, edit.cross_checks, HashMemory())
    return built.bloom.fpp > target.worst_fpp
