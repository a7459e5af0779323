"""INT96 instants (8 bytes of nanoseconds within a day, 4 bytes of Julian day) and the forms in
which writers store the same instant.

The format leaves INT96 undefined. Readers add the two parts, so one instant has many forms. Two are
in use:

    rounded down     the nanoseconds count from midnight, from 0 up to a day: Spark, Hive, Impala,
                     Trino, Arrow C++ from 23.0
    towards zero     before 1970 the day is the next one and the nanoseconds are negative, as in C++
                     division: Arrow C++ up to 22.0 (apache/arrow issue 48246)

A query looks up both, and a builder inserts both. None of these writers uses other forms, such as
nanoseconds of a day or more. If the writer of a file is not known to use one of the two, a filter
that contains neither form therefore excludes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sbbf_tool.parquet.idl.ttypes import FileMetaData, Type
from sbbf_tool.parquet.iso8601 import NANOS_PER_DAY
from sbbf_tool.parquet.structs import build_struct, parse_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from sbbf_tool.parquet.footer import Footer

INT96_BYTES = 12
JULIAN_DAY_OF_EPOCH = 2_440_588
_YEARS_1_TO_9999 = -719_162 * NANOS_PER_DAY, 2_932_897 * NANOS_PER_DAY
_PARTS = [("nanos", "<i8"), ("day", "<i4")]
_SHOWN_CHARACTERS = 60

_KNOWN_WRITERS = (
    # Arrow C++, pyarrow, R:
    # https://github.com/apache/arrow/blob/main/cpp/src/parquet/column_writer.h
    # (ArrowTimestampToImpalaTimestamp)
    "parquet-cpp-arrow version",
    "parquet-cpp version",
    # https://github.com/dask/fastparquet/blob/main/fastparquet/writer.py (convert)
    "fastparquet-python version",
    # https://github.com/apache/impala/blob/master/be/src/runtime/timestamp-value.h (a time of day
    # and a date)
    "impala version",
    # https://github.com/trinodb/trino/blob/master/lib/trino-parquet/src/main/java/io/trino/parquet/writer/valuewriter/Int96TimestampValueWriter.java
    "parquet-mr-trino version",
)
"""Prefixes of `created_by` of writers that use one of the two forms. parquet-java is not included:
it stores what its callers pass."""
_KNOWN_KEYS = (
    # https://github.com/apache/spark/blob/master/sql/catalyst/src/main/scala/org/apache/spark/sql/catalyst/util/DateTimeUtils.scala
    "org.apache.spark.sql.parquet.row.metadata",
    "org.apache.spark.version",
    # https://github.com/apache/hive/blob/master/ql/src/java/org/apache/hadoop/hive/ql/io/parquet/timestamp/NanoTimeUtils.java
    # (getNanoTime)
    "writer.date.proleptic",
    "writer.zone.conversion.legacy",
)
"""Metadata keys of programs that call parquet-java with one of the two forms. Other tools may copy
these keys."""
_PARQUET_JAVA = "parquet-mr "


def instant_of(plain: bytes) -> int:
    """Return the nanoseconds since 1970-01-01T00:00Z that 12 stored bytes mean, whatever their
    form."""
    nanos = int.from_bytes(plain[:8], "little", signed=True)
    day = int.from_bytes(plain[8:], "little", signed=True)
    return (day - JULIAN_DAY_OF_EPOCH) * NANOS_PER_DAY + nanos


def forms_of(instant: int) -> tuple[bytes, ...]:
    """Build the one or two forms of an instant that are in use, rounded down first. Raises
    OverflowError if the day exceeds 4 bytes."""
    days, nanos = divmod(instant, NANOS_PER_DAY)
    day = days + JULIAN_DAY_OF_EPOCH
    down = _plain(day, nanos)
    if instant >= 0 or not nanos:
        return (down,)
    towards_zero = _plain(day + 1, nanos - NANOS_PER_DAY)
    return (down, towards_zero)


def instants_read_as(instant: int) -> Iterator[int]:
    """Iterate over other instants in the years 1 to 9999 that readers with 64-bit nanoseconds, such
    as pyarrow, confuse with this one."""
    first, last = _YEARS_1_TO_9999
    first_alias = first + (instant - first) % (1 << 64)
    for alias in range(first_alias, last, 1 << 64):
        if alias != instant:
            yield alias


def other_forms_of(plain: bytes) -> tuple[bytes, ...]:
    """Build the other forms in use for the instant in these 12 bytes; empty if its day exceeds 4
    bytes."""
    try:
        return tuple(form for form in forms_of(instant_of(plain)) if form != plain)
    except OverflowError:
        return ()


def _plain(day: int, nanos: int) -> bytes:
    nanos_bytes = nanos.to_bytes(8, "little", signed=True)
    return nanos_bytes + day.to_bytes(4, "little", signed=True)


def forms_beside(plain: memoryview) -> bytes:
    """Build the other forms in use for the instants of these values: 12 bytes each, in no
    particular order."""
    stored, day, nanos = _split(plain)
    # Rounded towards zero: instants before 1970 that are stored in another form.
    nanos_towards_zero = nanos - NANOS_PER_DAY
    has_two_forms = (day < JULIAN_DAY_OF_EPOCH) & (nanos != 0)
    is_stored_otherwise = stored["nanos"] != nanos_towards_zero
    lacks = has_two_forms & is_stored_otherwise
    towards_zero = _build_forms(stored[lacks], day[lacks] + 1, nanos_towards_zero[lacks])
    return rounded_down(plain) + towards_zero


def rounded_down(plain: memoryview) -> bytes:
    """Build the rounded-down form of the values that are stored in another form."""
    stored, day, nanos = _split(plain)
    lacks = stored["nanos"] != nanos
    return _build_forms(stored[lacks], day[lacks], nanos[lacks])


def _split(plain: memoryview) -> tuple[NDArray[np.void], NDArray[np.int64], NDArray[np.int64]]:
    """Split values into the parts as stored, the days, and the nanoseconds; the latter two are
    rounded down."""
    import numpy as np

    stored = np.frombuffer(plain, _PARTS)
    carried, nanos = np.divmod(stored["nanos"], NANOS_PER_DAY)
    return stored, stored["day"] + carried, nanos


def _build_forms(
    stored: NDArray[np.void], day: NDArray[np.int64], nanos: NDArray[np.int64]
) -> bytes:
    """Build values of these parts from the parts as stored, which are another form of them."""
    values = stored.copy()
    values["nanos"] = nanos
    # A day of more than 4 bytes wraps around, as in readers.
    values["day"] = day
    return values.tobytes()


def unknown_writer(footer: Footer | None) -> str | None:
    """Explain why an instant may be stored in neither form; None if the file's writer is known to
    use one of them.

    Without a footer, the writer is unknown.
    """
    created_by = ""
    if footer is not None:
        if _is_known_writer(footer.metadata):
            return None
        created_by = str(footer.metadata.created_by or "")
    if created_by:
        writer = f"the writer of the file ({created_by[:_SHOWN_CHARACTERS]})"
    else:
        writer = "the writer of the file is not stated and"
    return f"{writer} may store INT96 instants in other forms than those that were queried"


def _is_known_writer(metadata: FileMetaData) -> bool:
    created_by = str(metadata.created_by or "")
    if created_by.startswith(_KNOWN_WRITERS):
        return True
    keys = {entry.key for entry in metadata.key_value_metadata or ()}
    return created_by.startswith(_PARQUET_JAVA) and not keys.isdisjoint(_KNOWN_KEYS)


def without_int96(footer: bytes) -> bytes:
    """Return a footer in which INT96 columns are FIXED_LEN_BYTE_ARRAY(12). It has no metadata of
    keys, such as a schema of Arrow."""
    metadata = parse_struct(FileMetaData, footer)
    metadata.key_value_metadata = None
    for element in metadata.schema:
        if element.type == Type.INT96:
            element.type = Type.FIXED_LEN_BYTE_ARRAY
            element.type_length = INT96_BYTES
    for row_group in metadata.row_groups:
        for chunk in row_group.columns:
            if chunk.meta_data.type == Type.INT96:
                chunk.meta_data.type = Type.FIXED_LEN_BYTE_ARRAY
                chunk.meta_data.statistics = None
    return build_struct(metadata)
