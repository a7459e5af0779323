"""Text, UUIDs, and bytes that have no other written form than hexadecimal (LogicalTypes.md, "String Types", "UUID", "Geospatial Types").

Text from a command line may hold bytes that are not UTF-8; Python carries them as surrogates ("surrogateescape"), and so does this.
"""

from __future__ import annotations

from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.notation import Literal, Notation


def _parse_text(column: Column, text: str) -> Literal:
    plain = text.encode("utf-8", "surrogateescape")
    if column.width is not None and len(plain) != column.width:
        raise ValueError
    return Literal(text, (plain,))


def _format_text(column: Column, plain: bytes) -> str:
    return plain.decode("utf-8", "surrogateescape")


def _refuse_text(column: Column, text: str) -> Literal:
    raise ValueError


def _format_hex(column: Column, plain: bytes) -> str:
    return f"0x{plain.hex()}"


def _expect_bytes(column: Column) -> str:
    return f"{column.width} bytes in hexadecimal, as 0x.., or as text" if column.width else "bytes in hexadecimal, as 0x.., or text"


def _parse_uuid(column: Column, text: str) -> Literal:
    import uuid

    return Literal(text, (uuid.UUID(text).bytes,))


def _format_uuid(column: Column, plain: bytes) -> str:
    import uuid

    return str(uuid.UUID(bytes=plain))


TEXT = Notation(_parse_text, _format_text, lambda column: "text")
BYTES = Notation(_parse_text, _format_hex, _expect_bytes)
"""Bytes that may well be text which nobody annotated: other text than hexadecimal stands for itself."""
BSON = Notation(_refuse_text, _format_hex, lambda column: "a BSON document in hexadecimal, as 0x..")
GEOMETRIES = Notation(_refuse_text, _format_hex, lambda column: "well-known binary (WKB) in hexadecimal, as 0x..")
UUIDS = Notation(_parse_uuid, _format_uuid, lambda column: "a UUID, such as 123e4567-e89b-12d3-a456-426614174000")
