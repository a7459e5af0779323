"""The time zones in which an ORC file was written, which pyarrow does not report.

The protobuf fields that lead to the zones are read here (ORC specification v1, "Postscript",
"Footer", "Stripe Footer").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.avro.file import unpack
from sbbf_tool.parquet.compact import read_varint

UTC_NAMES = frozenset(
    ("UTC", "GMT", "Etc/UTC", "Etc/GMT", "Universal", "Zulu", "Etc/Universal", "Etc/Zulu")
)

_UNCOMPRESSED = 0
_CODECS = {1: "deflate", 5: "zstandard"}
_MAX_STRIPES = 100_000

# Fields of the postscript, the footer, a stripe's information in the footer, and its own footer.
_FOOTER_LENGTH = 1
_COMPRESSION = 2
_STRIPES = 3
_STRIPE_OFFSET = 1
_STRIPE_INDEX_LENGTH = 2
_STRIPE_DATA_LENGTH = 3
_STRIPE_FOOTER_LENGTH = 4
_WRITER_TIMEZONE = 3

# Wire types of protobuf, in the low 3 bits of a tag.
_VARINT = 0
_FIXED64 = 1
_BYTES = 2
_FIXED32 = 5


def is_written_in_utc(data: bytes) -> bool:
    """Return whether the time zone recorded in every stripe of an ORC file is UTC.

    Return False also if the zones cannot be read here.
    """
    try:
        zones = list(_read_zones(data))
    except (UnreadableError, IndexError, TypeError, AttributeError):  # also a field of another type
        return False
    return bool(zones) and UTC_NAMES.issuperset(zones)


def _read_zones(data: bytes) -> Iterator[str]:
    """Yield the time zone of each stripe; empty for a stripe without one."""
    postscript_at = len(data) - 1 - data[-1]
    postscript = dict(_parse_fields(data[postscript_at:-1]))
    footer_length = postscript.get(_FOOTER_LENGTH, 0)
    compression = postscript.get(_COMPRESSION, _UNCOMPRESSED)
    if not 0 < footer_length <= postscript_at:
        raise UnreadableError("the ORC file has no footer")
    footer = _decompress(data[postscript_at - footer_length : postscript_at], compression)
    stripes = [value for field, value in _parse_fields(footer) if field == _STRIPES]
    for message in stripes[:_MAX_STRIPES]:
        stripe = dict(_parse_fields(message))
        start = (
            stripe.get(_STRIPE_OFFSET, 0)
            + stripe.get(_STRIPE_INDEX_LENGTH, 0)
            + stripe.get(_STRIPE_DATA_LENGTH, 0)
        )
        end = start + stripe.get(_STRIPE_FOOTER_LENGTH, 0)
        stripe_footer = dict(_parse_fields(_decompress(data[start:end], compression)))
        zone = stripe_footer.get(_WRITER_TIMEZONE)
        yield zone.decode("ascii", "replace") if zone else ""


def _parse_fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each field of a protobuf message.

    Callers rely on the types of values, which are integers or bytes; fields of a fixed width count
    as empty bytes.
    """
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        value: int | bytes = b""
        wire_type = tag & 7
        if wire_type == _VARINT:
            value, at = read_varint(message, at)
        elif wire_type == _BYTES:
            length, at = read_varint(message, at)
            value = message[at : at + length]
            at += length
        elif wire_type == _FIXED64:
            at += 8
        elif wire_type == _FIXED32:
            at += 4
        else:
            raise UnreadableError("not a protobuf message")
        yield tag >> 3, value


def _decompress(stream: bytes, compression: int) -> bytes:
    """Decompress a stream of chunks.

    Three bytes precede each chunk: twice its length, plus one if the chunk is not compressed.
    """
    if compression == _UNCOMPRESSED:
        return stream
    parts = []
    at = 0
    while at + 3 <= len(stream):
        header = int.from_bytes(stream[at : at + 3], "little")
        start = at + 3
        at = start + (header >> 1)
        chunk = stream[start:at]
        if header & 1:
            parts.append(chunk)
        elif compression in _CODECS:
            parts.append(unpack(chunk, _CODECS[compression]))
        else:
            raise UnreadableError(f"cannot read ORC compression {compression}")
    return b"".join(parts)
