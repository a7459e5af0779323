"""The positions of fields in Thrift's compact protocol (Thrift, "compact protocol encoding").

The generated classes hold *what* a footer states, and drop every unknown field. This module finds
*where* each field is, so that a footer can be changed by splicing: only the bytes of the chosen
fields are replaced; all other fields, known or not, are kept. The compact protocol never states the
length of a struct, so a splice changes no byte of the structs around it. It only changes the header
of the next field, whose id may be written as a distance from the previous id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sbbf_tool.errors import UnreadableError

STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(14)

# Structs of the format are nested six deep; Thrift's own readers stop at 64. A hostile footer must
# not exceed Python's recursion limit.
MAX_DEPTH = 64
_MOST_KNOWN_LISTS = 4
"""Lists of the format nest three deep. Readers of structs do not count those that they know, but
`skip` does."""

# Inside a container a boolean takes one byte, unlike in a struct.
_ELEMENT_WIDTH = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8, UUID: 16}

Ends = dict[int, int]
"""Ends of structs that were skipped before, by their starts. Without them, a walk down a tree would
skip each struct once per level."""
_WORTH_REMEMBERING = 32


class WireField(NamedTuple):
    """One field of a struct: `buf[start:value]` is its header, `buf[value:end]` its value (empty
    for booleans)."""

    id: int
    kind: int
    start: int
    value: int
    end: int
    relative: bool
    """Whether the header states a distance from the id of the previous field instead of the id
    itself."""


class Splice(NamedTuple):
    """A replacement of `buf[start:end]` by `data`."""

    start: int
    end: int
    data: bytes


class _FieldBytes(NamedTuple):
    """One field of a struct that is built."""

    id: int
    kind: int
    header: bytes
    """The header if it states the id itself, else nothing."""
    value: bytes


def read_varint(buf: bytes | memoryview, pos: int) -> tuple[int, int]:
    """Read the unsigned varint at `pos`; return it and the next position. Raises IndexError past
    the end, UnreadableError over 10 bytes."""
    byte = buf[pos]
    if byte < 0x80:
        return byte, pos + 1
    value = byte & 0x7F
    for shift in range(7, 70, 7):
        pos += 1
        byte = buf[pos]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos + 1
    raise UnreadableError("a varint has more than ten bytes", place=f"byte {pos:,}")


def build_varint(value: int) -> bytes:
    """Build an unsigned varint from `value` >= 0."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def build_int(value: int) -> bytes:
    """Build the zigzag varint of `value` (i16, i32 or i64); the compact protocol has one form for
    all three."""
    folded = value << 1
    if value < 0:
        folded = ~folded
    return build_varint(folded)


def list_header(buf: bytes, pos: int) -> tuple[int, int, int]:
    """Read the header of the list or set whose value starts at `pos`: element kind, element count,
    position of the first element."""
    head = buf[pos]
    pos += 1
    kind = head & 0x0F
    count = head >> 4
    if count == 15:
        count, pos = read_varint(buf, pos)
    return kind, count, pos


def skip(buf: bytes, pos: int, kind: int, depth: int = 0, ends: Ends | None = None) -> int:
    """Return the position after the value of `kind` at `pos`. The work is bounded by the bytes
    skipped, whatever lengths they state."""
    if I16 <= kind <= I64:
        while buf[pos] >= 0x80:
            pos += 1
        return pos + 1
    if kind == BINARY:
        length, pos = read_varint(buf, pos)
        return _within(buf, pos, pos + length)
    if kind in (TRUE, FALSE):
        return pos
    if depth >= MAX_DEPTH:
        raise UnreadableError(
            f"structs are nested more than {MAX_DEPTH} deep", place=f"byte {pos:,}"
        )
    if kind == STRUCT:
        return _skip_struct(buf, pos, depth + 1, ends)
    if kind in (LIST, SET):
        element, count, pos = list_header(buf, pos)
        return _skip_elements(buf, pos, element, count, depth + 1, ends)
    if kind == MAP:
        return _skip_map(buf, pos, depth + 1, ends)
    if kind in _ELEMENT_WIDTH:
        return _within(buf, pos, pos + _ELEMENT_WIDTH[kind])
    raise UnreadableError(
        f"a field has type {kind}, which the compact protocol does not define",
        place=f"byte {pos:,}",
    )


def _skip_struct(buf: bytes, pos: int, depth: int, ends: Ends | None) -> int:
    start = pos
    if ends is not None and start in ends:
        return ends[start]
    while True:
        head = buf[pos]
        pos += 1
        if not head & 0x0F:
            break
        if not head & 0xF0:
            _, pos = read_varint(buf, pos)
        kind = head & 0x0F
        # Most fields of a footer are integers; a call for each would double the time.
        if I16 <= kind <= I64:
            while buf[pos] >= 0x80:
                pos += 1
            pos += 1
        else:
            pos = skip(buf, pos, kind, depth, ends)
    if ends is not None and pos - start > _WORTH_REMEMBERING:
        ends[start] = pos
    return pos


