"""The filter spec: which columns of one or more files get filters, and of what size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from sbbf_tool.arguments import as_names
from sbbf_tool.bloom import DEFAULT_FPP, sizing
from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.editing.build import ensure_buildable
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import UsageError
from sbbf_tool.file.named_columns import name_columns
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.patch import ChunkKey
from sbbf_tool.rules.satisfaction import NOT_MEASURED, Judgment

if TYPE_CHECKING:
    from sbbf_tool.editing.plan_file import Plan

Rebuild: TypeAlias = Literal["weak", "all"]
REBUILD: tuple[Rebuild, ...] = get_args(Rebuild)


@dataclass(frozen=True, slots=True)
class Choice:
    """The column chunks of a file that get filters, and the judgments of the other filters, which stay."""

    keys: tuple[ChunkKey, ...]
    """The chunks that get a filter, row group by row group."""
    judgments: Mapping[ChunkKey, Judgment] = field(default_factory=dict)

    def count(self, outcome: str) -> int:
        """Count the filters that stay and have this outcome."""
        return Counter(judgment.outcome for judgment in self.judgments.values())[outcome]

    def columns(self, outcome: str) -> list[int]:
        """Return the indexes of the columns that have filters with this outcome."""
        return sorted({key[1] for key, judgment in self.judgments.items() if judgment.outcome == outcome})


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
    rebuild: Rebuild | None = None
    """Existing filters to rebuild: those that do not satisfy the request (weaker, too large or broken), or all. If None, a second run finds
    nothing to do."""
    strict: bool = True
    """Whether a column that a file lacks is an error. If False, NotApplicableError is raised if the file lacks all of them."""
    if_present: bool = False
    """Skip columns that a file does not have; names must then be full names. Plans for files with different schemas need this."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", as_names(self.columns))
        if not self.columns:
            raise UsageError("no column was given")
        if self.rebuild not in (None, *REBUILD):
            raise UsageError(f"rebuild must be {' or '.join(REBUILD)}, not {self.rebuild!r}")
        for most in self.max_bytes.values() if isinstance(self.max_bytes, Mapping) else (self.max_bytes,):
            self._sizing(most)

    @classmethod
    def of_plan(cls, plan: Plan) -> FilterSpec:
        """Return the filter spec of a plan that `advise` made."""
        return cls(tuple(plan.columns), plan.fpp, max_bytes=plan.columns, rebuild="all" if plan.replace else None)

    def choose(self, file: ParquetFile, *, measures: bool = True) -> Choice:
        """Choose the column chunks that get a filter. Raises RefusedError, UnreadableError and UsageError.

        Existing filters that stay are judged by their bits, or, unless `measures` is set, by the footer alone: then no bitset is read.
        """
        check_changeable(file)
        numbers, columns = range(file.footer.num_row_groups), choose_columns(file, self._names_in(file), strict=self.strict)
        keys = [(row_group, column.index) for row_group in numbers for column in columns]
        for row_group, column in keys:
            ensure_buildable(file, row_group, file.footer.columns[column])
        existing = [key for key in keys if file.footer.filter_place(*key) is not None]
        if self.rebuild == "all" or not existing:
            return Choice(tuple(keys))
        judgments = judge_filters(file, self.sizes(file, existing)) if measures else dict.fromkeys(existing, Judgment(NOT_MEASURED))
        if self.rebuild == "weak":
            judgments = {key: judgment for key, judgment in judgments.items() if not judgment.needs_rebuild}
        return Choice(tuple(key for key in keys if key not in judgments), judgments)

    def sizes(self, file: ParquetFile, keys: Iterable[ChunkKey]) -> dict[ChunkKey, Sizing]:
        """Return the size limits of the filter for each of these chunks."""
        by_name = self.max_bytes if isinstance(self.max_bytes, Mapping) else {}
        usual = self._sizing(None if isinstance(self.max_bytes, Mapping) else self.max_bytes)
        names = by_name.keys() & self._names_in(file) if self.if_present else by_name.keys()
        present = [column.name for column in name_columns(file, names) if self.strict or column.type is not None]
        special = {leaf.index: self._sizing(by_name[name]) for name in present for leaf in choose_columns(file, (name,))}
        return {key: special.get(key[1], usual) for key in keys}

    def _names_in(self, file: ParquetFile) -> tuple[str, ...]:
        if not self.if_present:
            return self.columns
        present = {column.name for column in file.footer.columns}
        return tuple(name for name in self.columns if name in present)

    def _sizing(self, max_bytes: int | None) -> Sizing:
        return Sizing(self.fpp, self.ndv, sizing.MAX_BYTES if max_bytes is None else max_bytes)


def judge_filters(file: ParquetFile, sizes: Mapping[ChunkKey, Sizing]) -> dict[ChunkKey, Judgment]:
    """Judge the filters of these chunks by the sizes that are requested for them. Reads their bitsets."""
    columns = [file.footer.columns[index] for index in sorted({column for _, column in sizes})]
    row_groups = sorted({row_group for row_group, _ in sizes})
    # Most files have no filters yet: then the import of this module is saved.
    from sbbf_tool.rules.facts import Reads, gather

    facts = gather(file, columns, Reads.FILTERS, row_groups=row_groups, sizes=sizes)
    judgments = {(chunk.row_group, column.column.index): chunk.judgment for column in facts for chunk in column.chunks}
    return {key: judgment for key in sizes if (judgment := judgments[key]) is not None}
