"""Typed access to decoded records, whose shape is untrusted.

A missing field is read as null, because newer versions of a format add fields; a field of an
unexpected type contradicts the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from sbbf_tool.errors import UnreadableError

T = TypeVar("T")


def parse_object(data: bytes, noun: str) -> dict[str, Any]:
    """Parse a JSON object. Raises UnreadableError for anything else."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableError(f"{noun} is not valid JSON") from None
    if not isinstance(tree, dict):
        raise UnreadableError(f"{noun} is not a JSON object")
    return tree


def optional(record: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """Return a field that may be null or missing. Raises UnreadableError for another type."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnreadableError(f"{name} must be of type {kind.__name__}, not {value!r:.60}")
    return value


def required(record: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """Return a required field. Raises UnreadableError when it is missing or has another type."""
    value = optional(record, name, kind)
    if value is None:
        raise UnreadableError(f"{name} is missing")
    return value


def strings(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return a list of strings, empty if missing. Raises UnreadableError for anything else."""
    values = optional(record, name, list) or []
    if not all(isinstance(value, str) for value in values):
        raise UnreadableError(f"{name} is not a list of strings")
    return tuple(values)


def file_name(name: str) -> str:
    """Return the name of a file. Raises UnreadableError if it would lead out of its directory."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise UnreadableError(f"{name!r:.100} is not a plain file name")
    return name
