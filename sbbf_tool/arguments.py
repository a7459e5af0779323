"""Arguments of Python functions that take several values: any iterable, or a single value.

Text and bytes are iterable in Python, so a single `"abc"` would otherwise be three values or three
columns.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from sbbf_tool.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


def as_iterable(values: Any) -> Iterable[Any]:
    """Return `values` itself if it is an iterable of values, else a tuple of the single value:
    text, bytes, a path, a number, None.

    An open file, which iterates over its lines, is a single value too.
    """
    if isinstance(values, str | bytes | bytearray | memoryview | os.PathLike):
        return (values,)
    if hasattr(values, "seek"):
        return (values,)
    try:
        iter(values)
    except TypeError:  # also for a zero-dimensional numpy array, which has the method but raises
        return (values,)
    return values  # type: ignore[no-any-return]


_NULLS = ("NAType", "NaTType", "MaskedConstant")
_NUMPY_TIMES = ("datetime64", "timedelta64")
_BUILT_IN = {str, bytes, int, float, type(None)}


class QuotedText(str):
    """A value that a condition has in quotes. Engines may round it to a value of the column; they
    compare a number without quotes exactly."""

    __slots__ = ()


class TypedText(QuotedText):
    """A value in quotes after the name of a type. Engines convert text to compare it."""

    __slots__ = ()


class UnquotedText(str):
    """A value that a condition has without quotes. Engines convert text to compare it."""

    __slots__ = ()


def as_values(values: Any) -> list[Any]:
    """Return the values of an argument that takes one value or an iterable of them, as `as_value`
    does.

    They are converted in one step if they are a column of pyarrow, Polars (whose own objects have
    no nanoseconds) or pandas.
    """
    package = type(values).__module__.partition(".")[0]
    is_arrow = package == "pyarrow"
    if package == "polars" and hasattr(values, "to_arrow"):
        values = values.to_arrow()
        is_arrow = True
    elif package == "pandas" and hasattr(getattr(values, "dtype", None), "pyarrow_dtype"):
        import pyarrow as pa

        values = pa.array(getattr(values, "array", values))
        is_arrow = True
    if is_arrow and hasattr(values, "chunks"):
        return list(chain.from_iterable(map(_from_arrow, values.chunks)))
    if is_arrow and hasattr(values, "buffers"):
        return _from_arrow(values)
    if package == "pandas" and _is_column(values) and values.dtype.kind != "f":
        # Text that is missing is a NaN there.
        pairs = zip(values, values.isna(), strict=True)
        return [None if is_null else as_value(value) for value, is_null in pairs]
    return [value if type(value) in _BUILT_IN else as_value(value) for value in as_iterable(values)]


def _is_column(values: Any) -> bool:
    """Return whether an object of pandas is a column, and no table or hierarchy."""
    if not hasattr(values, "isna"):
        return False
    return getattr(values, "ndim", 1) == 1 and getattr(values, "nlevels", 1) == 1


def as_value(value: Any) -> Any:
    """Return a scalar of pyarrow, pandas or numpy as text, bytes, a number or None; other objects
    as they are."""
    name = type(value).__name__
    if name in _NULLS or (name in _NUMPY_TIMES and str(value) == "NaT"):
        return None
    if name.endswith("Scalar") and type(value).__module__.startswith("pyarrow"):
        import pyarrow as pa

        return _from_arrow(pa.repeat(value, 1))[0]
    return value


def _from_arrow(array: pa.Array) -> list[Any]:
    """Return the values of an array. Those of types that no column can hold stay as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _from_arrow(array.storage)
    if pa.types.is_dictionary(kind):
        entries = _from_arrow(array.dictionary)
        return [None if index is None else entries[index] for index in array.indices.to_pylist()]
    if pa.types.is_run_end_encoded(kind):
        return _from_arrow(pc.run_end_decode(array))
    if pa.types.is_duration(kind):
        import numpy as np

        numbers = array.cast(pa.int64()).to_pylist()
        return [None if number is None else np.timedelta64(number, kind.unit) for number in numbers]
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return list(array)
    if pa.types.is_temporal(kind):
        # Python's own times have no nanoseconds, and stop at the year 9999.
        array = array.cast(pa.string())
    values: list[Any] = array.to_pylist()
    return values


def as_names(names_or_name: str | Iterable[str], kind: str = "column") -> tuple[str, ...]:
    """Return names as a tuple, each once; a single string is one name. Raises UsageError for a name
    that is not a string, and for a mapping with values, which would be ignored."""
    if isinstance(names_or_name, Mapping) and any(names_or_name.values()):
        raise UsageError(f"names of {kind}s are a list, not {names_or_name!r}")
    names = tuple(as_iterable(names_or_name))
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"the name of a {kind} is text, not {name!r} ({type(name).__name__})")
    return tuple(dict.fromkeys(names))


def check_jobs(jobs: object) -> None:
    """Raise UsageError unless this is a number of workers, or None for one per core."""
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise UsageError(f"the number of workers must be a number of at least 1, not {jobs!r}")


LONGEST_TIME_LIMIT = 30 * 24 * 3600
"""Seconds; system calls refuse times beyond some years."""


def check_time_limit(seconds: float) -> None:
    """Raise UsageError unless this is a time limit: above 0, and at most 30 days."""
    if not (math.isfinite(seconds) and 0 < seconds <= LONGEST_TIME_LIMIT):
        limits = f"above 0, and at most {LONGEST_TIME_LIMIT:,} seconds (30 days)"
        raise UsageError(f"the time limit must be {limits}, not {seconds:g}")
