"""How a filter spec chooses the column chunks of a file that get a filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import get_args

from sbbf_tool.bloom.filter_size import Sizing
from sbbf_tool.editing.build import ensure_buildable
from sbbf_tool.editing.targets import check_changeable, choose_columns
from sbbf_tool.errors import UsageError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.frozen import Frozen
from sbbf_tool.hints import Rebuild
from sbbf_tool.parquet.splice import ChunkKey
from sbbf_tool.reports.rows import NamedColumn
from sbbf_tool.rules.filter_spec import FilterSpec, request_filters
from sbbf_tool.rules.satisfaction import Judgment


class Choice(Frozen):
    """The column chunks of a file that get filters, and the judgments of the other filters, which
    stay."""

    sizes: Mapping[ChunkKey, Sizing]
    """The size of each filter to build, row group by row group."""
    judgments: Mapping[ChunkKey, Judgment]
    named_columns: tuple[NamedColumn, ...]
    """What the file has under each of the names of columns."""
    without_values: int = 0
    """Number of column chunks that get no filter because they have no value."""

    def count(self, outcome: str) -> int:
        """Count the filters that stay and have this outcome."""
        return Counter(judgment.outcome for judgment in self.judgments.values())[outcome]


def ensure_rebuild(rebuild: str | None) -> None:
    """Raise UsageError if `rebuild` is neither None nor one of `Rebuild`."""
    if rebuild is not None and rebuild not in get_args(Rebuild):
        raise UsageError(f"rebuild must be {' or '.join(get_args(Rebuild))}, not {rebuild!r}")


def choose_chunks(
    file: ParquetFile,
    spec: FilterSpec,
    rebuild: Rebuild | None,
    *,
    engines: Iterable[str] = (),
) -> Choice:
    """Choose the column chunks that get a filter; existing filters that stay are judged by their
    bits.

    `engines` read the file. Raises RefusedError, UnreadableError and UsageError.
    """
    check_changeable(file)
    limited = spec.max_bytes if isinstance(spec.max_bytes, Mapping) else ()
    choose_columns(file, (*spec.columns, *limited))
    sizes, named_columns, *_, without_values = request_filters(file, [spec])
    for row_group, column in sizes:
        ensure_buildable(file, row_group, file.footer.columns[column], engines)
    places = file.footer.filter_places()
    existing = {key: size for key, size in sizes.items() if key in places}
    if rebuild == "all" or not existing:
        return Choice(sizes, {}, named_columns, without_values)
    judgments = judge_filters(file, existing)
    if rebuild == "weak":
        for key, judgment in list(judgments.items()):
            if judgment.needs_rebuild:
                del judgments[key]
    to_build = {key: size for key, size in sizes.items() if key not in judgments}
    return Choice(to_build, judgments, named_columns, without_values)


def judge_filters(file: ParquetFile, sizes: Mapping[ChunkKey, Sizing]) -> dict[ChunkKey, Judgment]:
    """Judge the filters of these chunks by the sizes that are requested for them. Reads their
    bitsets."""
    columns = [file.footer.columns[index] for index in sorted({column for _, column in sizes})]
    row_groups = sorted({row_group for row_group, _ in sizes})
    # Most files have no filters yet: then the import of this module is saved.
    from sbbf_tool.rules.facts import Reads, gather

    facts = gather(file, columns, Reads.FILTERS, row_groups=row_groups, sizes=sizes)
    judgments = {}
    for column in facts:
        for chunk in column.chunks:
            if chunk.judgment is not None:
                judgments[chunk.row_group, column.column.index] = chunk.judgment
    # In the order of the request, which is that of the filters in the new file.
    return {key: judgments[key] for key in sizes if key in judgments}
