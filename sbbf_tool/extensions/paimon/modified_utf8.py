"""Java's modified UTF-8 with a length prefix, as `DataOutput.writeUTF` writes a column name.

A name is a big-endian u16 count of bytes, then one to three bytes for each UTF-16 unit: NUL takes two (c0 80), a character above U+FFFF is
two surrogates of three bytes each, and there is no four-byte form. A name has at most 65,535 bytes.
"""

from __future__ import annotations

import struct

from sbbf_tool.errors import UnreadableError, UsageError

MAX_BYTES = 0xFFFF


def build_utf(text: str) -> bytes:
    """Build the bytes of a name, preceded by their count. Raises UsageError for more than 65,535 bytes."""
    if max(text, default="") > "\uffff":
        units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
        text = "".join(chr(unit) for (unit,) in units)
    encoded = text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(encoded) > MAX_BYTES:
        raise UsageError(f"the name has {len(encoded)} bytes; the limit is {MAX_BYTES}")
    return struct.pack(">H", len(encoded)) + encoded


def parse_utf(data: bytes, start: int, end: int) -> tuple[str, int]:
    """Parse the name at `start`; return it and the offset after it. Reads no byte at or after `end`.

    Raises UnreadableError when it extends past `end`, or when `build_utf` would not build the same bytes (so that names round-trip).
    """
    if start + 2 > end:
        raise UnreadableError("the length of a name is truncated", place=f"offset {start}")
    stop = start + 2 + int.from_bytes(data[start : start + 2], "big")
    if stop > end:
        raise UnreadableError("a name is truncated", place=f"offset {start}")
    encoded = data[start + 2 : stop]
    try:
        text = encoded.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        text = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError:
        raise UnreadableError("a name is not valid modified UTF-8", place=f"offset {start}") from None
    if build_utf(text) != data[start:stop]:
        raise UnreadableError("a name is not valid modified UTF-8", place=f"offset {start}")
    return text, stop
