"""The result of parsing a written value (`Literal`), and the notation of one kind of column (`Notation`): LogicalTypes.md.

Text from a command line may contain bytes that are not UTF-8; they become surrogates ("surrogateescape"), as in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical

_MAX_BLANKS = 64
"""Most blanks at the end of a CHAR with which text is queried: each number of them is another form."""

ABSENT, MAYBE, CANNOT_SAY = "absent", "maybe", "cannot say"


@dataclass(frozen=True, slots=True)
class Literal:
    """A value to look up: it can be present only if one of its `forms` is. `verdict` is the answer if no filter is needed."""

    text: str
    forms: tuple[bytes, ...] = ()
    verdict: str | None = None
    note: str | None = None
    is_null: bool = False
    """Whether the literal is null. Nulls are not stored as values, and no filter contains them."""


class Notation(NamedTuple):
    """The written form of the values of a kind of column: a parser, a formatter, and a description for errors.

    `parse` raises ValueError or OverflowError for text that cannot be a value, `format` for bytes that cannot.
    """

    parse: Callable[[Column, str], Literal]
    format: Callable[[Column, bytes], str]
    expects: Callable[[Column], str]


def logical_of(column: Column) -> Logical:
    """Return the logical type of a column whose logical type selected its notation."""
    assert column.logical is not None
    return column.logical


def width_of(column: Column) -> int:
    """Return the width in bytes of the values of a column whose notation requires a fixed width."""
    assert column.width is not None
    return column.width


# --- Text, UUIDs, and bytes whose only written form is hexadecimal ("String Types", "UUID", "Geospatial Types") ---


def _parse_text(column: Column, text: str) -> Literal:
    plain = text.encode("utf-8", "surrogateescape")
    if column.width is not None and len(plain) != column.width:
        raise ValueError
    if length := column.reading.char_length:
        bare = plain.rstrip(b" ")
        blanks = length - len(bare.decode("utf-8", "surrogateescape"))
        if blanks > _MAX_BLANKS:
            return Literal(text, verdict=CANNOT_SAY, note=f"text of a CHAR({length}) column may be stored with fewer blanks at its end")
        return Literal(text, tuple(dict.fromkeys((plain, *(bare + b" " * number for number in range(blanks + 1))))))
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
"""Bytes without an annotation, which may be text: anything but hexadecimal after 0x is parsed as text."""
BSON = Notation(_refuse_text, _format_hex, lambda column: "a BSON document in hexadecimal, as 0x..")
GEOMETRIES = Notation(_refuse_text, _format_hex, lambda column: "well-known binary (WKB) in hexadecimal, as 0x..")
UUIDS = Notation(_parse_uuid, _format_uuid, lambda column: "a UUID, such as 123e4567-e89b-12d3-a456-426614174000")
