"""Result of `prune`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sbbf_tool.numbers import format_count
from sbbf_tool.reports.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass(frozen=True)
class PrunedFile:
    """A file with row groups that remain."""

    file: str
    row_groups: tuple[int, ...]
    total_row_groups: int


@dataclass(frozen=True, repr=False)
class PruneReport(Tabular):
    """Files and row groups that may hold one of the values, and a pyarrow dataset of only those."""

    _row = PrunedFile

    column: str
    values: tuple[str, ...]
    files: tuple[PrunedFile, ...]
    total_files: int
    total_row_groups: int
    skipped_by_statistics: int
    """Row groups that min and max, or the null count, exclude."""
    skipped_by_filter: int
    """Row groups that only the filter excludes."""
    total_bytes: int
    """Compressed bytes of the pages of all row groups."""
    bytes_to_read: int
    bytes_read: int
    """Bytes that pruning read: footers, filter headers and blocks."""
    requests: int
    warnings: tuple[str, ...]
    """Files that cannot be pruned, each with the reason; all their row groups remain."""
    _dataset: ds.Dataset = field(repr=False, compare=False)

    @property
    def row_groups(self) -> int:
        """Number of row groups that remain."""
        return sum(len(file.row_groups) for file in self.files)

    def dataset(self) -> ds.Dataset:
        """Return the row groups that remain, with the schema and the partition columns of the whole dataset.

        The rows still need filtering: a remaining row group also has other rows, and may have none with the value.
        """
        return self._dataset

    def _rows(self) -> Iterable[object]:
        return self.files

    def _summary(self) -> str:
        return f"{self.column}: {self.row_groups:,} of {format_count(self.total_row_groups, 'row group')}"
