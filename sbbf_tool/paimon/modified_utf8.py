"""Java's modified UTF-8 with its length, as `DataOutput.writeUTF` writes a column name.

A u16 big-endian count of bytes, then one to three bytes for each UTF-16 unit: NUL takes two (c0 80), a character beyond U+FFFF is two
surrogates of three bytes each, and no form takes four. 65,535 bytes at most.
"""

from __future__ import annotations

import struct

from sbbf_tool.errors import UnreadableError, UsageError

MAX_BYTES = 0xFFFF


def build_utf(text: str) -> bytes:
    """The bytes of a name with their count in front. Raises UsageError beyond 65,535 bytes."""
    if max(text, default="") > "\uffff":
        units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
        text = "".join(chr(unit) for (unit,) in units)
    encoded = text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(encoded) > MAX_BYTES:
        raise UsageError(f"a name of {len(encoded)} bytes; {MAX_BYTES} is the most")
    return struct.pack(">H", len(encoded)) + encoded


def parse_utf(data: bytes, start: int, end: int) -> tuple[str, int]:
    """The name at `start` and the offset after it; nothing at or beyond `end` is looked at.

    Raises UnreadableError when it runs over `end`, or is not what `build_utf` makes of any text (so that a name always comes back as it
    was).
    """
    if start + 2 > end:
        raise UnreadableError("a name's length is cut off", place=f"offset {start}")
    stop = start + 2 + int.from_bytes(data[start : start + 2], "big")
    if stop > end:
        raise UnreadableError("a name is cut off", place=f"offset {start}")
    encoded = data[start + 2 : stop]
    try:
        text = encoded.replace(b"\xc0\x80", b"\0").decode("utf-8", "surrogatepass")
        text = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    except UnicodeDecodeError:
        raise UnreadableError("a name that is not modified UTF-8", place=f"offset {start}") from None
    if build_utf(text) != data[start:stop]:
        raise UnreadableError("a name that is not modified UTF-8", place=f"offset {start}")
    return text, stop
