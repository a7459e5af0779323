"""A pure-Python reader of Thrift's compact protocol into the generated classes, for bytes that thrift's C extension does not read.

This module is used if the extension was not built, or if it rejects the bytes, so that the contents of a footer, and whether it is
readable, never depend on the installed thrift. It reads everything that the extension reads, with the same results: bytes that are not
UTF-8 become U+FFFD, integers wrap at their width, a field with a type other than the defined one is skipped, and a list with another
element type is an error. The Python code of thrift itself differs in each of these points.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import compact

# Kinds of the compact protocol, by the numbers of Thrift's `TType` in the specs of the classes.
KINDS = {
    2: compact.TRUE,
    3: compact.BYTE,
    6: compact.I16,
    8: compact.I32,
    10: compact.I64,
    11: compact.BINARY,
    12: compact.STRUCT,
    15: compact.LIST,
}
_INT_BITS = {compact.I16: 16, compact.I32: 32, compact.I64: 64}


def read(target: Any, data: bytes) -> int:
    """Set the attributes of `target`, an instance of a generated class, from the beginning of `data`; return the number of bytes read.

    Raises UnreadableError with the byte at which reading stops.
    """
    try:
        return _read_struct(target, data, 0, 1)
    except IndexError:
        raise UnreadableError(f"the bytes end inside a value, after {len(data):,} bytes") from None


@lru_cache(maxsize=256)
def _fields(cls: Any) -> dict[int, tuple[str, int, Any]]:
    """Map the id of each field of a generated class to its attribute, kind and type arguments."""
    spec: tuple[Any, ...] = cls.thrift_spec
    return {field[0]: (field[2], KINDS[field[1]], field[3]) for field in spec if field is not None}


def _read_struct(target: Any, data: bytes, pos: int, depth: int) -> int:
    if depth > compact.MAX_DEPTH:
        raise UnreadableError(f"structs are nested more than {compact.MAX_DEPTH} deep", place=f"byte {pos:,}")
    cls: Any = type(target)
    fields = _fields(cls)
    values: dict[str, object] = target.__dict__
    field_id = 0
    while True:
        head = data[pos]
        pos += 1
        kind = head & 0x0F
        if kind == compact.STOP:
            return pos
        if head > 0x0F:
            field_id = compact.as_i16(field_id + (head >> 4))
        else:
            field_id, pos = _read_int(data, pos, 16)
        name, expected, arguments = fields.get(field_id, ("", compact.STOP, None))
        if kind in (compact.TRUE, compact.FALSE):
            # The kind of a boolean field is its value.
            if expected == compact.TRUE:
                values[name] = kind == compact.TRUE
        elif kind != expected:
            pos = compact.skip(data, pos, kind, depth)
        elif (byte := data[pos]) < 0x80 and compact.I16 <= kind <= compact.I64:
            values[name] = byte >> 1 ^ -(byte & 1)
            pos += 1
        else:
            values[name], pos = _read_value(data, pos, kind, arguments, depth)


def _read_value(data: bytes, pos: int, kind: int, arguments: Any, depth: int) -> tuple[object, int]:
    if kind in _INT_BITS:
        return _read_int(data, pos, _INT_BITS[kind])
    if kind == compact.BINARY:
        length, start = _read_length(data, pos)
        pos = start + length
        return data[start:pos] if arguments == "BINARY" else data[start:pos].decode("utf-8", "replace"), pos
    if kind == compact.STRUCT:
        inner = arguments[0]()
        return inner, _read_struct(inner, data, pos, depth + 1)
    if kind == compact.LIST:
        return _read_list(data, pos, arguments, depth)
    assert kind == compact.BYTE, "the definition has no other kind: no double, no list of booleans"
    return (data[pos] ^ 0x80) - 0x80, pos + 1


def _read_list(data: bytes, pos: int, arguments: Any, depth: int) -> tuple[list[object], int]:
    start = pos
    element, of_element = KINDS[arguments[0]], arguments[1]
    kind, count, pos = data[pos] & 0x0F, data[pos] >> 4, pos + 1
    if count == 15:
        count, pos = _read_length(data, pos)
    if count and (compact.TRUE if kind == compact.FALSE else kind) != element:
        raise UnreadableError(f"the elements of a list have type {kind}, not {element}", place=f"byte {start:,}")
    values: list[object] = []
    for _ in range(count):
        value, pos = _read_value(data, pos, element, of_element, depth)
        values.append(value)
    return values, pos


def _read_length(data: bytes, pos: int) -> tuple[int, int]:
    """Read the length of a string or a list. It cannot exceed the number of all bytes, since an element has at least one."""
    length, end = _read_varint(data, pos, 32)
    if length > len(data):
        raise UnreadableError(f"a length of {length:,} exceeds the {len(data):,} bytes of the struct", place=f"byte {pos:,}")
    return length, end


def _read_int(data: bytes, pos: int, bits: int) -> tuple[int, int]:
    folded, pos = _read_varint(data, pos, bits)
    return folded >> 1 ^ -(folded & 1), pos


def _read_varint(data: bytes, pos: int, bits: int) -> tuple[int, int]:
    """Read an unsigned varint modulo 2^`bits`; it may have as many bytes as that width needs."""
    value = 0
    for shift in range(0, bits, 7):
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << bits) - 1, pos
    raise UnreadableError(f"an integer of {bits} bits has too many bytes", place=f"byte {pos:,}")
