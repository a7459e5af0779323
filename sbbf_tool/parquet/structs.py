"""Thrift structs from bytes and back, by the generated classes, within bounds.

thrift's C extension reads them where it is installed; what it refuses, `struct_reader` decides. What the classes do not know is skipped; a
footer is never written back from them (see `compact` for how it is).
"""

from __future__ import annotations

from threading import local
from typing import Any, TypeVar

from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import struct_reader

_Struct = TypeVar("_Struct", bound=Any)

# A protocol costs more to make than a small footer to parse, so each thread keeps one and puts the next bytes under it.
_kept = local()


def parse_struct(cls: type[_Struct], data: bytes) -> _Struct:
    """A generated class read from `data`; bytes behind the struct are ignored. Raises UnreadableError."""
    return parse_prefix(cls, data)[0]


def parse_prefix(cls: type[_Struct], data: bytes) -> tuple[_Struct, int]:
    """A generated class read from the beginning of `data`, and how many bytes it takes there. Raises UnreadableError."""
    if (found := _read_by_extension(cls, data)) is not None:
        return found
    struct: _Struct = cls()
    try:
        return struct, struct_reader.read(struct, data)
    except UnreadableError as error:
        where = f" at {error.place}" if error.place else ""
        raise UnreadableError(f"not a readable {cls.__name__} ({error.message}{where})") from error


def _read_by_extension(cls: type[_Struct], data: bytes) -> tuple[_Struct, int] | None:
    """None where thrift has no extension, or where that refuses the bytes, for reasons that vary between versions of it."""
    transport = TMemoryBuffer(data)
    protocol = _protocol(transport, len(data))
    if protocol._fast_decode is None:
        return None
    struct: _Struct = cls()
    try:
        struct.read(protocol)
    except (ImportError, MemoryError):
        raise  # of the installation, and of this machine, but not of the bytes
    except Exception:
        return None
    return struct, transport.cstringio_buf.tell()


def build_struct(struct: Any) -> bytes:
    """The bytes of a generated class's instance."""
    buffer = TMemoryBuffer()
    struct.write(TCompactProtocolAcceleratedFactory().getProtocol(buffer))
    raw: bytes = buffer.getvalue()
    return raw


def _protocol(transport: TMemoryBuffer, size: int) -> Any:
    protocol = getattr(_kept, "protocol", None)
    if protocol is None:
        protocol = _kept.protocol = TCompactProtocolAcceleratedFactory().getProtocol(transport)
    protocol.trans = transport
    # A container holds at least a byte an element and a string is inside the data: so memory stays within a multiple of its size.
    protocol.string_length_limit = protocol.container_length_limit = size
    return protocol


def describe() -> str:
    """One line for people on the thrift that is installed: "thrift: 0.25.0, with its C extension"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("thrift")
    except PackageNotFoundError:
        number = "of unknown version"
    has_extension = _protocol(TMemoryBuffer(b""), 0)._fast_decode is not None
    return f"thrift: {number}, {'with its C extension' if has_extension else 'without its C extension, so that large footers take longer'}"
