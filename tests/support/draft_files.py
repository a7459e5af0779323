"""Files with filters of a draft of the format, which today's writers no longer make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sbbf_tool.bloom.dialects import find_dialect
from sbbf_tool.file.drafts import hasher_for
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.operations.add import add_filters
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import build_draft_filter
from sbbf_tool.parquet.patch import plan_append
from sbbf_tool.parquet.values import read_chunk


def write_draft(source: Path, columns: Iterable[str], target: Path, dialect: str) -> None:
    """Write `source` to `target`, followed by filters of a dialect, with the sizes that `add_filters` chooses, and a new footer."""
    drafted = find_dialect(dialect)
    report = add_filters(source, columns, dry_run=True, replace=True)
    with ParquetFile.open(source) as file:
        filters = {}
        for row in report.filters:
            column = find_column(file.footer.columns, row.column)
            is_number = hasher_for(drafted, column, 1).is_number
            values = stored_values(file, row.row_group, column)
            bitset = build_draft_filter(drafted, values, row.bitset_bytes, is_number=is_number)
            filters[row.row_group, column.index] = (bitset,)
        patch = plan_append(file.footer, file.source.size, filters)
        target.write_bytes(b"".join((file.source.read(0, patch.keep), *map(bytes, patch.pieces))))


def stored_values(file: ParquetFile, row_group: int, column: Column) -> Iterator[bytes]:
    """Return the plain bytes of a chunk's values, and the other stored forms of its floats."""
    pages = file.pages(row_group, column)
    for values in read_chunk(pages.open_arrow, file.footer, row_group, column, pages.meta):
        yield from (values[position] for position in range(len(values)))
        yield from values.equal_floats()
