"""Thrift structs, parsed from bytes into the generated classes and built from them, with bounded memory.

thrift's C extension reads them if it is installed; `struct_reader` reads bytes that the extension rejects. Unknown fields are skipped, so a
footer is never written from these classes (`compact` edits its bytes instead).
"""

from __future__ import annotations

from collections.abc import Callable
from threading import local
from typing import Any, TypeVar

from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import struct_reader

_Struct = TypeVar("_Struct", bound=Any)

# Making a protocol takes longer than parsing a small footer, so each thread keeps one and replaces its bytes.
_protocols = local()


def parse_struct(cls: type[_Struct], data: bytes) -> _Struct:
    """Parse an instance of a generated class from `data`; bytes after the struct are ignored. Raises UnreadableError."""
    return parse_prefix(cls, data)[0]


def parse_prefix(cls: type[_Struct], data: bytes) -> tuple[_Struct, int]:
    """Parse an instance of a generated class from the beginning of `data`; return it and its length in bytes. Raises UnreadableError."""
    if (struct_and_length := _read_by_extension(cls, data)) is not None:
        return struct_and_length
    struct: _Struct = cls()
    try:
        return struct, struct_reader.read(struct, data)
    except UnreadableError as error:
        where = f" at its {error.place}" if error.place else ""
        raise UnreadableError(f"not a readable {cls.__name__} ({error.message}{where})") from error


def read_prefix(cls: type[_Struct], read: Callable[[int, int], bytes], position: int, end: int, window: int) -> tuple[_Struct, int]:
    """Read and parse an instance that begins at `position` and ends by `end`; `window` bytes are read first, more if they do not suffice.

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
    """Parse with thrift's extension. None if there is none, or if it rejects the bytes, for reasons that vary between its versions."""
    transport = TMemoryBuffer(data)
    protocol = _protocol(transport, len(data))
    if protocol._fast_decode is None:
        return None
    struct: _Struct = cls()
    try:
        struct.read(protocol)
    except (ImportError, MemoryError):
        raise  # the cause is the installation or the machine, not the bytes
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
        protocol = _protocols.protocol = TCompactProtocolAcceleratedFactory().getProtocol(transport)
    protocol.trans = transport
    # Each element of a container takes at least one byte, and strings are part of the data, so memory stays within a multiple of its size.
    protocol.string_length_limit = protocol.container_length_limit = size
    return protocol


def describe() -> str:
    """Describe the installed thrift in one line, such as "thrift: 0.25.0, with its C extension"."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("thrift")
    except PackageNotFoundError:
        number = "of unknown version"
    has_extension = _protocol(TMemoryBuffer(b""), 0)._fast_decode is not None
    return f"thrift: {number}, {'with its C extension' if has_extension else 'without its C extension, so that large footers take longer'}"
