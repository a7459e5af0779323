"""A second implementation of Thrift's compact protocol for the tests: a struct becomes a tree that
keeps every byte of its values.

It shares no code with the package, so agreement of the two is evidence that both follow the
protocol. Values stay the bytes of the file; only structs, lists, sets and maps are parsed. `read`
and `write` are each other's inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID = range(1, 14)
FIXED = {BYTE: 1, DOUBLE: 8, UUID: 16}


@dataclass(frozen=True)
class Items:
    """A list or set. `header` is its bytes before the first element."""

    header: bytes
    kind: int
    values: tuple[object, ...]


@dataclass(frozen=True)
class Pairs:
    header: bytes
    kinds: tuple[int, int]
    entries: tuple[tuple[object, object], ...]


@dataclass(frozen=True)
class Field:
    """`value` is bytes, `Items`, `Pairs` or, of a struct, a tuple of fields. `long`: its header
    spells the id out."""

    id: int
    kind: int
    value: object
    long: bool = False

    @property
    def content(self) -> tuple[int, int, object]:
        """Return everything but the form of the header, which depends on the previous field."""
        return self.id, self.kind, self.value


Struct = tuple[Field, ...]


# Building


def varint(number: int, padding: int = 0) -> bytes:
    """Return a varint with `padding` more bytes than needed, which readers accept."""
    out = []
    while number >= 0x80 or padding:
        padding -= number < 0x80
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(value: int) -> bytes:
    return varint(value * 2 if value >= 0 else -value * 2 - 1)


def text(value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(len(data)) + data


def items(kind: int, values: tuple[object, ...], *, long: bool = False) -> Items:
    short = len(values) < 15 and not long
    return Items(
        bytes([len(values) << 4 | kind]) if short else bytes([0xF0 | kind]) + varint(len(values)),
        kind,
        values,
    )


def pairs(kinds: tuple[int, int], entries: tuple[tuple[object, object], ...]) -> Pairs:
    return Pairs(
        varint(len(entries)) + bytes([kinds[0] << 4 | kinds[1]]) if entries else b"\0",
        kinds if entries else (0, 0),
        entries,
    )


def write(struct: Struct) -> bytes:
    out = b""
    last = 0
    for field in struct:
        distance = field.id - last
        if field.long or not 0 < distance < 16:
            out += bytes([field.kind]) + number(field.id)
        else:
            out += bytes([distance << 4 | field.kind])
        out += write_value(field.kind, field.value)
        last = field.id
    return out + b"\0"


def write_value(kind: int, value: object) -> bytes:
    if isinstance(value, Items):
        return value.header + b"".join(write_value(value.kind, each) for each in value.values)
    if isinstance(value, Pairs):
        return value.header + b"".join(
            write_value(value.kinds[0], a) + write_value(value.kinds[1], b)
            for a, b in value.entries
        )
    if kind == STRUCT:
        return write(value)
    assert isinstance(value, bytes)
    return value


# Reading


def read(data: bytes) -> Struct:
    """Read the struct that fills `data`."""
    struct, end = _struct(data, 0)
    assert end == len(data), "bytes after the struct"
    return struct


def _struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields = []
    last = 0
    while data[at]:
        kind, distance = data[at] & 15, data[at] >> 4
        at += 1
        if distance:
            last += distance
        else:
            end = _varint_end(data, at)
            last = _zigzag(data[at:end])
            at = end
        # The kind of a boolean field is its value.
        value, at = (b"", at) if kind in (TRUE, FALSE) else _value(data, at, kind)
        fields.append(Field(last, kind, value, not distance))
    return tuple(fields), at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[object, int]:
    start = at
    if kind == STRUCT:
        return _struct(data, at)
    if kind in (LIST, SET):
        element, count, at = data[at] & 15, data[at] >> 4, at + 1
        if count == 15:
            end = _varint_end(data, at)
            count, at = _unsigned(data[at:end]), end
        header = data[start:at]
        values = []
        for _ in range(count):
            each, at = _element(data, at, element)
            values.append(each)
        return Items(header, element, tuple(values)), at
    if kind == MAP:
        end = _varint_end(data, at)
        count, at = _unsigned(data[at:end]), end
        if not count:
            return Pairs(data[start:at], (0, 0), ()), at
        kinds, at = (data[at] >> 4, data[at] & 15), at + 1
        header = data[start:at]
        entries = []
        for _ in range(count):
            key, at = _element(data, at, kinds[0])
            item, at = _element(data, at, kinds[1])
            entries.append((key, item))
        return Pairs(header, kinds, tuple(entries)), at
    if kind in FIXED:
        end = at + FIXED[kind]
    elif kind == BINARY:
        end = _varint_end(data, at)
        end += _unsigned(data[at:end])
    else:
        assert kind in (I16, I32, I64), f"kind {kind}"
        end = _varint_end(data, at)
    assert end <= len(data)
    return data[start:end], end


def _element(data: bytes, at: int, kind: int) -> tuple[object, int]:
    return (data[at : at + 1], at + 1) if kind in (TRUE, FALSE) else _value(data, at, kind)


def _varint_end(data: bytes, at: int) -> int:
    while data[at] & 0x80:
        at += 1
    return at + 1


def _unsigned(raw: bytes) -> int:
    return sum((byte & 0x7F) << 7 * place for place, byte in enumerate(raw))


def _zigzag(raw: bytes) -> int:
    folded = _unsigned(raw)
    return folded // 2 if folded % 2 == 0 else -(folded + 1) // 2


# Walking


def integer(raw: object) -> int:
    assert isinstance(raw, bytes)
    return _zigzag(raw)


def find(struct: Struct, field_id: int, kind: int) -> Field:
    """Return the last field of that id and kind."""
    return [field for field in struct if (field.id, field.kind) == (field_id, kind)][-1]


def replace_field(struct: Struct, old: Field, value: object) -> Struct:
    return tuple(replace(field, value=value) if field is old else field for field in struct)


def with_elements(field: Field, values: dict[int, object]) -> Items:
    """Return the list with these elements instead of its own."""
    assert isinstance(field.value, Items)
    return replace(
        field.value,
        values=tuple(values.get(at, each) for at, each in enumerate(field.value.values)),
    )
