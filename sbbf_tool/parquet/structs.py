"""Thrift structs, parsed from bytes into the generated classes and built from them, with bounded
memory.

Unknown fields are skipped, so a footer is never written from these classes (`compact` edits its
bytes instead). thrift's C extension reads them if it is installed; the Python reader below takes
what the extension rejects, so that the contents of a footer, and whether it is readable, never
depend on the installed thrift. It gives the same results: bytes that are not UTF-8 become U+FFFD,
integers wrap at their width, a field of another type than the defined one is skipped, and a list of
another element type is an error. thrift's own Python code differs in each of these points.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import local
from typing import Any, TypeVar

from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

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
    """Set the attributes of `target`, an instance of a generated class, from the beginning of
    `data`; return the number of bytes read.

    Raises UnreadableError with the byte at which reading stops.
    """
    try:
        return _read_struct(target, data, 0, 1)
    except IndexError:
        raise UnreadableError(f"the bytes end inside a value, after {len(data):,} bytes") from None


_UNKNOWN_FIELD: tuple[str, int, Any] = ("", compact.STOP, None)


@lru_cache(maxsize=256)
def _fields(cls: Any) -> dict[int, tuple[str, int, Any]]:
    """Map the id of each field of a generated class to its attribute, kind and type arguments."""
    fields = {}
    for spec in cls.thrift_spec:
        if spec is not None:
            field_id, kind, name, arguments, *_ = spec
            fields[field_id] = (name, KINDS[kind], arguments)
    return fields


def _read_struct(target: Any, data: bytes, pos: int, depth: int) -> int:
    if depth > compact.MAX_DEPTH:
        raise UnreadableError(
            f"structs are nested more than {compact.MAX_DEPTH} deep", place=f"byte {pos:,}"
        )
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
        name, expected, arguments = fields.get(field_id, _UNKNOWN_FIELD)
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
        content = data[start:pos]
        if arguments == "BINARY":
            return content, pos
        return content.decode("utf-8", "replace"), pos
    if kind == compact.STRUCT:
        inner = arguments[0]()
        return inner, _read_struct(inner, data, pos, depth + 1)
    if kind == compact.LIST:
        return _read_list(data, pos, arguments, depth)
    assert kind == compact.BYTE, "the definition has no other kind: no double, no list of booleans"
    return (data[pos] ^ 0x80) - 0x80, pos + 1


def _read_list(data: bytes, pos: int, arguments: Any, depth: int) -> tuple[list[object], int]:
    start = pos
    element_kind, of_element, *_ = arguments
    element = KINDS[element_kind]
    head = data[pos]
    pos += 1
    kind = head & 0x0F
    count = head >> 4
    if count == 15:
        count, pos = _read_length(data, pos)
    # Both kinds stand for a boolean.
    comparable = compact.TRUE if kind == compact.FALSE else kind
    if count and comparable != element:
        raise UnreadableError(
            f"the elements of a list have type {kind}, not {element}", place=f"byte {start:,}"
        )
    values = []
    for _ in range(count):
        value, pos = _read_value(data, pos, element, of_element, depth)
        values.append(value)
    return values, pos


def _read_length(data: bytes, pos: int) -> tuple[int, int]:
    """Read the length of a string or a list. It cannot exceed the number of all bytes, since an
    element has at least one."""
    length, end = _read_varint(data, pos, 32)
    if length > len(data):
        raise UnreadableError(
            f"a length of {length:,} exceeds the {len(data):,} bytes of the struct",
            place=f"byte {pos:,}",
        )
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


_Struct = TypeVar("_Struct", bound=Any)

# Making a protocol takes longer than parsing a small footer, so each thread keeps one and replaces
# its bytes.
_protocols = local()


def parse_struct(cls: type[_Struct], data: bytes) -> _Struct:
    """Parse an instance of a generated class from `data`; bytes after the struct are ignored.
    Raises UnreadableError."""
    return parse_prefix(cls, data)[0]


def parse_prefix(cls: type[_Struct], data: bytes) -> tuple[_Struct, int]:
    """Parse an instance of a generated class from the beginning of `data`; return it and its length
    in bytes. Raises UnreadableError."""
    struct_and_length = _read_by_extension(cls, data)
    if struct_and_length is not None:
        return struct_and_length
    struct: _Struct = cls()
    try:
        return struct, read(struct, data)
    except UnreadableError as error:
        where = f" at its {error.place}" if error.place else ""
        raise UnreadableError(f"not a readable {cls.__name__} ({error.message}{where})") from error


def read_prefix(
    cls: type[_Struct], read: Callable[[int, int], bytes], position: int, end: int, window: int
) -> tuple[_Struct, int]:
    """Read and parse an instance that begins at `position` and ends by `end`; `window` bytes are
    read first, more if they do not suffice.

    Return it and its length. Raises UnreadableError.
    """
    while True:
        data = read(position, min(window, end - position))
        try:
            return parse_prefix(cls, data)
        except UnreadableError:
            if window >= end - position or len(data) < window:
                raise
        window *= 4


def _read_by_extension(cls: type[_Struct], data: bytes) -> tuple[_Struct, int] | None:
    """Parse with thrift's extension. None if there is none, or if it rejects the bytes, for reasons
    that vary between its versions."""
    transport = TMemoryBuffer(data)
    protocol = _protocol(transport, len(data))
    if protocol._fast_decode is None:
        return None
    struct: _Struct = cls()
    try:
        struct.read(protocol)
    except (ImportError, MemoryError):
        # The cause is the installation or the machine, not the bytes.
        raise
    except Exception:
        return None
    return struct, transport.cstringio_buf.tell()


def build_struct(struct: Any) -> bytes:
    """Build the bytes of an instance of a generated class."""
    buffer = TMemoryBuffer()
    struct.write(TCompactProtocolAcceleratedFactory().getProtocol(buffer))
    raw: bytes = buffer.getvalue()
    return raw


def _protocol(transport: TMemoryBuffer, size: int) -> Any:
    protocol = getattr(_protocols, "protocol", None)
    if protocol is None:
        protocol = TCompactProtocolAcceleratedFactory().getProtocol(transport)
        _protocols.protocol = protocol
    protocol.trans = transport
    # Each element of a container takes at least one byte, and strings are part of the data, so
    # memory stays within a multiple of its size.
    protocol.string_length_limit = size
    protocol.container_length_limit = size
    return protocol


def describe() -> str:
    """Describe the installed thrift in one line, such as "thrift: 0.25.0, with its C extension"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("thrift")
    except PackageNotFoundError:
        number = "of unknown version"
    if _protocol(TMemoryBuffer(b""), 0)._fast_decode is not None:
        return f"thrift: {number}, with its C extension"
    return f"thrift: {number}, without its C extension, so that large footers take longer"
