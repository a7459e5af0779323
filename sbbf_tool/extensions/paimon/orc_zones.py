"""The time zone in which an ORC file was written (ORC specification v1, "Postscript", "Footer", "Stripe Footer").

The time zone matters because Paimon's Java code passes a java.sql.Timestamp to ORC: a TIMESTAMP WITH LOCAL TIME ZONE is stored shifted by
the time zone of the writing process, and pyarrow does not report that zone. This module reads only the protobuf fields that lead to the
zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro.file import unpack
from sbbf_tool.parquet.compact import read_varint

UTC_NAMES = frozenset(("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Universal", "Zulu", "Etc/Universal", "Etc/Zulu"))

_NONE = 0
_CODECS = {1: "deflate", 5: "zstandard"}
_MAX_STRIPES = 100_000


def is_written_in_utc(data: bytes) -> bool:
    """Return whether the time zone recorded in every stripe is UTC; False also if the zones cannot be read here."""
    try:
        zones = list(_read_zones(data))
    except (UnreadableError, IndexError, TypeError, AttributeError):  # also a field of another type
        return False
    return bool(zones) and all(zone in UTC_NAMES for zone in zones)


def _read_zones(data: bytes) -> Iterator[str]:
    postscript_at = len(data) - 1 - data[-1]
    postscript = dict(_parse_fields(data[postscript_at:-1]))
    footer_length, compression = postscript.get(1, 0), postscript.get(2, _NONE)
    if not 0 < footer_length <= postscript_at:
        raise UnreadableError("the ORC file has no footer")
    footer = _decompress(data[postscript_at - footer_length : postscript_at], compression)
    stripes = [value for field, value in _parse_fields(footer) if field == 3]
    for stripe in stripes[:_MAX_STRIPES]:
        at, index, rows, length = (dict(_parse_fields(stripe)).get(field, 0) for field in (1, 2, 3, 4))
        start = at + index + rows
        zone = dict(_parse_fields(_decompress(data[start : start + length], compression))).get(3)
        yield zone.decode("ascii", "replace") if zone else ""


def _parse_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a protobuf message: field number and value, an integer or bytes. Its callers rely on their types."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value: Any
        if tag & 7 == 0:
            value, at = read_varint(message, at)
        elif tag & 7 == 2:
            length, at = read_varint(message, at)
            value, at = message[at : at + length], at + length
        elif tag & 7 in (1, 5):
            value, at = b"", at + (8 if tag & 7 == 1 else 4)
        else:
            raise UnreadableError("not a protobuf message")
        yield tag >> 3, value


def _decompress(stream: bytes, compression: int) -> bytes:
    """Decompress a stream of chunks. Three bytes precede each chunk: twice its length, plus one if the chunk is not compressed."""
    if compression == _NONE:
        return stream
    parts: list[bytes] = []
    at = 0
    while at + 3 <= len(stream):
        header = int.from_bytes(stream[at : at + 3], "little")
        chunk = stream[at + 3 : at + 3 + (header >> 1)]
        if not header & 1 and compression not in _CODECS:
            raise UnreadableError(f"cannot read ORC compression {compression}")
        parts.append(chunk if header & 1 else unpack(chunk, _CODECS[compression]))
        at += 3 + (header >> 1)
    return b"".join(parts)
