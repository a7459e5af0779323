"""Files with filters of a draft of the format, which today's writers no longer make."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from sbbf_tool.bloom.dialects import find_dialect
from sbbf_tool.file.drafts import hasher_for
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.parquet.columns import Column, find_column
from sbbf_tool.parquet.filters import build_draft_filter
from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl.ttypes import ColumnMetaData, FileMetaData
from sbbf_tool.parquet.patch import plan_append
from sbbf_tool.parquet.structs import build_struct, parse_struct
from sbbf_tool.parquet.values import read_chunk
from support.samples import build_elsewhere


def write_draft(source: Path, columns: Iterable[str], target: Path, dialect: str) -> None:
    """Write `source` to `target`, followed by filters of a dialect, with the sizes that
    `add_filters` chooses, and a new footer."""
    with ParquetFile.open(source) as file:
        filters = {
            key: (data,) for key, data in _build_filters(file, source, columns, dialect).items()
        }
        patch = plan_append(file.footer, file.source.size, filters)
        target.write_bytes(b"".join((file.source.read(0, patch.keep), *map(bytes, patch.pieces))))


def write_draft_in_chunks(
    source: Path, columns: Iterable[str], target: Path, dialect: str, *, in_size: bool = False
) -> None:
    """Write `source` to `target` with each filter at the beginning of its column chunk, before the
    first page, as the first draft has it.

    The footer states no length, a field that is newer than the drafts. With `in_size`,
    `total_compressed_size` includes the filter, as that of a page. `source` has no page indexes and
    no filters.
    """
    with ParquetFile.open(source) as file:
        filters = _build_filters(file, source, columns, dialect)
        metadata = parse_struct(FileMetaData, file.footer.raw)
        body = bytearray(MAGIC)
        for number, row_group in enumerate(metadata.row_groups):
            for index, chunk in enumerate(row_group.columns):
                meta: ColumnMetaData = chunk.meta_data
                start, end = file.footer.chunk_meta(number, index).page_range
                filter_bytes = filters.get((number, index), b"")
                if filter_bytes:
                    meta.bloom_filter_offset = len(body)
                body += filter_bytes
                _move_pages(meta, len(body) - start)
                body += file.source.read(start, end - start)
                if in_size:
                    meta.total_compressed_size += len(filter_bytes)
                    meta.total_uncompressed_size += len(filter_bytes)
            row_group.file_offset = None
    raw = build_struct(metadata)
    target.write_bytes(bytes(body) + raw + build_tail(raw))


def _move_pages(meta: ColumnMetaData, distance: int) -> None:
    for name in ("data_page_offset", "dictionary_page_offset", "index_page_offset"):
        if getattr(meta, name):
            setattr(meta, name, getattr(meta, name) + distance)


def _build_filters(
    file: ParquetFile, source: Path, columns: Iterable[str], dialect: str
) -> dict[tuple[int, int], bytes]:
    """Build header and bitset by row group and column, with the sizes that `add_filters`
    chooses."""
    drafted = find_dialect(dialect)
    filters = {}
    for row in build_elsewhere(source, columns, rebuild="all").filters:
        column = find_column(file.footer.columns, row.column)
        is_number = hasher_for(drafted, column, 1).is_number
        values = stored_values(file, row.row_group, column)
        filters[row.row_group, column.index] = build_draft_filter(
            drafted, values, row.bitset_bytes, is_number=is_number
        )
    return filters


def stored_values(file: ParquetFile, row_group: int, column: Column) -> Iterator[bytes]:
    """Return the plain bytes of a chunk's values, and the other stored forms of its floats."""
    pages = file.pages(row_group, column)
    for values in read_chunk(file.footer, row_group, column, pages):
        yield from (values[position] for position in range(len(values)))
        yield from values.equal_floats()
