"""The container of a file index (fileindex/FileIndexFormat.java): a `.index` file, and the same
bytes inside a manifest.

Everything is big-endian.

    i64  magic 00 05 4e 4e d0 1a 35 ae
    i32  version 1
    i32  head length: where the body begins, counted from byte 0
    i32  number of columns, then for each
           utf  name                     as Java's writeUTF; a map's entry is called `column[key]`
           i32  number of indexes, then for each
                  utf  kind              bloom-filter, bitmap, bsi, range-bitmap, ...
                  i32  start             counted from byte 0; -1 for an EMPTY index: without values
                  i32  length
    i32  redundant length, and that many redundant bytes (none so far)
    body                                 the bytes of the indexes

Like Paimon's reader, this module takes the end of the head from the head length and ignores the
redundant part. Unknown kinds are kept. As in Paimon, a column that occurs twice has the indexes of
both occurrences; of two indexes of the same kind, the last one is used.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.frozen import Frozen

MAX_BYTES = 0xFFFF


def build_utf(text: str) -> bytes:
    """Build a name in Java's modified UTF-8, preceded by its number of bytes.

    NUL takes two bytes (c0 80), and a character above U+FFFF is two surrogates of three bytes each.
    Raises UsageError for more than 65,535 bytes.
    """
    if max(text, default="") > "\uffff":
        units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
        text = "".join(chr(unit) for (unit,) in units)
    encoded = text.encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
    if len(encoded) > MAX_BYTES:
        raise UsageError(f"the name has {len(encoded)} bytes; the limit is {MAX_BYTES}")
    return struct.pack(">H", len(encoded)) + encoded


def parse_utf(data: bytes, start: int, end: int) -> tuple[str, int]:
    """Parse the name at `start`; return the name and the offset after it.

    Reads no byte at or after `end`. Raises UnreadableError when the name extends past `end`, or
    when `build_utf` would not build the same bytes (so that names round-trip).
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
        raise UnreadableError(
            "a name is not valid modified UTF-8", place=f"offset {start}"
        ) from None
    if build_utf(text) != data[start:stop]:
        raise UnreadableError("a name is not valid modified UTF-8", place=f"offset {start}")
    return text, stop


MAGIC = 1493475289347502
VERSION = 1
EMPTY = -1

_FIXED = struct.Struct(">qiii")
_I32 = struct.Struct(">i")
_SPAN = struct.Struct(">ii")
_MAX_SIZE = (1 << 31) - 1
_SMALLEST_COLUMN = 6
_SMALLEST_INDEX = 10


class IndexEntry(Frozen):
    """One index of a column; `start` counts from byte 0 of the container."""

    kind: str
    start: int
    length: int

    @property
    def empty(self) -> bool:
        """Whether the index has no values: Paimon skips the file for every value."""
        return self.start == EMPTY


Bodies = Mapping[str, Mapping[str, bytes | None]]
"""The bytes of indexes: column -> kind -> bytes; None for an EMPTY index."""


class Container(Frozen):
    """Container as stored, and its indexes as Paimon finds them."""

    data: bytes
    indexes: Mapping[str, Mapping[str, IndexEntry]]
    """Column, by its name in the schema of the data file -> kind -> the last entry of that kind."""

    def body_of(self, index: IndexEntry) -> bytes:
        """Return the bytes of an index; empty for an EMPTY one."""
        if index.empty:
            return b""
        end = index.start + index.length
        return self.data[index.start : end]

    @property
    def bodies(self) -> dict[str, dict[str, bytes | None]]:
        """The bytes of all indexes, in the form that `build_container` takes."""
        bodies: dict[str, dict[str, bytes | None]] = {}
        for column, kinds in self.indexes.items():
            bodies[column] = {}
            for kind, index in kinds.items():
                bodies[column][kind] = None if index.empty else self.body_of(index)
        return bodies


