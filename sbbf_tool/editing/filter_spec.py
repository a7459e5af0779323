"""The filter spec: which columns of one or more files get filters, and of what size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.editing.build import Sizing, ensure_buildable
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import find_column
from sbbf_tool.parquet.patch import ChunkKey

if TYPE_CHECKING:
    from sbbf_tool.editing.plan_file import Plan


@dataclass(frozen=True, slots=True)
class FilterSpec:
    """Which columns get filters, and with what FPP or size. It can be sent to other processes and machines. Raises UsageError."""

    columns: tuple[str, ...]
    fpp: float = DEFAULT_FPP
    """Share of absent values that a filter does not exclude, above 0 and below 1."""
    ndv: int | None = None
    """Number of distinct values per row group to size filters for; if None, the number in the data."""
    max_bytes: int | Mapping[str, int] | None = None
    """Maximum bitset bytes per row group, for all columns or by column; 128 MiB if None, and for columns that are not named."""
    replace: bool = False
    """Rebuild existing filters. If False, a second run finds nothing to do."""
    if_present: bool = False
    """Skip columns that a file does not have; names must then be full names. Plans for files with different schemas need this."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_names(self.columns))
        if not self.columns:
            raise UsageError("no column was given")
        for most in self.max_bytes.values() if isinstance(self.max_bytes, Mapping) else (self.max_bytes,):
            self._sizing(most)

    @classmethod
    def of_plan(cls, plan: Plan) -> FilterSpec:
        """Return the filter spec of a plan that `advise` made."""
        return cls(tuple(plan.columns), plan.fpp, max_bytes=plan.columns, replace=plan.replace)

    def chunks(self, file: ParquetFile) -> tuple[list[ChunkKey], int]:
        """Return the column chunks that get a filter, row group by row group, and the number that already have one. Raises RefusedError."""
        check_changeable(file)
        row_groups, columns = range(file.footer.num_row_groups), choose_columns(file, self._names_in(file))
        keys = [(row_group, column.index) for row_group in row_groups for column in columns]
        for row_group, column in keys:
            ensure_buildable(file, row_group, file.footer.columns[column])
        chosen = [key for key in keys if self.replace or file.footer.filter_place(*key) is None]
        return chosen, len(keys) - len(chosen)

    def sizes(self, file: ParquetFile, keys: Iterable[ChunkKey]) -> dict[ChunkKey, Sizing]:
        """Return the size limits of the filter for each of these chunks."""
        by_name = self.max_bytes if isinstance(self.max_bytes, Mapping) else {}
        usual = self._sizing(None if isinstance(self.max_bytes, Mapping) else self.max_bytes)
        names = by_name.keys() & self._names_in(file) if self.if_present else by_name.keys()
        special = {find_column(file.footer.columns, name).index: self._sizing(by_name[name]) for name in names}
        return {key: special.get(key[1], usual) for key in keys}

    def _names_in(self, file: ParquetFile) -> tuple[str, ...]:
        if not self.if_present:
            return self.columns
        present = {column.name for column in file.footer.columns}
        return tuple(name for name in self.columns if name in present)

    def _sizing(self, max_bytes: int | None) -> Sizing:
        return Sizing(self.fpp, self.ndv, sizing.MAX_BYTES if max_bytes is None else max_bytes)
