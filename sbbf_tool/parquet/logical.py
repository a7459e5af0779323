"""Logical types (LogicalTypes.md): the meaning of the values of a leaf column, in addition to the
physical type that stores them.

Type parameters that the format forbids, or that this package does not support, are checked once,
when a column is made. A column with such parameters has an unknown type, and its values are not
looked up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import log10
from typing import NamedTuple

from sbbf_tool.parquet.idl.ttypes import ConvertedType, FileMetaData, LogicalType, SchemaElement


class Logical(NamedTuple):
    """A logical type, written as `LogicalType` or as the older `ConvertedType`."""

    kind: str
    bits: int = 0
    signed: bool = True
    unit: str = ""
    """MILLIS, MICROS or NANOS, for TIME and TIMESTAMP."""
    utc: bool = True
    """True for instants, which are adjusted to UTC; False for local, wall-clock times."""
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        if self.kind == "INT":
            sign = "signed" if self.signed else "unsigned"
            return f"INT({self.bits},{sign})"
        if self.kind == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.unit:
            zone = "UTC" if self.utc else "local"
            return f"{self.kind}({self.unit},{zone})"
        return self.kind


class Reading(NamedTuple):
    """What engines know of the values of a column from elsewhere than its type: from key-values of
    the file, or the schema of its table."""

    doubt: str | None = None
    """Why values that are equal for an engine may be stored as other bytes, so that none can be
    excluded."""
    char_length: int = 0
    """n of CHAR(n), 0 for other types: Spark compares as if blanks filled the text up to n
    characters."""
    is_hybrid: bool = False
    """Whether days may be counted in the calendar that is Julian before 1582-10-15, as Spark before
    3.0 and Hive before 3.1 do."""
    has_nanos: bool = False
    """Whether the writer may store INT96 instants with digits below a microsecond, which DuckDB,
    Spark and Trino do not show."""
    is_shifted: bool = False
    """Whether dates may be stored as days long after those that are meant, as Drill before 1.9
    stored them."""
    table_type: str = ""
    """Type of the column in its table, if that is wider than the file's: see `table_types`."""

    def notes(self) -> Iterator[str]:
        """Yield sentences for people who look at the column."""
        if self.doubt:
            yield f"a filter cannot exclude values: {self.doubt}"
        if self.char_length:
            yield (
                f"its text is a CHAR({self.char_length}), which Spark compares without "
                "regard to blanks at the end"
            )
        if self.is_hybrid:
            yield (
                "a filter cannot exclude dates before 1582-10-15 and instants before "
                f"1900: {HYBRID}"
            )
        if self.is_shifted:
            yield f"a filter cannot exclude dates: {SHIFTED}"


AS_STORED = Reading()
HYBRID = (
    "the file may count days in the calendar that is Julian before 1582-10-15, which "
    "Spark converts and other readers do not"
)
SHIFTED = (
    "the file is of Drill before 1.9, which stored dates 4,881,176 days too late: Drill shows the "
    "dates that were meant, other readers those that are stored"
)
_DRILL_VERSION = "drill.version"
_DRILL_WRITER = "drill-writer.version"
_MIGRATED_DRILL = r"parquet-mr version 1\.8\.1-\S*drill"
_FIRST_CORRECT_WRITER = 2
_SPARK_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
_SPARK_VERSION = "org.apache.spark.version"
_LEGACY_DATES = "org.apache.spark.legacyDateTime"
_LEGACY_INT96 = "org.apache.spark.legacyINT96"
_CHAR = r"(?i)(?<![A-Za-z_])char\((\d+)\)"
_MAX_DEPTH = 100


def readings_of(metadata: FileMetaData) -> tuple[Reading, Reading, dict[tuple[str, ...], Reading]]:
    """Return the reading of dates and instants, that of INT96, and those of text columns by path
    without scaffolding.

    Spark decides by the same keys:
    https://github.com/apache/spark/blob/master/sql/core/src/main/scala/org/apache/spark/sql/execution/datasources/DataSourceUtils.scala
    (`getRebaseSpec`). Its releases before 3.0 store a schema but no version. Hive states its
    calendar. Drill's rule is in
    https://github.com/apache/drill/blob/master/exec/java-exec/src/main/java/org/apache/drill/exec/store/parquet/ParquetReaderUtility.java
    (`detectCorruptDates`).
    """
    entries = metadata.key_value_metadata or ()
    keys: dict[str, str] = {entry.key: entry.value or "" for entry in entries}
    created_by = str(metadata.created_by)
    version = keys.get(_SPARK_VERSION)
    if version is None and _SPARK_SCHEMA in keys:
        version = ""
    is_spark = version is not None and created_by.startswith("parquet-mr ")
    is_hive = keys.get("writer.date.proleptic") == "false"

    def is_hybrid(legacy_key: str, first_version: str) -> bool:
        is_older_spark = version is not None and version < first_version
        return is_hive or legacy_key in keys or is_older_spark

    dates = Reading(
        is_hybrid=is_hybrid(_LEGACY_DATES, "3.0.0"), is_shifted=_shifts_dates(keys, created_by)
    )
    int96 = Reading(is_hybrid=is_hybrid(_LEGACY_INT96, "3.1.0"), has_nanos=not is_spark)
    return dates, int96, _readings_in(keys.get(_SPARK_SCHEMA, ""))


