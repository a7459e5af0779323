"""Reports as plain dicts, lists and strings, for JSON and the state of runs, and as Arrow, for
Spark and Parquet files; and back.

    from_plain(CheckReport, to_plain(report)) == report

The classes of `reports` are the only declaration: local processes send them unchanged. Strings are
UTF-8: other bytes of file names are escaped. Fields that are `local` are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from sbbf_tool.frozen import Frozen

if TYPE_CHECKING:
    import pyarrow as pa


Report = TypeVar("Report")

_BYTE = r"\\udc([89a-f][0-9a-f])"
_FILE = r'(?<=[,:\[])"\\u0000"'
"""Stands for the name of the file in the text of a report; NUL cannot be in a name."""


def escape_bytes(text: str) -> str:
    """Escape bytes of a file name that are not UTF-8."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def restore_bytes(name: str) -> str:
    """Restore the bytes of a file name that `escape_bytes` has escaped, unless the name is that of
    a file."""
    if "\\" not in name or os.path.lexists(name):
        return name
    return re.sub(_BYTE, lambda match: chr(0xDC00 + int(match[1], 16)), name)


def to_plain(value: Any, convert: Mapping[type, Callable[[Any], Any]] = {str: escape_bytes}) -> Any:
    """Convert a report, or a value in one. `convert` has functions for types; that for Sequence is
    called for sequences made on demand."""
    kind = type(value)
    if kind in convert:
        return convert[kind](value)
    if isinstance(value, Frozen):
        plain = {}
        for name, field in value._fields.items():
            if not field.local:
                item = getattr(value, name)
                plain[name] = to_plain(item, convert)
        return plain
    if isinstance(value, dict):
        return {name: to_plain(item, convert) for name, item in value.items()}
    if not isinstance(value, Sequence) or kind in (str, bytes):
        return value
    if kind not in (tuple, list) and Sequence in convert:
        return convert[Sequence](value)
    return [to_plain(item, convert) for item in value]


def from_plain(kind: type[Report], value: Any) -> Report:
    """Build a report from plain values, which may have other fields, and may lack those with a
    default. Raises ValueError."""
    return cast(Report, _builder(cast(Any, kind))(value))


def to_text(report: object, file: str) -> str:
    """Convert a report on this file to JSON without the name of the file, which may be another one
    when the text is read."""
    import json  # most runs keep no state

    def hide_name(text: str) -> str:
        return "\0" if text == file else escape_bytes(text)

    return json.dumps(to_plain(report, {str: hide_name}), separators=(",", ":"))


def from_text(kind: type[Report], text: str, file: str) -> Report:
    """Build the report of a file. Raises ValueError."""
    import json  # most runs keep no state

    text = re.sub(_FILE, lambda _: json.dumps(file), text)
    try:
        return from_plain(kind, json.loads(text))
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None


def hints_of(row: type) -> list[tuple[str, Any]]:
    """Return the name and type of each field of a class, or of a generic one with its arguments,
    that is not local."""
    kind: Any = get_origin(row) or row
    hints = get_type_hints(kind)
    parameters = getattr(kind, "__parameters__", ())
    arguments = dict(zip(parameters, get_args(row), strict=False))
    if arguments:
        for name, hint in hints.items():
            parts = get_args(hint) or (hint,)
            hints[name] = reduce(or_, [arguments.get(part, part) for part in parts])
    return [(name, hints[name]) for name, field in kind._fields.items() if not field.local]


def is_record(hint: Any) -> bool:
    """Return whether a type has fields."""
    return isinstance(hint, type) and issubclass(hint, Frozen)


def is_optional(hint: Any) -> bool:
    return get_origin(hint) is UnionType and NoneType in get_args(hint)


def inner_type(hint: Any) -> Any:
    """Return X of `X | None`."""
    if not is_optional(hint):
        return hint
    first, second, *_ = get_args(hint)
    return second if first is NoneType else first


@cache
def _builder(hint: Any) -> Callable[[Any], Any]:
    """Return the function that builds a value of this type, or raises ValueError."""
    if is_optional(hint):
        build_inner = _builder(inner_type(hint))
        return lambda value: None if value is None else build_inner(value)
    if get_origin(hint) in (tuple, Sequence):
        build_item = _builder(get_args(hint)[0])
        return lambda value: tuple(map(build_item, _ensure_type(list, value)))
    kind = get_origin(hint) or hint
    if is_record(kind):
        return _record_builder(hint, kind)
    if hint is float:
        return _build_float
    return lambda value: _ensure_type(kind, value)


def _record_builder(hint: Any, kind: Any) -> Callable[[Any], Any]:
    """Return the function that builds a value of the class `kind` from the dict of its fields."""
    builders = [(name, _builder(inner)) for name, inner in hints_of(cast(type, hint))]
    required = set()
    for name, field in kind._fields.items():
        if field.default is ... and not field.factory:
            required.add(name)

    def build(value: Any) -> Any:
        missing = required - _ensure_type(dict, value).keys()
        if missing:
            names = ", ".join(sorted(missing))
            raise ValueError(f"the fields are not those of {hint}: {names} missing")
        fields = {name: make(value[name]) for name, make in builders if name in value}
        return kind(**fields)

    return build


def _build_float(value: Any) -> Any:
    return float(value) if type(value) is int else _ensure_type(float, value)


def _ensure_type(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f"{value!r:.60} is not of the type {kind}")
    return value


Row = TypeVar("Row")


@cache
def schema_of(row: type) -> pa.Schema:
    """Return the Arrow schema of a class. Each field becomes a field, tuples become lists, and
    nested classes of fields become structs."""
    import pyarrow as pa

    fields = []
    for name, hint in hints_of(row):
        fields.append(pa.field(name, _arrow_type(hint), nullable=is_optional(hint)))
    return pa.schema(fields)


def to_batch(row: type, rows: Iterable[object]) -> pa.RecordBatch:
    """Convert the rows to one batch of `schema_of(row)`."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([to_plain(item) for item in rows], schema=schema_of(row))


def from_batch(row: type[Row], batch: pa.RecordBatch | pa.Table) -> Iterator[Row]:
    """Yield the rows of a batch. The batch may have extra fields, and may lack fields that have a
    default."""
    for values in batch.to_pylist():
        yield from_plain(row, values)


def _arrow_type(hint: Any) -> pa.DataType:
    """Return the Arrow type of a field with this type hint, for `X | None` that of X. Raises
    TypeError if there is none, as for a tuple of fixed length."""
    import pyarrow as pa

    hint = inner_type(hint)
    scalar_types = {
        str: pa.string(),
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        bytes: pa.binary(),
    }
    if hint in scalar_types:
        return scalar_types[hint]
    generic = get_origin(hint)
    arguments = get_args(hint)
    # `tuple[X, ...]`, not `tuple[X, Y]`.
    is_open_tuple = generic is tuple and arguments[1:] == (...,)
    if is_open_tuple or generic is Sequence:
        item_type = _arrow_type(arguments[0])
        return pa.list_(item_type)
    if is_record(hint):
        fields = list(schema_of(cast(type, hint)))
        return pa.struct(fields)
    raise TypeError(f"{hint!r} has no place in a row")
