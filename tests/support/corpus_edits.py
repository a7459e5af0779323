"""Files that no available writer makes: pages by pyarrow, and a footer with other types.

Only the meaning of the pages is changed, never a page: a BYTE_ARRAY column becomes an ENUM, a list
of three levels one of two. The footer is decoded and encoded again with the package's Thrift
classes; offsets of pages stay right, as it comes last.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sbbf_tool.parquet.footer import MAGIC, build_tail
from sbbf_tool.parquet.idl.ttypes import (
    BsonType,
    ConvertedType,
    DecimalType,
    EnumType,
    FieldRepetitionType,
    FileMetaData,
    GeographyType,
    GeometryType,
    LogicalType,
    SchemaElement,
    VariantType,
)
from sbbf_tool.parquet.structs import build_struct, parse_struct


def edit_footer(path: Path, change: Callable[[FileMetaData], None]) -> Path:
    """Change the footer of a file with `change`."""
    path.write_bytes(edit_footer_bytes(path.read_bytes(), change))
    return path


def edit_footer_bytes(content: bytes, change: Callable[[FileMetaData], None]) -> bytes:
    """Return the bytes of a file with a footer that `change` has changed."""
    assert content.endswith(MAGIC)
    length = int.from_bytes(content[-8:-4], "little")
    metadata = parse_struct(FileMetaData, content[-8 - length : -8])
    # pyarrow would prefer the schema that it stores here to the changed one.
    metadata.key_value_metadata = [
        entry for entry in metadata.key_value_metadata or () if entry.key != "ARROW:schema"
    ] or None
    change(metadata)
    raw = build_struct(metadata)
    return content[: -8 - length] + raw + build_tail(raw)


def annotate(path: Path, annotations: dict[str, dict[str, Any]]) -> Path:
    """Replace the annotations (fields of SchemaElement) of the leaves or groups of these names."""

    def change(metadata: FileMetaData) -> None:
        for element in metadata.schema:
            if element.name in annotations:
                element.logicalType = element.converted_type = element.scale = element.precision = (
                    None
                )
                for name, value in annotations[element.name].items():
                    setattr(element, name, value)

    return edit_footer(path, change)


def decimal(precision: int, scale: int) -> dict[str, Any]:
    logical = LogicalType(DECIMAL=DecimalType(scale=scale, precision=precision))
    return {
        "logicalType": logical,
        "converted_type": ConvertedType.DECIMAL,
        "precision": precision,
        "scale": scale,
    }


ENUM = {"logicalType": LogicalType(ENUM=EnumType()), "converted_type": ConvertedType.ENUM}
BSON = {"logicalType": LogicalType(BSON=BsonType()), "converted_type": ConvertedType.BSON}
INTERVAL = {"converted_type": ConvertedType.INTERVAL}
GEOMETRY = {"logicalType": LogicalType(GEOMETRY=GeometryType())}
GEOGRAPHY = {"logicalType": LogicalType(GEOGRAPHY=GeographyType())}
VARIANT = {"logicalType": LogicalType(VARIANT=VariantType(specification_version=1))}


def flatten_lists(path: Path) -> Path:
    """Change lists of three levels into two, as old writers wrote them: `group l (LIST) { repeated
    int32 array }`.

    The elements must be required leaves, so that the levels in the pages stay the same.
    """
    return _without_elements(path, keep_group=True)


def bare_repeated(path: Path) -> Path:
    """Change required lists of required leaves into repeated leaves, as Protocol Buffers write
    them: `repeated int32 l`."""
    return _without_elements(path, keep_group=False)


def _without_elements(path: Path, *, keep_group: bool) -> Path:
    def change(metadata: FileMetaData) -> None:
        schema: list[SchemaElement] = []
        elements = iter(metadata.schema)
        for element in elements:
            if element.converted_type != ConvertedType.LIST:
                schema.append(element)
                continue
            repeated, leaf = next(elements), next(elements)
            assert leaf.repetition_type == FieldRepetitionType.REQUIRED
            assert not leaf.num_children
            leaf.repetition_type = FieldRepetitionType.REPEATED
            if keep_group:
                element.logicalType = None
                leaf.name = "array"
                schema += [element, leaf]
            else:
                assert element.repetition_type == FieldRepetitionType.REQUIRED
                leaf.name = element.name
                schema.append(leaf)
            del repeated
        metadata.schema = schema
        for group in metadata.row_groups:
            for chunk in group.columns:
                path_in_schema = chunk.meta_data.path_in_schema
                if path_in_schema[-2:] in (["list", "element"], ["list", "item"]):
                    chunk.meta_data.path_in_schema = (
                        [*path_in_schema[:-2], "array"] if keep_group else path_in_schema[:-2]
                    )

    return edit_footer(path, change)
