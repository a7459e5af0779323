"""The types of the corpus: for each physical and logical type of the format a column, with values
that are stored and values that are not.

Values are plain bytes (Encodings.md, "Plain"), computed from a number. Even numbers are stored, odd
ones are absent, and extremes are stored too: the least and the largest value, and what readers
often confuse.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

from sbbf_tool.bloom import spec
from sbbf_tool.extensions.conformance.parquet_writer import OPTIONAL, Cell, build_root
from sbbf_tool.frozen import Frozen
from sbbf_tool.parquet.columns import PHYSICAL_TYPES, Column, leaf_columns
from sbbf_tool.parquet.idl import ttypes
from sbbf_tool.parquet.idl.ttypes import ConvertedType
from sbbf_tool.parquet.literals import format_plain

NAME = "v"
"""Name of the column of most files."""
VALUES = 24
"""Values of each of the two row groups of a type, besides nulls and extremes."""
BITSET_BYTES = 256
JULIAN_DAY_OF_2024 = 2_460_311

_FIXED = "FIXED_LEN_BYTE_ARRAY"

Plain = Callable[[int], bytes]


class Kind(Frozen):
    """A type of a column. `value(n)` differs for each n from 0 to 255."""

    name: str
    physical: str
    value: Plain
    extremes: Sequence[bytes] = ()
    logical: ttypes.LogicalType | None = None
    converted: int | None = None
    length: int | None = None
    precision: int | None = None
    scale: int | None = None

    def element(self, name: str = NAME, repetition: int = OPTIONAL) -> ttypes.SchemaElement:
        return ttypes.SchemaElement(
            type=PHYSICAL_TYPES.index(self.physical),
            type_length=self.length,
            repetition_type=repetition,
            name=name,
            converted_type=self.converted,
            scale=self.scale,
            precision=self.precision,
            logicalType=self.logical,
        )

    @property
    def schema(self) -> list[ttypes.SchemaElement]:
        return [build_root(1), self.element()]

    @property
    def column(self) -> Column:
        return leaf_columns(self.schema)[0]

    def stored(self, row_group: int) -> list[bytes]:
        """Return the values of one of two row groups: half of the regular ones, and every other
        extreme."""
        regular = [self.value(n) for n in range(2 * row_group, 4 * VALUES, 4)]
        return list(dict.fromkeys([*regular, *self.extremes[row_group::2]]))

    def absent(self, count: int) -> list[bytes]:
        """Return values that are in neither row group."""
        stored = {*self.stored(0), *self.stored(1)}
        candidates = [self.value(n) for n in range(1, 4 * VALUES, 2)]
        return [plain for plain in candidates if plain not in stored][:count]

    def text(self, plain: bytes) -> str:
        return format_plain(self.column, plain)


def cells_of(values: Sequence[bytes]) -> list[Cell]:
    """Return the cells of a flat column: a null after the first value, so that positions differ
    from those of the values."""
    cells = [Cell(plain) for plain in values]
    return [*cells[:1], Cell(None, definition=0), *cells[1:]]


def _ints(width: int, step: int, offset: int = 0, *, signed: bool = True) -> Plain:
    return lambda n: (n * step + offset).to_bytes(width, "little", signed=signed)


def _big(width: int, step: int, offset: int) -> Plain:
    return lambda n: (n * step + offset).to_bytes(width, "big", signed=True)


def _int_limits(width: int, least: int, most: int, *more: int) -> list[bytes]:
    modulus = 1 << 8 * width
    return [(number % modulus).to_bytes(width, "little") for number in (least, *more, most)]


def _minimal(number: int) -> bytes:
    """Encode as the fewest bytes of big-endian two's complement."""
    magnitude = number if number >= 0 else number + 1
    return number.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def _bigs(width: int, *numbers: int) -> list[bytes]:
    return [number.to_bytes(width, "big", signed=True) for number in numbers]


def _bson(n: int) -> bytes:
    return struct.pack("<iB2siB", 12, 0x10, b"n\0", n, 0)


def _interval(n: int) -> bytes:
    return struct.pack("<3I", n, 7 * n % 30, n * 86_399)


def _digest(n: int) -> bytes:
    plain = n.to_bytes(8, "little")
    halves = (spec.xxh64(plain), spec.xxh64(plain, 1))
    return b"".join(half.to_bytes(8, "little") for half in halves)


def _point(n: int) -> bytes:
    return struct.pack("<BIdd", 1, 1, n / 2, -n / 4)


def _int96(n: int) -> bytes:
    return struct.pack("<qi", n * 1_000_000_007, JULIAN_DAY_OF_2024 + n)


def _members(union: Any) -> dict[str, type]:
    """Return the structs that are the members of a union, by name."""
    return {field[2]: field[3][0] for field in union.thrift_spec if field}


_LOGICAL_TYPES = _members(ttypes.LogicalType)
_UNITS = _members(ttypes.TimeUnit)


