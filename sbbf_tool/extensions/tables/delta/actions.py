"""The actions of a Delta log (PROTOCOL.md, "Actions"), in JSON, and in the Parquet of checkpoints
("Checkpoint Schema"), as JSON too.

Their shape is untrusted, and unknown fields are kept. Of the files of a checkpoint, only what
identifies them is read; whole actions are read for the files that a commit replaces.
"""

from __future__ import annotations

import io
import json
import math
import re
import uuid
from base64 import b85decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from sbbf_tool.errors import ErrorPlace, UnreadableError
from sbbf_tool.extensions.tables.deleted_rows import Vector, open_batches
from sbbf_tool.file.table_file import UnknownDeletes
from sbbf_tool.gregorian import date_of
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
    """Yield name and fields of each action in a file of JSON lines. Raises UnreadableError with the
    line, or for a file without any."""
    if not data.strip():
        # No writer commits nothing: the write of the file was interrupted.
        raise UnreadableError(
            "the file has no action",
            hint="restore it from a copy; remove it only if no reader has seen its version",
        )
    for number, line in enumerate(io.BytesIO(data), 1):
        if not line.strip():
            continue
        with ErrorPlace(None, f"line {number}"):
            for name, fields in _parse_line(line).items():
                if isinstance(fields, dict):
                    yield name, fields
                elif name in _KNOWN_ACTIONS and fields is not None:
                    raise UnreadableError(f"{name} must be an object, not {fields!r:.60}")


def build_actions(actions: Iterable[tuple[str, Action]]) -> bytes:
    """Write actions as JSON lines."""
    encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
    return "".join(f"{encoder.encode({name: fields})}\n" for name, fields in actions).encode()


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
    """Return a map of texts that may be null; empty if missing. Raises UnreadableError for anything
    else."""
    texts = optional(fields, name, dict) or {}
    for key, text in texts.items():
        if not isinstance(key, str) or not (text is None or isinstance(text, str)):
            raise UnreadableError(f"{name} is not a map of texts")
    return texts


def vector_id(fields: Mapping[str, Any]) -> str | None:
    """Return the id of an action's deletion vector, which is a part of the file's key; None if it
    has none. Raises UnreadableError."""
    vector = optional(fields, "deletionVector", dict)
    if vector is None:
        return None
    identity = required(vector, "storageType", str) + required(vector, "pathOrInlineDv", str)
    offset = optional(vector, "offset", int)
    return identity if offset is None else f"{identity}@{offset}"


def parse_vector(vector: Mapping[str, Any], location: str) -> Vector | UnknownDeletes:
    """Return the deletion vector with this descriptor, of the table at `location`. One that is
    damaged is `UnknownDeletes`."""
    try:
        return _parse_vector(vector, location)
    except (UnreadableError, ValueError) as error:
        return UnknownDeletes(f"its deletion vector is damaged: {error}")


def _parse_vector(vector: Mapping[str, Any], location: str) -> Vector | UnknownDeletes:
    kind = required(vector, "storageType", str)
    text = required(vector, "pathOrInlineDv", str)
    count = count_of(vector, "cardinality")
    if kind == "i":
        return Vector(count, data=_decode_z85(text)[: count_of(vector, "sizeInBytes")])
    if kind == "u":
        prefix = text[:-_UUID_CHARACTERS]
        name = uuid.UUID(bytes=_decode_z85(text[-_UUID_CHARACTERS:]))
        path = "/".join(filter(None, (location, prefix, f"deletion_vector_{name}.bin")))
    elif kind == "p":
        path = locate(location, text)
    else:
        return UnknownDeletes(f"its deletion vector is stored in an unknown way, {kind!r:.20}")
    offset = optional(vector, "offset", int)
    return Vector(count, path, 1 if offset is None else offset)


def _decode_z85(text: str) -> bytes:
    """Decode Z85 (ZeroMQ RFC 32)."""
    return b85decode(text.encode("ascii").translate(_FROM_Z85))


_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_DAY = 86_400


def statistics_text(scalar: pa.Scalar) -> str | None:
    """Return a value of `stats_parsed` as the text of `stats`; None for null. Raises
    UnreadableError for types without a JSON form.

    Dates and timestamps are ISO 8601 text, timestamps with at least milliseconds, and decimals are
    numbers with all their digits (PROTOCOL.md, "Per-file Statistics").
    """
    tree = json_value(scalar)
    return None if tree is None else _write(tree)


