"""What `prune` answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass(frozen=True)
class PrunedFile:
    """A file of which something is left, and the row groups that are."""

    file: str
    row_groups: tuple[int, ...]
    row_groups_in_all: int


@dataclass(frozen=True)
class PruneReport:
    """Files and row groups that may hold one of the values, and a pyarrow dataset of them alone."""

    column: str
    values: tuple[str, ...]
    files: tuple[PrunedFile, ...]
    files_in_all: int
    row_groups_in_all: int
    by_statistics: int
    """Row groups that min and max, or a count of nulls, rule out."""
    by_filter: int
    """Row groups that only the filter rules out."""
    bytes_in_all: int
    """Compressed bytes of the pages of all row groups."""
    bytes_left: int
    bytes_read: int
    """What it took to find that out: footers, filter headers and blocks."""
    requests: int
    warnings: tuple[str, ...]
    """Files that could not be asked, and are left in whole, each with the reason."""
    _dataset: ds.Dataset = field(repr=False, compare=False)

    @property
    def row_groups(self) -> int:
        """Row groups that are left."""
        return sum(len(one.row_groups) for one in self.files)

    def dataset(self) -> ds.Dataset:
        """The row groups that are left, with the schema and the partition columns of the whole. Still to be filtered: a row group that is
        left holds other rows as well, and may hold none with the value.
        """
        return self._dataset