def _logical(member: str) -> ttypes.LogicalType:
    """Make the logical type that is a member without parameters."""
    return ttypes.LogicalType(**{member: _LOGICAL_TYPES[member]()})


def _unit(name: str) -> ttypes.TimeUnit:
    return ttypes.TimeUnit(**{name: _UNITS[name]()})


def _int(name: str, bits: int, signed: bool, converted: int) -> Kind:
    width = 8 if bits == 64 else 4
    if signed:
        least = -(1 << bits - 1)
        most = (1 << bits - 1) - 1
        middle = (-1, 0)
    else:
        least = 0
        most = (1 << bits) - 1
        middle = (most // 2, most // 2 + 1)
    step = 1 if bits == 8 else most // 300
    return Kind(
        name,
        f"INT{8 * width}",
        _ints(width, step, 5, signed=signed or bits < 32),
        _int_limits(width, least, most, *middle),
        ttypes.LogicalType(INTEGER=ttypes.IntType(bitWidth=bits, isSigned=signed)),
        converted,
    )


def _decimal(
    name: str,
    physical: str,
    value: Plain,
    extremes: Sequence[bytes],
    precision: int,
    scale: int,
    length: int | None = None,
) -> Kind:
    logical = ttypes.LogicalType(DECIMAL=ttypes.DecimalType(scale=scale, precision=precision))
    return Kind(
        name, physical, value, extremes, logical, ConvertedType.DECIMAL, length, precision, scale
    )


def _time(name: str, unit: str, per_second: int, converted: int | None, *, utc: bool) -> Kind:
    width = 4 if unit == "MILLIS" else 8
    return Kind(
        name,
        f"INT{8 * width}",
        _ints(width, 331 * per_second + 1),
        _int_limits(width, 0, 86_400 * per_second - 1),
        ttypes.LogicalType(TIME=ttypes.TimeType(isAdjustedToUTC=utc, unit=_unit(unit))),
        converted,
    )


def _timestamp(name: str, unit: str, per_second: int, converted: int | None, *, utc: bool) -> Kind:
    first = -62_135_596_800 * per_second if per_second < 10**9 else -(2**63) + 1
    return Kind(
        name,
        "INT64",
        _ints(8, 25_201 * per_second + 1, 1_700_000_000 * per_second),
        _int_limits(8, -1, 0, first),
        ttypes.LogicalType(TIMESTAMP=ttypes.TimestampType(isAdjustedToUTC=utc, unit=_unit(unit))),
        converted,
    )


def _float(
    name: str,
    physical: str,
    layout: str,
    extremes: Sequence[float],
    logical: ttypes.LogicalType | None = None,
) -> Kind:
    numbers = (*extremes, float("inf"), float("-inf"), 1.0, -1.0)
    return Kind(
        name,
        physical,
        lambda n: struct.pack(layout, n / 4 + 0.125),
        [struct.pack(layout, number) for number in numbers],
        logical,
        length=2 if layout == "<e" else None,
    )


def _text(prefix: str) -> Plain:
    return lambda n: f"{prefix}{n}".encode()


_TEXTS = [
    text.encode() for text in ("", " ", "null", "0x00", "Gr\u00fc\u00dfe \U0001f44b", "x" * 500)
]
_BLOBS = [b"", b"\0", b"\xff\xfe", bytes(100)]

_MINIMAL = list(map(_minimal, (0, -1, 127, 128, -128, -129, 10**20 - 1)))
_MILLIS = ConvertedType.TIMESTAMP_MILLIS
_INTERVALS = [bytes(12), struct.pack("<3I", 1, 0, 0), b"\xff" * 12]
KINDS = [
    Kind(
        "int32",
        "INT32",
        _ints(4, 1_000_003, -20_000_000),
        _int_limits(4, -(2**31), 2**31 - 1, -1, 0),
    ),
    _int("int8", 8, True, ConvertedType.INT_8),
    _int("int16", 16, True, ConvertedType.INT_16),
    _int("int32-annotated", 32, True, ConvertedType.INT_32),
    _int("uint8", 8, False, ConvertedType.UINT_8),
    _int("uint16", 16, False, ConvertedType.UINT_16),
    _int("uint32", 32, False, ConvertedType.UINT_32),
    Kind("int64", "INT64", _ints(8, 10**16, -(10**17)), _int_limits(8, -(2**63), 2**63 - 1, -1, 0)),
    _int("int64-annotated", 64, True, ConvertedType.INT_64),
    _int("uint64", 64, False, ConvertedType.UINT_64),
    _decimal(
        "decimal-int32",
        "INT32",
        _ints(4, 131, -1000),
        _int_limits(4, -999_999_999, 999_999_999, -1, 0),
        9,
        2,
    ),
    _decimal(
        "decimal-int64",
        "INT64",
        _ints(8, 10**12 + 7, -(10**13)),
        _int_limits(8, -(10**18) + 1, 10**18 - 1, -1, 0),
        18,
        4,
    ),
    _decimal(
        "decimal-fixed",
        _FIXED,
        _big(16, 10**30 + 7, -(10**31)),
        _bigs(16, 0, -1, 10**38 - 1, -(10**38) + 1),
        38,
        10,
        16,
    ),
    _decimal(
        "decimal-fixed-5",
        _FIXED,
        _big(5, 131, -1000),
        _bigs(5, 0, -1, 10**11 - 1, -(10**11) + 1),
        11,
        3,
        5,
    ),
    _decimal(
        "decimal-bytes",
        "BYTE_ARRAY",
        lambda n: _minimal(n * 10**17 - 10**18),
        _MINIMAL,
        20,
        3,
    ),
    Kind(
        "date",
        "INT32",
        _ints(4, 3, 19_000),
        _int_limits(4, -719_162, 2_932_896, -1, 0),
        _logical("DATE"),
        ConvertedType.DATE,
    ),
    _time("time-millis", "MILLIS", 10**3, ConvertedType.TIME_MILLIS, utc=True),
    _time("time-micros", "MICROS", 10**6, ConvertedType.TIME_MICROS, utc=True),
    _time("time-nanos", "NANOS", 10**9, None, utc=True),
    _time("time-micros-local", "MICROS", 10**6, None, utc=False),
    _timestamp("timestamp-millis", "MILLIS", 10**3, _MILLIS, utc=True),
    _timestamp("timestamp-micros", "MICROS", 10**6, ConvertedType.TIMESTAMP_MICROS, utc=True),
    _timestamp("timestamp-nanos", "NANOS", 10**9, None, utc=True),
    _timestamp("timestamp-millis-local", "MILLIS", 10**3, None, utc=False),
    _timestamp("timestamp-micros-local", "MICROS", 10**6, None, utc=False),
    _timestamp("timestamp-nanos-local", "NANOS", 10**9, None, utc=False),
    Kind("int96", "INT96", _int96, [struct.pack("<qi", 0, JULIAN_DAY_OF_2024 - 1)]),
    _float("float", "FLOAT", "<f", (3.4028234663852886e38, 1.401298464324817e-45)),
    _float("double", "DOUBLE", "<d", (1.7976931348623157e308, 5e-324, 0.1)),
    _float("float16", _FIXED, "<e", (65504.0, 6e-8), _logical("FLOAT16")),
    Kind("byte-array", "BYTE_ARRAY", lambda n: _digest(n)[: n % 9 + 3], _BLOBS),
    Kind("string", "BYTE_ARRAY", _text("text "), _TEXTS, _logical("STRING"), ConvertedType.UTF8),
    Kind("enum", "BYTE_ARRAY", _text("CASE_"), [b"RED", b""], _logical("ENUM"), ConvertedType.ENUM),
    Kind(
        "json",
        "BYTE_ARRAY",
        lambda n: b'{"n": %d}' % n,
        [b"null", b"{}"],
        _logical("JSON"),
        ConvertedType.JSON,
    ),
    Kind(
        "bson",
        "BYTE_ARRAY",
        _bson,
        [struct.pack("<iB", 5, 0)],
        _logical("BSON"),
        ConvertedType.BSON,
    ),
    Kind(
        "geometry", "BYTE_ARRAY", _point, [struct.pack("<BIdd", 1, 1, 0, 0)], _logical("GEOMETRY")
    ),
    Kind(
        "geography",
        "BYTE_ARRAY",
        _point,
        [struct.pack("<BIdd", 1, 1, 180, 90)],
        _logical("GEOGRAPHY"),
    ),
    Kind("fixed", _FIXED, lambda n: _digest(n)[:4], [bytes(4), b"\xff" * 4, b"null"], length=4),
    Kind("uuid", _FIXED, _digest, [bytes(16), b"\xff" * 16], _logical("UUID"), length=16),
    Kind("interval", _FIXED, _interval, _INTERVALS, converted=ConvertedType.INTERVAL, length=12),
    Kind("string-converted", "BYTE_ARRAY", _text("text "), _TEXTS, converted=ConvertedType.UTF8),
    Kind(
        "uint32-converted",
        "INT32",
        _ints(4, 11, 5),
        _int_limits(4, 0, 2**32 - 1, 2**31),
        converted=ConvertedType.UINT_32,
    ),
    Kind(
        "timestamp-millis-converted",
        "INT64",
        _ints(8, 25_201_001, 17 * 10**11),
        _int_limits(8, -1, 0),
        converted=_MILLIS,
    ),
    Kind(
        "decimal-converted",
        "INT32",
        _ints(4, 131, -1000),
        _int_limits(4, -(10**9) + 1, 10**9 - 1),
        converted=ConvertedType.DECIMAL,
        precision=9,
        scale=2,
    ),
]
BOOLEAN = Kind("boolean", "BOOLEAN", lambda n: bytes([n & 1]))
"""Not among `KINDS`, because the format does not define its hash."""
BY_NAME = {kind.name: kind for kind in KINDS}
