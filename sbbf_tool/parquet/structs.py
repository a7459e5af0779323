"""Thrift structs from bytes and back, by the generated classes and the accelerated compact protocol, within bounds.

What the classes do not know is passed over; a footer is never written back from them (see `compact` for how it is).
"""

from __future__ import annotations

import gc
from threading import local
from typing import Any, TypeVar

from thrift.protocol.TCompactProtocol import TCompactProtocolAcceleratedFactory
from thrift.transport.TTransport import TMemoryBuffer

from sbbf_tool.errors import UnreadableError

_Struct = TypeVar("_Struct", bound=Any)

# A protocol costs more to make than a small footer to parse, so each thread keeps one and puts the next bytes under it.
_kept = local()


def parse_struct(cls: type[_Struct], data: bytes) -> _Struct:
    """A generated class read from `data`; bytes behind the struct are ignored. Raises UnreadableError."""
    return parse_prefix(cls, data)[0]


def parse_prefix(cls: type[_Struct], data: bytes) -> tuple[_Struct, int]:
    """A generated class read from the beginning of `data`, and how many bytes it takes there. Raises UnreadableError."""
    struct: _Struct = cls()
    transport = TMemoryBuffer(data)
    # A wide footer becomes a million objects, none of them garbage: to look for some among them takes as long as making them.
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        struct.read(_protocol(transport, len(data)))
    except Exception as error:
        raise UnreadableError(f"not a readable {cls.__name__} ({str(error) or type(error).__name__})") from error
    finally:
        if was_collecting:
            gc.enable()
    return struct, transport.cstringio_buf.tell()


def build_struct(struct: Any) -> bytes:
    """The bytes of a generated class's instance."""
    buffer = TMemoryBuffer()
    struct.write(TCompactProtocolAcceleratedFactory().getProtocol(buffer))
    raw: bytes = buffer.getvalue()
    return raw


def _protocol(transport: TMemoryBuffer, size: int) -> Any:
    protocol = getattr(_kept, "protocol", None)
    if protocol is None or protocol._fast_decode is None:
        # Pure Python, which keeps state of its own, is what Thrift falls back to where its extension was not built.
        protocol = _kept.protocol = TCompactProtocolAcceleratedFactory().getProtocol(transport)
    protocol.trans = transport
    # A container holds at least a byte an element and a string is inside the data: so memory stays within a multiple of its size.
    protocol.string_length_limit = protocol.container_length_limit = size
    return protocol