def _readings_in(spark_schema: str) -> dict[tuple[str, ...], Reading]:
    """Return the readings of text columns in a schema of Spark as JSON, which may be damaged."""
    if not spark_schema:
        return {}
    if _COLLATIONS not in spark_schema and not re.search(_CHAR, spark_schema):
        return {}
    import json  # few files were written by Spark with such columns

    try:
        return readings_of_texts(json.loads(spark_schema))
    except (ValueError, RecursionError):
        return {}


def _shifts_dates(keys: Mapping[str, str], created_by: str) -> bool:
    """Return whether the file is one of Drill from before its writer stored dates as the format
    demands."""
    if _DRILL_VERSION not in keys:
        return re.match(_MIGRATED_DRILL, created_by) is not None
    writer = keys.get(_DRILL_WRITER)
    if writer is None:
        return keys.get("is.date.correct", "").lower() != "true"
    return not (writer.isdecimal() and int(writer) >= _FIRST_CORRECT_WRITER)


_COLLATIONS = "__COLLATIONS"
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


class _TypePlace(NamedTuple):
    """Where a type stands in a schema of Spark, and what the field around it states about it."""

    path: tuple[str, ...] = ()
    """Path of the column, without scaffolding."""
    collations: Mapping[str, object] = {}
    """Collations by the places in the field."""
    place: str = ""
    """Place in the field, such as `names.element`."""
    declared: str = ""
    """The type with CHAR or VARCHAR, as the table was made with it; empty if not stated."""

    def below(self, step: str) -> _TypePlace:
        """Return the place of the elements, keys or values of a list or map."""
        return self._replace(place=f"{self.place}.{step}")

    def field(self, name: str, metadata: object) -> _TypePlace:
        """Return the place of a field of a struct."""
        details = _as_dict(metadata)
        declared = str(details.get(_CHAR_TYPE, self.declared))
        return _TypePlace((*self.path, name), _as_dict(details.get(_COLLATIONS)), name, declared)


