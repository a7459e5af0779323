"""The actions of a Delta log (PROTOCOL.md, "Actions"). Their shape is untrusted, and unknown fields are kept."""

from __future__ import annotations

import io
import json
import re
import uuid
from base64 import b85decode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import Vector
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.records import optional, required

_ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:/")


def is_absolute(path: str) -> bool:
    """Return whether a path of the log is absolute, as those of shallow clones are."""
    return _ABSOLUTE.match(path) is not None


def leads_out(path: str) -> bool:
    """Return whether a relative path could lead out of the table's folder."""
    return not {".", "..", ""}.isdisjoint(decode(path).split("/"))


def decode(path: str) -> str:
    """Decode a path of the log. Raises UnreadableError if no file can have it."""
    try:
        text = unquote(path, errors="strict")
        text.encode()
    except UnicodeError:
        raise UnreadableError(f"the path {path!r:.100} is not text") from None
    if not text or "\0" in text:
        raise UnreadableError(f"no file can have the path {path!r:.100}")
    return text


def locate(location: str, path: str) -> str:
    """Return the path or URL of a data file of the table at `location`."""
    text = decode(path)
    if not is_absolute(path):
        return f"{location}/{text}"
    if text.startswith("file:"):
        return "/" + text.removeprefix("file:").lstrip("/")
    return text


def replace_name(path: str, name: str) -> str:
    """Return a path of the log with another file name; its folder stays encoded as it is."""
    return path[: path.rfind("/") + 1] + quote(name, safe="")


Action = dict[str, Any]
"""The fields of one action."""

_LARGEST = (1 << 63) - 1
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = bytes.maketrans(_Z85, _B85)
_UUID_CHARACTERS = 20


def parse_actions(data: bytes) -> Iterator[tuple[str, Action]]:
    """Yield name and fields of each action in a file of JSON lines. Raises UnreadableError with the line, or for a file without any."""
    if not data.strip():
        # No writer commits nothing: the write of the file was interrupted.
        raise UnreadableError("the file has no action", hint="restore it from a copy; remove it only if no reader has seen its version")
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.strip():
            continue
        with ErrorPlace(None, f"line {number}"):
            for name, fields in _parse_line(line).items():
                if isinstance(fields, dict):
                    yield name, fields
                elif name in ("add", "remove", "metaData", "protocol", "sidecar") and fields is not None:
                    raise UnreadableError(f"{name} must be an object, not {fields!r:.60}")


def build_actions(actions: Iterable[tuple[str, Action]]) -> bytes:
    """Write actions as JSON lines."""
    return b"".join(json.dumps({name: fields}, separators=(",", ":"), allow_nan=False).encode() + b"\n" for name, fields in actions)


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise UnreadableError("not valid JSON") from None
    if not isinstance(tree, dict):
        raise UnreadableError("not a JSON object")
    return tree


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def count_of(fields: Mapping[str, Any], name: str) -> int:
    """Return a required number from 0 to 2**63 - 1. Raises UnreadableError."""
    number = required(fields, name, int)
    if not 0 <= number <= _LARGEST:
        raise UnreadableError(f"{name} is outside its range: {str(number)[:40]}")
    return number


def texts_of(fields: Mapping[str, Any], name: str) -> dict[str, str | None]:
    """Return a map of texts that may be null; empty if missing. Raises UnreadableError for anything else."""
    texts = optional(fields, name, dict) or {}
    if not all(isinstance(key, str) and (text is None or isinstance(text, str)) for key, text in texts.items()):
        raise UnreadableError(f"{name} is not a map of texts")
    return texts


def vector_id(fields: Mapping[str, Any]) -> str | None:
    """Return the id of an action's deletion vector, which is a part of the file's key; None if it has none. Raises UnreadableError."""
    vector = optional(fields, "deletionVector", dict)
    if vector is None:
        return None
    identity = required(vector, "storageType", str) + required(vector, "pathOrInlineDv", str)
    offset = optional(vector, "offset", int)
    return identity if offset is None else f"{identity}@{offset}"


def parse_vector(vector: Mapping[str, Any], location: str) -> Vector | UnknownDeletes:
    """Return the deletion vector with this descriptor, of the table at `location`. One that is damaged is `UnknownDeletes`."""
    try:
        kind, text, count = required(vector, "storageType", str), required(vector, "pathOrInlineDv", str), count_of(vector, "cardinality")
        if kind == "i":
            return Vector(count, data=_decode_z85(text)[: count_of(vector, "sizeInBytes")])
        if kind == "u":
            prefix, name = text[:-_UUID_CHARACTERS], uuid.UUID(bytes=_decode_z85(text[-_UUID_CHARACTERS:]))
            path = "/".join(filter(None, (location, prefix, f"deletion_vector_{name}.bin")))
        elif kind == "p":
            path = locate(location, text)
        else:
            return UnknownDeletes(f"its deletion vector is stored in an unknown way, {kind!r:.20}")
        offset = optional(vector, "offset", int)
        return Vector(count, path, 1 if offset is None else offset)
    except (UnreadableError, ValueError) as error:
        return UnknownDeletes(f"its deletion vector is damaged: {error}")


def _decode_z85(text: str) -> bytes:
    """Decode Z85 (ZeroMQ RFC 32)."""
    return b85decode(text.encode("ascii").translate(_FROM_Z85))