def _skip_map(buf: bytes, pos: int, depth: int, ends: Ends | None) -> int:
    count, pos = read_varint(buf, pos)
    if not count:
        return pos
    kinds = buf[pos]
    pos += 1
    key = kinds >> 4
    value = kinds & 0x0F
    if key in _ELEMENT_WIDTH and value in _ELEMENT_WIDTH:
        width = _ELEMENT_WIDTH[key] + _ELEMENT_WIDTH[value]
        return _within(buf, pos, pos + count * width)
    for _ in range(count):
        pos = _skip_elements(buf, pos, key, 1, depth, ends)
        pos = _skip_elements(buf, pos, value, 1, depth, ends)
    return pos


def _skip_elements(
    buf: bytes, pos: int, kind: int, count: int, depth: int, ends: Ends | None
) -> int:
    width = _ELEMENT_WIDTH.get(kind)
    if width is not None:
        return _within(buf, pos, pos + count * width)
    if I16 <= kind <= I64:
        for _ in range(count):
            while buf[pos] >= 0x80:
                pos += 1
            pos += 1
        return pos
    for _ in range(count):
        pos = skip(buf, pos, kind, depth, ends)
    return pos


def _within(buf: bytes, pos: int, end: int) -> int:
    if end > len(buf):
        raise UnreadableError(
            f"a value of {end - pos:,} bytes extends past the end", place=f"byte {pos:,}"
        )
    return end


def fields(buf: bytes, pos: int, ends: Ends | None = None) -> tuple[list[WireField], int]:
    """List the fields of the struct at `pos` in the order written; also return the position of its
    stop byte. They may be as deep as those of a struct that `structs` parses."""
    field_list = []
    last_id = 0
    while (head := buf[pos]) & 0x0F != STOP:
        start = pos
        kind = head & 0x0F
        delta = head >> 4
        pos += 1
        if delta:
            last_id = as_i16(last_id + delta)
        else:
            raw, pos = read_varint(buf, pos)
            last_id = as_i16(raw >> 1 ^ -(raw & 1))
        end = skip(buf, pos, kind, 1 - _MOST_KNOWN_LISTS, ends)
        field_list.append(WireField(last_id, kind, start, pos, end, bool(delta)))
        pos = end
    return field_list, pos


def as_i16(number: int) -> int:
    """Wrap a field id to its 16 bits: Thrift's readers drop the higher bits silently."""
    return (number + 0x8000 & 0xFFFF) - 0x8000


def last_field(fields: Iterable[WireField], field_id: int, kind: int) -> WireField | None:
    """Find the field that a Thrift reader would use: the last one with this id and kind. It skips
    fields with this id and another kind."""
    match = None
    for field in fields:
        if field.id == field_id and field.kind == kind:
            match = field
    return match


def set_fields(buf: bytes, pos: int, changes: Mapping[int, tuple[int, bytes | None]]) -> Splice:
    """Build the edit that sets fields of the struct at `pos`: ``{id: (kind, value bytes)}``; a
    value of None removes the field.

    A field with the same id but another kind is kept: an old build of parquet-mr used id 15 for a
    list.
    """
    old, stop = fields(buf, pos)
    entries = []
    pending = {field_id: value for field_id, (_, value) in changes.items() if value is not None}
    for field in old:
        header = b"" if field.relative else buf[field.start : field.value]
        kind, value = changes.get(field.id, (None, None))
        if kind != field.kind:
            old_value = buf[field.value : field.end]
            entries.append(_FieldBytes(field.id, field.kind, header, old_value))
        elif value is not None and last_field(old, field.id, field.kind) is field:
            entries.append(_FieldBytes(field.id, field.kind, header, pending.pop(field.id)))
    for field_id in sorted(pending):
        position = 0
        for at, entry in enumerate(entries):
            if entry.id <= field_id:
                position = at + 1
        kind, _ = changes[field_id]
        entries.insert(position, _FieldBytes(field_id, kind, b"", pending[field_id]))

    out = bytearray()
    base = 0
    for entry in entries:
        out += entry.header or _field_header(entry.id, entry.kind, base)
        out += entry.value
        base = entry.id
    return Splice(pos, stop, bytes(out))


def _field_header(field_id: int, kind: int, base: int) -> bytes:
    delta = field_id - base & 0xFFFF
    if 0 < delta < 16:
        return bytes([delta << 4 | kind])
    return bytes([kind]) + build_int(field_id)


def apply(buf: bytes, edits: Iterable[Splice]) -> bytes:
    """Apply edits to `buf`; they must not overlap."""
    view = memoryview(buf)
    pos = 0
    parts: list[bytes | memoryview] = []
    for edit in sorted(edits):
        if edit.start < pos:
            raise ValueError("edits overlap")
        parts += [view[pos : edit.start], edit.data]
        pos = edit.end
    return b"".join([*parts, view[pos:]])
