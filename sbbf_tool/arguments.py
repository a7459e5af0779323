"""Arguments of Python functions that take several values: any iterable, or a single value.

Text and bytes are iterable in Python, so a single `"abc"` would otherwise be three values or three columns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from typing import Any

from sbbf_tool.errors import UsageError


def as_iterable(values: Any) -> Iterable[Any]:
    """Return `values` itself if it is an iterable of values, else a tuple of the single value: text, bytes, a path, a number, None.

    An open file, which iterates over its lines, is a single value too.
    """
    if isinstance(values, str | bytes | bytearray | memoryview | os.PathLike) or hasattr(values, "seek"):
        return (values,)
    try:
        iter(values)
    except TypeError:  # also for a zero-dimensional numpy array, which has the method but raises
        return (values,)
    return values  # type: ignore[no-any-return]


def as_names(names_or_name: str | Iterable[str], kind: str = "column") -> tuple[str, ...]:
    """Return names as a tuple, each once; a single string is one name. Raises UsageError for a name that is not a string."""
    names = tuple(as_iterable(names_or_name))
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"the name of a {kind} is text, not {name!r} ({type(name).__name__})")
    return tuple(dict.fromkeys(names))


LONGEST_TIME_LIMIT = 30 * 24 * 3600
"""Seconds; system calls refuse times beyond some years."""


def check_time_limit(seconds: float) -> None:
    """Raise UsageError unless this is a time limit: above 0, and at most 30 days."""
    if not (math.isfinite(seconds) and 0 < seconds <= LONGEST_TIME_LIMIT):
        limits = f"above 0, and at most {LONGEST_TIME_LIMIT:,} seconds (30 days)"
        raise UsageError(f"the time limit must be {limits}, not {seconds:g}")
