"""A file that has only a footer, with one column in one row group: by its schema, pyarrow decodes
the pages of a chunk without converting the values to its own types.
"""

from __future__ import annotations

import copy

from sbbf_tool.parquet import int96
from sbbf_tool.parquet.columns import Column, is_leaf
from sbbf_tool.parquet.footer import MAGIC, Footer, build_tail
from sbbf_tool.parquet.idl.ttypes import (
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    RowGroup,
    SchemaElement,
    Type,
)
from sbbf_tool.parquet.pages import count_of
from sbbf_tool.parquet.structs import build_struct


def build_narrow_file(
    footer: Footer, row_group: int, column: Column, meta: ColumnMetaData
) -> bytes:
    """Build a file that has only a footer, with one column in one row group, as its physical type
    without annotations."""
    source = footer.row_group(row_group)
    chunk = footer.column_chunk(row_group, column.index)
    meta = copy.copy(meta)
    meta.statistics = None
    meta.bloom_filter_offset = None
    meta.bloom_filter_length = None
    meta.key_value_metadata = None
    schema = _narrow_schema(footer.metadata.schema, column)
    # Writers leave out what other fields repeat, but pyarrow needs all of it.
    meta.path_in_schema = [element.name for element in schema[1:]]
    meta.encodings = meta.encodings or []
    meta.total_uncompressed_size = count_of(meta.total_uncompressed_size)
    if meta.type == Type.INT96:
        meta.type = Type.FIXED_LEN_BYTE_ARRAY
    chunks = [ColumnChunk(file_offset=chunk.file_offset or 0, meta_data=meta)]
    row_groups = [RowGroup(chunks, count_of(source.total_byte_size), source.num_rows)]
    metadata = FileMetaData(
        footer.metadata.version or 1,
        schema,
        source.num_rows,
        row_groups,
        created_by=footer.metadata.created_by,
    )
    raw = build_struct(metadata)
    return MAGIC + raw + build_tail(raw)


def _narrow_schema(schema: list[SchemaElement], column: Column) -> list[SchemaElement]:
    """Return the root and the groups above one leaf, each with one child and without annotations,
    then the leaf."""
    leaves = [position for position, element in enumerate(schema) if position and is_leaf(element)]
    position = leaves[column.index]
    leaf = schema[position]
    kind = leaf.type
    length = leaf.type_length
    if kind == Type.INT96:
        kind = Type.FIXED_LEN_BYTE_ARRAY
        length = int96.INT96_BYTES
    narrow = [SchemaElement(kind, length, leaf.repetition_type, leaf.name)]
    # Walking backwards, a group contains the leaf if it has as many children as whole subtrees
    # follow it, including the leaf's.
    subtrees = 1
    for element in reversed(schema[:position]):
        children = element.num_children or 0
        if children < subtrees:
            subtrees += 1 - children
            continue
        subtrees = 1
        group = SchemaElement(
            name=element.name, repetition_type=element.repetition_type, num_children=1
        )
        narrow.append(group)
    return narrow[::-1]
