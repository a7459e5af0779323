"""Avro's binary encoding of values (Avro 1.11 specification, "Binary Encoding"), in both directions.

Values in Python: a record is a dict, a union is the value itself, bytes and fixed are bytes, an enum is its symbol, an array a list, a
map a dict. A schema is turned once into a reading function. Everything read is bounded by the bytes at hand: an array or map may not
claim more items than there are bytes left, and all of them in one block not more than MAX_ITEMS.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, NoReturn

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.paimon.avro_schema import Array, Enumeration, Fixed, Map, Primitive, Record, Schema, Union

MAX_ITEMS = 4_000_000
"""Items of arrays and maps read from one block at most."""

_FLOAT = struct.Struct("<f")
_DOUBLE = struct.Struct("<d")


class Cursor:
    """A place in a block of encoded values."""

    __slots__ = ("data", "items_left", "offset")

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset
        self.items_left = MAX_ITEMS

    def wrong(self, what: str) -> NoReturn:
        raise UnreadableError(what, place=f"offset {self.offset} of the block")

    def long(self) -> int:
        """A zigzag varint of up to ten bytes, as a signed 64-bit number."""
        value = shift = 0
        offset = self.offset
        try:
            while (byte := self.data[offset]) & 0x80:
                value |= (byte & 0x7F) << shift
                shift += 7
                offset += 1
                if shift > 63:
                    self.wrong("an Avro number of more than ten bytes")
        except IndexError:
            self.wrong("an Avro number is cut off")
        value |= byte << shift
        if value >> 64:
            self.wrong("an Avro number beyond 64 bits")
        self.offset = offset + 1
        return (value >> 1) ^ -(value & 1)

    def take(self, size: int) -> bytes:
        end = self.offset + size
        if size < 0 or end > len(self.data):
            self.wrong(f"{size} bytes in {len(self.data) - self.offset}")
        taken = self.data[self.offset : end]
        self.offset = end
        return taken

    def block_count(self) -> int:
        """The number of items in the next block of an array or map, 0 at its end."""
        count = self.long()
        if count < 0:
            count = -count
            self.long()  # the block's size in bytes, for those who skip
        if count > min(self.items_left, len(self.data) - self.offset):
            self.wrong(f"{count} items in {len(self.data) - self.offset} bytes")
        self.items_left -= count
        return count


Reader = Callable[[Cursor], Any]


def reader_of(schema: Schema, *, raw_strings: bool = False) -> Reader:
    """A function that reads one value. With `raw_strings` a string comes as the bytes stored, whatever they are."""
    if isinstance(schema, Primitive):
        return _read_raw if raw_strings and schema.kind == "string" else _PRIMITIVE_READERS[schema.kind]
    if isinstance(schema, Fixed):
        size = schema.size
        return lambda cursor: cursor.take(size)
    if isinstance(schema, Enumeration):
        return _enum_reader(schema.symbols)
    if isinstance(schema, Array):
        return _array_reader(reader_of(schema.items, raw_strings=raw_strings))
    if isinstance(schema, Map):
        return _map_reader(_read_raw if raw_strings else _read_string, reader_of(schema.values, raw_strings=raw_strings))
    if isinstance(schema, Union):
        return _union_reader([reader_of(branch, raw_strings=raw_strings) for branch in schema.branches])
    return _record_reader([(name, reader_of(field, raw_strings=raw_strings)) for name, field in schema.fields])


def _read_boolean(cursor: Cursor) -> bool:
    byte = cursor.take(1)[0]
    if byte > 1:
        cursor.wrong(f"an Avro boolean of {byte}")
    return byte == 1


def _read_int(cursor: Cursor) -> int:
    value = cursor.long()
    if not -(1 << 31) <= value < 1 << 31:
        cursor.wrong(f"an Avro int of {value}")
    return value


def _read_raw(cursor: Cursor) -> bytes:
    return cursor.take(cursor.long())


def _read_string(cursor: Cursor) -> str:
    try:
        return _read_raw(cursor).decode()
    except UnicodeDecodeError:
        cursor.wrong("an Avro string that is not UTF-8")


_PRIMITIVE_READERS: dict[str, Reader] = {
    "null": lambda cursor: None,
    "boolean": _read_boolean,
    "int": _read_int,
    "long": Cursor.long,
    "float": lambda cursor: _FLOAT.unpack(cursor.take(4))[0],
    "double": lambda cursor: _DOUBLE.unpack(cursor.take(8))[0],
    "bytes": _read_raw,
    "string": _read_string,
}


def _enum_reader(symbols: tuple[str, ...]) -> Reader:
    def read(cursor: Cursor) -> str:
        at = cursor.long()
        if not 0 <= at < len(symbols):
            cursor.wrong(f"symbol {at} of {len(symbols)}")
        return symbols[at]

    return read


def _array_reader(read_item: Reader) -> Reader:
    def read(cursor: Cursor) -> list[Any]:
        items: list[Any] = []
        while count := cursor.block_count():
            items += [read_item(cursor) for _ in range(count)]
        return items

    return read


def _map_reader(read_key: Reader, read_value: Reader) -> Reader:
    def read(cursor: Cursor) -> dict[Any, Any]:
        items: dict[Any, Any] = {}
        while count := cursor.block_count():
            for _ in range(count):
                key = read_key(cursor)
                items[key] = read_value(cursor)
        return items

    return read


def _union_reader(readers: list[Reader]) -> Reader:
    def read(cursor: Cursor) -> Any:
        at = cursor.long()
        if not 0 <= at < len(readers):
            cursor.wrong(f"branch {at} of a union of {len(readers)}")
        return readers[at](cursor)

    return read


def _record_reader(fields: list[tuple[str, Reader]]) -> Reader:
    def read(cursor: Cursor) -> dict[str, Any]:
        return {name: read_field(cursor) for name, read_field in fields}

    return read


def build_long(value: int) -> bytes:
    """A number as a zigzag varint."""
    left = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while left > 0x7F:
        encoded.append(left & 0x7F | 0x80)
        left >>= 7
    encoded.append(left)
    return bytes(encoded)


def build_datum(schema: Schema, value: Any) -> bytes:
    """A value's bytes under a schema. Raises UsageError when the value is not of that schema, or a record lacks a field."""
    if isinstance(schema, Primitive):
        return _build_primitive(schema.kind, value)
    if isinstance(schema, Union):
        for at, branch in enumerate(schema.branches):
            if _fits(branch, value):
                return build_long(at) + build_datum(branch, value)
        raise UsageError(f"no branch of the Avro union takes {value!r:.60}")
    if isinstance(schema, Record):
        if not isinstance(value, dict) or value.keys() != {name for name, _ in schema.fields}:
            raise UsageError("a record with other fields than its Avro schema")
        return b"".join(build_datum(field, value[name]) for name, field in schema.fields)
    if not _fits(schema, value):
        raise UsageError(f"{value!r:.60} does not fit its Avro schema")
    if isinstance(schema, Array):
        items = b"".join(build_datum(schema.items, item) for item in value)
        return (build_long(len(value)) + items if value else b"") + b"\0"
    if isinstance(schema, Map):
        pairs = b"".join(_build_primitive("string", key) + build_datum(schema.values, item) for key, item in value.items())
        return (build_long(len(value)) + pairs if value else b"") + b"\0"
    return build_long(schema.symbols.index(value)) if isinstance(schema, Enumeration) else bytes(value)