def build_container(indexes: Bodies) -> bytes:
    """Build the bytes of a container with these indexes, in the given order and without gaps.

    For one column, the bytes equal those that Paimon writes; Paimon writes several columns in the
    order of a Java HashMap. Raises UsageError for a name of more than 65,535 bytes or a container
    of more than 2 GiB.
    """
    head_length = offset = _head_length(indexes)
    head = [_FIXED.pack(MAGIC, VERSION, head_length, len(indexes))]
    bodies = []
    for name, kinds in indexes.items():
        head += (build_utf(name), _I32.pack(len(kinds)))
        for kind, body in kinds.items():
            head.append(build_utf(kind))
            if body is None:
                head.append(_SPAN.pack(EMPTY, 0))
                continue
            head.append(_SPAN.pack(offset, len(body)))
            bodies.append(body)
            offset += len(body)
    if offset > _MAX_SIZE:
        raise UsageError(f"the file index would have {offset} bytes; the limit is {_MAX_SIZE}")
    head.append(_I32.pack(0))
    return b"".join((*head, *bodies))


def _head_length(indexes: Bodies) -> int:
    """Return the bytes of the head, which ends with the redundant length."""
    length = _FIXED.size + _I32.size
    for name, kinds in indexes.items():
        length += len(build_utf(name)) + _I32.size
        for kind in kinds:
            length += len(build_utf(kind)) + _SPAN.size
    return length


def parse_container(data: bytes) -> Container:
    """Parse a container from its bytes.

    Raises UnreadableError, with the offset, for bytes that no reader can use: a different magic or
    version, a head or an index that extends past the end, or an index that starts inside the head.
    """
    if len(data) < _FIXED.size:
        raise UnreadableError(
            f"a file index has at least {_FIXED.size} bytes, not {len(data)}", place="offset 0"
        )
    magic, version, head_length, column_count = _FIXED.unpack_from(data)
    if magic != MAGIC:
        raise UnreadableError("not a Paimon file index: the magic bytes differ", place="offset 0")
    if version != VERSION:
        raise UnreadableError(
            f"the file index has version {version}; only {VERSION} is supported", place="offset 8"
        )
    if not _FIXED.size <= head_length <= len(data):
        raise UnreadableError(
            f"the header states {head_length} bytes, but the file index has {len(data)}",
            place="offset 12",
        )
    indexes: dict[str, dict[str, IndexEntry]] = {}
    offset = _FIXED.size
    _check_count(column_count, _SMALLEST_COLUMN, offset, head_length, "columns")
    for _ in range(column_count):
        name, offset = parse_utf(data, offset, head_length)
        if offset + _I32.size > head_length:
            raise UnreadableError("the header is truncated", place=f"offset {offset}")
        (index_count,) = _I32.unpack_from(data, offset)
        offset += _I32.size
        kinds = indexes.setdefault(name, {})
        _check_count(index_count, _SMALLEST_INDEX, offset, head_length, "indexes")
        for _ in range(index_count):
            index, offset = _parse_index(data, offset, head_length)
            kinds[index.kind] = index
    return Container(data, indexes)


def _parse_index(data: bytes, offset: int, head_length: int) -> tuple[IndexEntry, int]:
    kind, offset = parse_utf(data, offset, head_length)
    if offset + _SPAN.size > head_length:
        raise UnreadableError("the position of an index is truncated", place=f"offset {offset}")
    start, length = _SPAN.unpack_from(data, offset)
    if start != EMPTY and not (head_length <= start <= start + length <= len(data)):
        raise UnreadableError(
            f"an index of {length} bytes at offset {start} does not fit into the file index of "
            f"{len(data)} bytes",
            place=f"offset {offset}",
        )
    return IndexEntry(kind, start, length), offset + _SPAN.size


def _check_count(count: int, smallest: int, offset: int, end: int, noun: str) -> None:
    """Raise UnreadableError if so many items do not fit into the rest of the head."""
    if not 0 <= count <= (end - offset) // smallest:
        raise UnreadableError(
            f"{count} {noun} do not fit into the {end - offset} bytes that remain of the header",
            place=f"offset {offset}",
        )