def json_value(scalar: pa.Scalar) -> Any:
    """Convert a value to one that JSON has, or Decimal; null fields of structs are left out. Raises
    UnreadableError for other types."""
    if not scalar.is_valid:
        return None
    kind = scalar.type
    if pa.types.is_struct(kind):
        fields = {}
        for at in range(kind.num_fields):
            field = json_value(scalar[at])
            if field is not None:
                fields[kind.field(at).name] = field
        return fields
    if pa.types.is_map(kind):
        return {key: _plain(text) for key, text in scalar.as_py()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [json_value(element) for element in scalar.values]
    if pa.types.is_timestamp(kind):
        # pyarrow reads INT96, which Spark uses for timestamps in UTC, as nanoseconds without a
        # zone.
        is_zoned = kind.tz is not None or kind.unit == "ns"
        return _timestamp(scalar.value, _UNITS[kind.unit], is_zoned)
    if pa.types.is_date32(kind):
        return str(date_of(scalar.value))
    if pa.types.is_date64(kind):
        return str(date_of(scalar.value // (_DAY * 1000)))
    return _plain(scalar.as_py())


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | Decimal):
        return value
    if isinstance(value, float):
        # JSON has no such number; a file without this bound is read, never skipped wrongly.
        return value if math.isfinite(value) else None
    if isinstance(value, date):
        return value.isoformat()
    raise UnreadableError(
        f"a checkpoint has a value of type {type(value).__name__}, which has no JSON form"
    )


def _timestamp(ticks: int, per_second: int, is_zoned: bool) -> str:
    seconds, rest = divmod(ticks, per_second)
    days, second = divmod(seconds, _DAY)
    clock = f"{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    # Three digits, or six, or nine.
    fraction = f"{rest * (1_000_000_000 // per_second):09d}"
    fraction = fraction.removesuffix("000").removesuffix("000")
    text = f"{date_of(days)}T{clock}.{fraction}"
    return f"{text}Z" if is_zoned else text


def _write(tree: Any) -> str:
    if isinstance(tree, dict):
        fields = [f"{json.dumps(name)}:{_write(value)}" for name, value in tree.items()]
        return "{" + ",".join(fields) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(map(_write, tree)) + "]"
    if isinstance(tree, Decimal):
        return format(tree, "f")
    return json.dumps(tree)


_SMALL = ("protocol", "metaData", "sidecar")
_FILES = ("add", "remove")
_KNOWN_ACTIONS = (*_FILES, *_SMALL)
_FILE = ("path", "size", "partitionValues")
_IDENTITY = (*_FILE, "deletionVector", "baseRowId")
_COLUMN_FORMS = ("stats_parsed", "partitionValues_parsed")


def read_checkpoint(
    path: str, is_wanted: Callable[[str], bool] | None
) -> Iterator[tuple[str, Action]]:
    """Yield name and fields of each action but those of removed files; whole actions of the files
    with a path that is wanted.

    Raises UnreadableError.
    """
    columns = [*_SMALL]
    if is_wanted is None:
        columns += [f"add.{name}" for name in _IDENTITY]
    else:
        columns.append("add")
    with open_batches(path, tuple(columns), "checkpoint") as batches:
        for batch in batches:
            for name in _SMALL:
                for fields in _small_actions(batch, name):
                    yield name, fields
            if "add" not in batch.schema.names:
                continue
            adds = _valid(batch.column("add"))
            for row, add in enumerate(_identities(adds, _IDENTITY)):
                file = add.get("path")
                if is_wanted is not None and isinstance(file, str) and is_wanted(file):
                    yield "add", _whole(adds[row])
                else:
                    yield "add", add


def read_files(path: str) -> Iterator[tuple[str, Action]]:
    """Yield name, path, size and partition of each file that a checkpoint has or whose removal it
    records, and its sidecars.

    Raises UnreadableError.
    """
    columns = ["sidecar"]
    for name in _FILES:
        columns += [f"{name}.{part}" for part in _FILE]
    with open_batches(path, tuple(columns), "checkpoint") as batches:
        for batch in batches:
            for fields in _small_actions(batch, "sidecar"):
                yield "sidecar", fields
            for name in _FILES:
                if name in batch.schema.names:
                    for fields in _identities(_valid(batch.column(name)), _FILE):
                        yield name, fields


def _identities(structs: pa.StructArray, names: tuple[str, ...]) -> Iterator[Action]:
    """Yield these fields of each action, as far as it has them."""
    present = [name for name in names if structs.type.get_field_index(name) >= 0]
    columns = {name: structs.field(name).to_pylist() for name in present}
    for row in range(len(structs)):
        fields = {name: column[row] for name, column in columns.items() if column[row] is not None}
        if isinstance(fields.get("partitionValues"), list):
            fields["partitionValues"] = dict(fields["partitionValues"])
        yield fields


def _valid(structs: pa.StructArray) -> pa.StructArray:
    """Drop nulls: a field on its own does not have the nulls of its struct."""
    return structs.filter(structs.is_valid())


def _small_actions(batch: pa.RecordBatch, name: str) -> Iterator[Action]:
    if name in batch.schema.names:
        for scalar in _valid(batch.column(name)):
            fields = json_value(scalar)
            if not isinstance(fields, dict):
                raise UnreadableError(f"the column {name} of the checkpoint is not a struct")
            yield fields


def _whole(scalar: pa.StructScalar) -> Action:
    """Return all fields of an `add`, with statistics as text."""
    add: dict[str, Any] = {}
    for at in range(scalar.type.num_fields):
        name = scalar.type.field(at).name
        if name in _COLUMN_FORMS:
            continue
        value = json_value(scalar[at])
        if value is not None:
            add[name] = value
    parsed = scalar.type.get_field_index("stats_parsed")
    if "stats" not in add and parsed >= 0:
        statistics = statistics_text(scalar[parsed])
        if statistics is not None:
            add["stats"] = statistics
    return add
