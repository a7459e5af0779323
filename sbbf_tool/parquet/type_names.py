"""A column's type from its name: the inverse of `Column.type_name`, for filters outside files with a schema.

The physical type may be left out if the logical type has only one, or a usual one: `UUID`, `DATE`, `STRING`, `TIMESTAMP(MICROS,UTC)`.
"""

from __future__ import annotations

import re
from dataclasses import replace

from sbbf_tool.errors import UsageError
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column
from sbbf_tool.parquet.literals import NOTATIONS
from sbbf_tool.parquet.logical import Logical, doubt_of

_PHYSICAL = re.compile(r"([A-Z0-9_]+)(?:\((\d+)\))?", re.IGNORECASE)
_LOGICAL = re.compile(r"([A-Z0-9]+)(?:\(([A-Z0-9]+),([A-Z0-9]+)\))?", re.IGNORECASE)
_FIXED = "FIXED_LEN_BYTE_ARRAY"
_MOST_FIXED_BYTES = 1 << 20

_WITH_PARAMETERS = ("INT", "DECIMAL", "TIME", "TIMESTAMP")
_EXPECTS = "such as INT64, BYTE_ARRAY, STRING, FIXED_LEN_BYTE_ARRAY(16) UUID or INT32 DECIMAL(9,2), as inspect prints types"


def column_of_type(name: str) -> Column:
    """Make a column without a name from the name of its type. Raises UsageError if there is no such type."""
    words = name.split()
    if len(words) == 1 and (usual := _usual_physical(words[0])):
        words = [usual, words[0]]
    elif len(words) == 1 and _logical(words[0].upper()) is not None:
        hint = f"write how before it: INT32, INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY(n), such as INT32 {words[0]}"
        raise UsageError(f"type {name!r} does not state how its values are stored", hint=hint)
    elif len(words) == 2 and words[0].upper() == _FIXED and (_usual_physical(words[1]) or "").startswith(_FIXED):
        words[0] = _usual_physical(words[1]) or ""
    physical = _PHYSICAL.fullmatch(words[0]) if 1 <= len(words) <= 2 else None
    if physical is None or physical[1].upper() not in PHYSICAL_TYPES:
        raise _no_type(name)
    kind, length = physical[1].upper(), int(physical[2] or 0)
    if kind == _FIXED and physical[2] is None:
        raise UsageError(f"type {name!r} does not state the length of its values", hint=f"write {_FIXED}(n), where n is a number of bytes")
    if (kind == _FIXED) != (0 < length <= _MOST_FIXED_BYTES):
        raise _no_type(name)
    column = Column(0, ("value",), ("value",), kind, length, None, 0, 0)
    if len(words) == 1:
        return column
    logical = _logical(words[1].upper())
    if logical is None:
        raise _no_type(name)
    if doubt := doubt_of(kind, length, logical):
        raise UsageError(doubt, hint=_EXPECTS)
    return replace(column, logical=logical)


def _usual_physical(word: str) -> str | None:
    kind, _, rest = word.upper().partition("(")
    if kind == "INT":
        return "INT64" if rest.startswith("64") else "INT32"
    if kind == "TIME":
        return "INT32" if rest.startswith("MILLIS") else "INT64"
    _, stored_as = NOTATIONS.get(kind, (None, ()))
    usual = {form.partition(" ")[0] for form in stored_as}
    return usual.pop() if len(usual) == 1 else None


def _logical(word: str) -> Logical | None:
    match = _LOGICAL.fullmatch(word)
    if match is None:
        return None
    kind, first, second = match.groups()
    if kind == "INT" and first in ("8", "16", "32", "64") and second in ("SIGNED", "UNSIGNED"):
        return Logical("INT", bits=int(first), signed=second == "SIGNED")
    if kind == "DECIMAL" and first and first.isdigit() and second.isdigit():
        return Logical("DECIMAL", precision=int(first), scale=int(second))
    if kind in ("TIME", "TIMESTAMP") and first in ("MILLIS", "MICROS", "NANOS") and second in ("UTC", "LOCAL"):
        return Logical(kind, unit=first, utc=second == "UTC")
    return Logical(kind) if kind in NOTATIONS and kind not in _WITH_PARAMETERS and first is None else None


def _no_type(name: str) -> UsageError:
    return UsageError(f"there is no type {name!r}", hint=_EXPECTS)