def _build_primitive(kind: str, value: Any) -> bytes:
    if not _fits(Primitive(kind), value):
        raise UsageError(f"{value!r:.60} is not an Avro {kind}")
    if kind in ("int", "long"):
        return build_long(value)
    if kind in ("bytes", "string"):
        encoded = value.encode() if isinstance(value, str) else value
        return build_long(len(encoded)) + encoded
    if kind == "boolean":
        return bytes((value,))
    if kind == "null":
        return b""
    return (_FLOAT if kind == "float" else _DOUBLE).pack(value)


def _fits(schema: Schema, value: Any) -> bool:
    if isinstance(schema, Primitive):
        return _PRIMITIVE_FITS[schema.kind](value)
    if isinstance(schema, Fixed):
        return isinstance(value, bytes) and len(value) == schema.size
    if isinstance(schema, Enumeration):
        return value in schema.symbols
    if isinstance(schema, Union):
        return any(_fits(branch, value) for branch in schema.branches)
    return isinstance(value, list if isinstance(schema, Array) else dict)


def _integer_of(bits: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1


_PRIMITIVE_FITS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": _integer_of(32),
    "long": _integer_of(64),
    "float": lambda value: isinstance(value, float),
    "double": lambda value: isinstance(value, float),
    "bytes": lambda value: isinstance(value, bytes),
    "string": lambda value: isinstance(value, str),
}
