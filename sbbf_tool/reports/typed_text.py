"""Reports as text that is read back into the same dataclasses, whatever wrote the text.

    text = to_text(report, "events.parquet")
    from_text(CheckReport, text, "/lake/events.parquet")

The text is JSON. The name of the file is left out, so that equal outcomes of many files are equal texts. Hints become plain strings.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_origin

from sbbf_tool.reports.arrow import hints_of, inner_type, is_optional, plain

Report = TypeVar("Report")

_FILE = "\0"
"""Stands for the name of the file, which cannot contain it."""


def to_text(report: object, file: str) -> str:
    """Convert a report on this file to text."""
    return json.dumps(_replace(plain(report), file, _FILE), ensure_ascii=True, separators=(",", ":"))


def from_text(kind: type[Report], text: str, file: str) -> Report:
    """Build the report of a file. Raises ValueError unless the text has all fields of `kind`, with their types."""
    try:
        tree = json.loads(text)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None
    return cast(Report, _build(kind, _replace(tree, _FILE, file)))


def _replace(value: Any, old: str, new: str) -> Any:
    if isinstance(value, dict):
        return {name: _replace(item, old, new) for name, item in value.items()}
    if isinstance(value, list):
        return [_replace(item, old, new) for item in value]
    return new if value == old else value


def _build(hint: Any, value: Any) -> Any:
    if value is None and is_optional(hint):
        return None
    hint = inner_type(hint)
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(_build(get_args(hint)[0], item) for item in value)
    if is_dataclass(hint) and isinstance(value, dict):
        kind = cast(type, hint)
        types = _fields_of(kind)
        if value.keys() - types.keys() or any(name not in value for name, (_, is_required) in types.items() if is_required):
            raise ValueError(f"the fields are not those of a {kind.__name__}")
        return kind(**{name: _build(types[name][0], item) for name, item in value.items()})
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise ValueError(f"{value!r:.60} is not of the type {hint}")
    return value


@cache
def _fields_of(kind: type) -> dict[str, tuple[Any, bool]]:
    """Return the type of each field, and whether it has no default."""
    required = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}
    return {name: (hint, name in required) for name, hint in hints_of(kind)}