def _as_dict(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def readings_of_texts(schema: object) -> dict[tuple[str, ...], Reading]:
    """Return the text columns that engines do not compare byte by byte, by path without
    scaffolding, in a schema of Spark."""
    return dict(_iterate_readings(schema, _TypePlace(), depth=0))


def _iterate_readings(
    kind: object, at: _TypePlace, depth: int
) -> Iterator[tuple[tuple[str, ...], Reading]]:
    """Yield the path and reading of the text columns in a type of Spark: a name or an object."""
    if isinstance(kind, str):
        reading = _reading_of(kind, at)
        if reading is not None:
            yield at.path, reading
    if not isinstance(kind, dict) or depth >= _MAX_DEPTH:
        return
    fields = kind.get("fields")
    for field in fields if isinstance(fields, list) else ():
        name = _as_dict(field).get("name")
        if isinstance(name, str):
            place = at.field(name, field.get("metadata"))
            yield from _iterate_readings(field.get("type"), place, depth + 1)
    yield from _iterate_readings(kind.get("elementType"), at.below("element"), depth + 1)
    for part in ("key", "value"):
        place = at.below(part)._replace(path=(*at.path, part))
        yield from _iterate_readings(kind.get(f"{part}Type"), place, depth + 1)


def _reading_of(kind: str, at: _TypePlace) -> Reading | None:
    """Return the reading of a column of a simple type; None if its bytes are compared."""
    collation = at.collations.get(at.place)
    if collation is not None:
        return Reading(f"engines compare its text by the collation {collation}")
    char = re.fullmatch(_CHAR, at.declared or kind)
    if char is not None:
        return Reading(char_length=int(char[1]))
    if kind == "string" and re.search(_CHAR, at.declared):
        return Reading(
            f"it is part of a column of type {at.declared}, whose text may be filled up with blanks"
        )
    return None


MAX_DIGITS = 1000
"""Maximum precision of a DECIMAL. The format sets no limit for a BYTE_ARRAY; query engines stop at
76 digits."""
_BYTES = {"INT32": 4, "INT64": 8}
_UNITS = ("MILLIS", "MICROS", "NANOS")
_PLAIN_KINDS = (
    "STRING",
    "ENUM",
    "DATE",
    "UNKNOWN",
    "JSON",
    "BSON",
    "UUID",
    "FLOAT16",
    "GEOMETRY",
    "GEOGRAPHY",
)


def _converted_types() -> dict[int, Logical]:
    converted = {ConvertedType.UTF8: Logical("STRING")}
    for kind in ("ENUM", "DATE", "JSON", "BSON", "INTERVAL"):
        converted[getattr(ConvertedType, kind)] = Logical(kind)
    for unit in ("MILLIS", "MICROS"):
        for kind in ("TIME", "TIMESTAMP"):
            converted[getattr(ConvertedType, f"{kind}_{unit}")] = Logical(kind, unit=unit)
    for bits in (8, 16, 32, 64):
        converted[getattr(ConvertedType, f"INT_{bits}")] = Logical("INT", bits)
        converted[getattr(ConvertedType, f"UINT_{bits}")] = Logical("INT", bits, signed=False)
    return converted


_CONVERTED = _converted_types()


def logical_of(element: SchemaElement) -> Logical | None:
    """Return the logical type; `LogicalType` overrides `ConvertedType`, and an unknown union member
    is ignored."""
    if element.logicalType is not None:
        logical = _from_union(element.logicalType)
        if logical is not None:
            return logical
    if element.converted_type == ConvertedType.DECIMAL:
        return Logical("DECIMAL", precision=element.precision or 0, scale=element.scale or 0)
    return _CONVERTED.get(element.converted_type)


def contradiction_of(element: SchemaElement) -> str | None:
    """Explain why readers differ on the values of a column; None if they do not. If the
    `LogicalType` is unknown to them, some readers use the `ConvertedType` (DuckDB), others the
    physical type (Arrow C++), and 100 is a value of both a DECIMAL(9,2) and its INT32.
    """
    union = element.logicalType
    if union is None or element.converted_type != ConvertedType.DECIMAL:
        return None
    if any(member is not None for member in vars(union).values()):
        return None
    return (
        "its logical type is not known here, and its converted type is DECIMAL: readers "
        "differ on its values"
    )


def doubt_of(physical: str, type_length: int | None, logical: Logical | None) -> str | None:
    """Explain why values of this type cannot be interpreted; None if they can. `type_length` is the
    length that the schema states."""
    if physical == "FIXED_LEN_BYTE_ARRAY" and (type_length or 0) <= 0:
        length_text = "is not stated" if type_length is None else f"is {type_length:,}"
        return f"the length of its FIXED_LEN_BYTE_ARRAY values {length_text}, and must be 1 or more"
    if logical is None:
        return None
    problem = None
    if logical.kind == "DECIMAL":
        problem = _decimal_problem(physical, type_length or 0, logical)
    elif logical.kind == "INT" and logical.bits not in (8, 16, 32, 64):
        problem = "its width must be 8, 16, 32 or 64 bits"
    elif logical.kind in ("TIME", "TIMESTAMP") and not logical.unit:
        problem = "it states no unit that is known here"
    return problem and f"{logical} is no valid type: {problem}"


def _decimal_problem(physical: str, type_length: int, logical: Logical) -> str | None:
    precision = logical.precision
    if precision < 1:
        return "its precision must be 1 or more"
    if not 0 <= logical.scale <= precision:
        return "its scale must be from 0 to its precision"
    num_bytes = _BYTES.get(physical, type_length)
    if num_bytes:
        most_digits = int((8 * num_bytes - 1) * log10(2))
        if precision > most_digits:
            return f"{num_bytes:,} bytes hold at most {most_digits:,} digits"
    if precision > MAX_DIGITS:
        return f"sbbf reads at most {MAX_DIGITS:,} digits"
    return None


def _from_union(union: LogicalType) -> Logical | None:
    if union.DECIMAL is not None:
        return Logical(
            "DECIMAL", precision=union.DECIMAL.precision or 0, scale=union.DECIMAL.scale or 0
        )
    if union.INTEGER is not None:
        return Logical("INT", bits=union.INTEGER.bitWidth or 0, signed=bool(union.INTEGER.isSigned))
    for kind, member in (("TIME", union.TIME), ("TIMESTAMP", union.TIMESTAMP)):
        if member is not None:
            unit = _stated_member(member.unit, _UNITS) or ""
            return Logical(kind, unit=unit, utc=bool(member.isAdjustedToUTC))
    plain_kind = _stated_member(union, _PLAIN_KINDS)
    return None if plain_kind is None else Logical(plain_kind)


def _stated_member(union: object, names: Sequence[str]) -> str | None:
    """Return the first of these names whose member of a Thrift union is stated; None if none is."""
    stated_names = (name for name in names if getattr(union, name, None) is not None)
    return next(stated_names, None)
