"""Typed looks into decoded JSON and Avro records, whose shape hostile bytes choose.

A field that is missing reads as null, because every Paimon version adds some; a field of another type contradicts the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from sbbf_tool.errors import UnreadableError

T = TypeVar("T")


def parse_object(data: bytes, what: str) -> dict[str, Any]:
    """A JSON object. Raises UnreadableError for anything else."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableError(f"{what} is not JSON") from None
    if not isinstance(tree, dict):
        raise UnreadableError(f"{what} is not a JSON object")
    return tree


def optional(record: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """A field that may be null or missing. Raises UnreadableError when it is of another type."""
    value = record.get(name)
    if value is None:
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnreadableError(f"{name} is {value!r:.60}, not {kind.__name__}")
    return value


def required(record: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """A field that must be there. Raises UnreadableError when it is not, or of another type."""
    value = optional(record, name, kind)
    if value is None:
        raise UnreadableError(f"{name} is missing")
    return value


def strings(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts, empty where missing. Raises UnreadableError when it is something else."""
    values = optional(record, name, list) or []
    if not all(isinstance(value, str) for value in values):
        raise UnreadableError(f"{name} is not a list of texts")
    return tuple(values)


def file_name(name: str) -> str:
    """A name of a file in its directory. Raises UnreadableError when it would lead anywhere else."""
    if not name or name in (".", "..") or "/" in name or "\0" in name:
        raise UnreadableError(f"{name!r:.100} is not the name of a file")
    return name
