"""Rows that a catalog keeps inlined, in place of a data file: whether a value of theirs may be one that is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time

from sbbf_tool.errors import UsageError
from sbbf_tool.file.missing_column import may_be_equal_in_type

_MOST_VALUES = 10_000
"""Number of values to look up, above which every inlined row may hold one of them."""


def may_hold(stored: object, kind: str, values: Sequence[object]) -> bool:
    """Return whether an inlined value of a column of this type may be one of the values; None is null. False is certain."""
    if not kind or len(values) > _MOST_VALUES:
        return True
    is_text = kind.lower() == "varchar"
    if stored is None:
        return any(value is None or (not is_text and str(value).lower() == "null") for value in values)
    if kind.lower() == "boolean" and stored in (0, 1):
        # SQLite has no booleans.
        stored = bool(stored)
    text = stored.isoformat() if isinstance(stored, date | time) else str(stored).lower() if isinstance(stored, bool) else str(stored)
    return any(value is not None and _may_be(text, value, kind) for value in values)


def _may_be(stored: str, value: object, kind: str) -> bool:
    try:
        return may_be_equal_in_type(stored, value, kind)
    except UsageError:
        # The value is written in a form that only columns of files take, such as hexadecimal.
        return True
