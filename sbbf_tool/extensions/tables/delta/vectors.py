"""The deletion vector of a file, as its action describes it (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

from __future__ import annotations

import uuid
from base64 import b85decode
from collections.abc import Mapping
from typing import Any

from sbbf_tool.errors import UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import InlineVector, Unknown, VectorFile
from sbbf_tool.extensions.tables.delta.actions import count_of
from sbbf_tool.extensions.tables.delta.paths import locate
from sbbf_tool.records import optional, required

_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = bytes.maketrans(_Z85, _B85)
_UUID_CHARACTERS = 20


def parse_vector(vector: Mapping[str, Any], location: str) -> VectorFile | InlineVector | Unknown:
    """Return the deletion vector with this descriptor, of the table at `location`. A descriptor that is damaged is `Unknown`."""
    try:
        kind, text, count = required(vector, "storageType", str), required(vector, "pathOrInlineDv", str), count_of(vector, "cardinality")
        if kind == "i":
            return InlineVector(_decode(text)[: count_of(vector, "sizeInBytes")], count)
        if kind == "u":
            prefix, name = text[:-_UUID_CHARACTERS], uuid.UUID(bytes=_decode(text[-_UUID_CHARACTERS:]))
            path = f"{location}/{prefix}/deletion_vector_{name}.bin" if prefix else f"{location}/deletion_vector_{name}.bin"
        elif kind == "p":
            path = locate(location, text)
        else:
            return Unknown(f"its deletion vector is stored in an unknown way, {kind!r:.20}")
        offset = optional(vector, "offset", int)
        return VectorFile(path, 1 if offset is None else offset, count)
    except (UnreadableError, ValueError) as error:
        return Unknown(f"its deletion vector is damaged: {error}")


def _decode(text: str) -> bytes:
    """Decode Z85 (ZeroMQ RFC 32)."""
    return b85decode(text.encode("ascii").translate(_FROM_Z85))
