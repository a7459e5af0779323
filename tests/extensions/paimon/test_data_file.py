"""The hashes of stored columns: three formats, one answer."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro.file import AvroHeader, build_file
from sbbf_tool.extensions.avro.schema import parse_schema
from sbbf_tool.extensions.paimon.arrow_columns import is_written_in_utc, read_int96
from sbbf_tool.extensions.paimon.bloom64_spec import wang_hash
from sbbf_tool.extensions.paimon.data_file import hash_columns
from sbbf_tool.extensions.paimon.fast_hash import HashBatch, hash_bytes
from sbbf_tool.extensions.paimon.table_schema import parse_indexed_column, parse_type_text
from support.tables import each


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def orc_bytes(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(table, sink, **options)
    return sink.getvalue()


def avro_bytes(fields: dict[str, Any], rows: list[dict[str, Any]]) -> bytes:
    tree = [
        "null",
        {
            "type": "record",
            "name": "row",
            "fields": [{"name": name, "type": kind} for name, kind in fields.items()],
        },
    ]
    return build_file(
        AvroHeader(json.dumps(tree), parse_schema(json.dumps(tree)), "deflate", bytes(16), 0), rows
    )


def hash_column(
    data: bytes, name: str, column: str, data_type: str | None = None
) -> tuple[set[int], int, int]:
    """The distinct hashes of a column, its rows, and its rows without a value."""
    indexed = parse_indexed_column(column)
    batches = hash_columns(
        data, name, {indexed: parse_type_text(data_type) if data_type else None}
    ).batches
    parts: list[HashBatch] = [batch[indexed] for batch in batches]
    hashes = {int(number) for part in parts for number in part.hashes}
    return hashes, sum(part.rows for part in parts), sum(part.nulls for part in parts)


def text_hashes(*values: bytes) -> set[int]:
    return set(hash_bytes(values).tolist())


WHEN = dt.datetime(2024, 2, 29, 1, 2, 3, 456789)
MICROS = 1709168523456789
TABLE = pa.table(
    {
        "s": ["a", None, "é", "a"],
        "y": pa.array([b"a", None, b"\xff", b""]),
        "t": pa.array([-128, None, 0, 127], pa.int8()),
        "h": pa.array([-32768, None, 0, 1], pa.int16()),
        "i": pa.array([-(2**31), None, 0, 1], pa.int32()),
        "l": pa.array([-(2**63), None, 0, 2**63 - 1]),
        "f": pa.array([-0.0, None, float("nan"), 0.0], pa.float32()),
        "d": pa.array([-0.0, None, float("nan"), 0.0]),
        "date": pa.array([dt.date(1969, 12, 31), None, dt.date(1970, 1, 1), dt.date(2024, 2, 29)]),
        "ms": pa.array(
            [WHEN, None, dt.datetime(1969, 12, 31, 23, 59, 59, 999000)] * 1 + [WHEN]
        ).cast(pa.timestamp("ms"), safe=False),
        "us": pa.array(
            [WHEN, None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), WHEN], pa.timestamp("us")
        ),
        "m": pa.array(
            [[("k", 1), ("x", 2)], None, [("x", 5)], [("k", None)]],
            pa.map_(pa.string(), pa.int32()),
        ),
    }
)
ROWS = [
    {
        "s": "a",
        "y": b"a",
        "i": -(2**31),
        "l": -(2**63),
        "f": -0.0,
        "d": -0.0,
        "date": -1,
        "ms": 1709168523456,
        "us": MICROS,
        "m": {"k": 1, "x": 2},
    },
    dict.fromkeys(("s", "y", "i", "l", "f", "d", "date", "ms", "us", "m")),
    {
        "s": "é",
        "y": b"\xff",
        "i": 0,
        "l": 0,
        "f": float("nan"),
        "d": float("nan"),
        "date": 0,
        "ms": -1,
        "us": -1,
        "m": {"x": 5},
    },
    {
        "s": "a",
        "y": b"",
        "i": 1,
        "l": 2**63 - 1,
        "f": 0.0,
        "d": 0.0,
        "date": 19782,
        "ms": 1709168523456,
        "us": MICROS,
        "m": {"k": None},
    },
]
AVRO_FIELDS = {
    "s": ["null", "string"],
    "y": ["null", "bytes"],
    "i": ["null", "int"],
    "l": ["null", "long"],
    "f": ["null", "float"],
    "d": ["null", "double"],
    "date": ["null", {"type": "int", "logicalType": "date"}],
    "ms": ["null", {"type": "long", "logicalType": "timestamp-millis"}],
    "us": ["null", {"type": "long", "logicalType": "local-timestamp-micros"}],
    "m": ["null", {"type": "map", "values": ["null", "int"]}],
}
EXPECTED: dict[str, tuple[set[int], int]] = {
    "s": (text_hashes(b"a", "é".encode()), 1),
    "y": (text_hashes(b"a", b"\xff", b""), 1),
    "t": (set(map(wang_hash, (-128, 0, 127))), 1),
    "h": (set(map(wang_hash, (-32768, 0, 1))), 1),
    "i": (set(map(wang_hash, (-(2**31), 0, 1))), 1),
    "l": (set(map(wang_hash, (-(2**63), 0, 2**63 - 1))), 1),
    "f": (set(map(wang_hash, (-0x80000000, 0x7FC00000, 0))), 1),
    "d": (set(map(wang_hash, (-(2**63), 0x7FF8000000000000, 0))), 1),
    "date": (set(map(wang_hash, (-1, 0, 19782))), 1),
    "ms": (set(map(wang_hash, (1709168523456, -1))), 1),
    "us": (set(map(wang_hash, (MICROS, -1))), 1),
    "m[k]": ({wang_hash(1)}, 3),
    "m[x]": (set(map(wang_hash, (2, 5))), 2),
    "m[none]": (set(), 4),
}
PARQUET = parquet_bytes(TABLE, row_group_size=3)
ORC = orc_bytes(TABLE)
AVRO = avro_bytes(AVRO_FIELDS, ROWS)


@each(
    "name, column",
    [
        (name, column)
        for name in ("x.parquet", "x.orc", "x.avro")
        for column in EXPECTED
        if name != "x.avro" or column not in ("t", "h")
    ],
)
def test_formats_agree(name: str, column: str) -> None:
    data = {"x.parquet": PARQUET, "x.orc": ORC, "x.avro": AVRO}[name]
    data_type = (
        {"ms": "TIMESTAMP(3)", "us": "TIMESTAMP(6)"}.get(column) if name == "x.orc" else None
    )
    hashes, nulls = EXPECTED[column]
    assert hash_column(data, name, column, data_type) == (hashes, 4, nulls)


def test_other_forms_of_columns_in_parquet() -> None:
    table = pa.table({"a.b": pa.array(["x", "y", "x"]).dictionary_encode(), "a": ["1", "2", "3"]})
    assert hash_column(parquet_bytes(table), "x.parquet", "a.b")[0] == text_hashes(b"x", b"y")
    table = pa.table({"t": pa.array([WHEN, None, dt.datetime(1900, 1, 1, 1)], pa.timestamp("ns"))})
    data = parquet_bytes(table, use_deprecated_int96_timestamps=True)
    micros = (dt.datetime(1900, 1, 1, 1) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    assert hash_column(data, "x.parquet", "t") == ({wang_hash(MICROS), wang_hash(micros)}, 3, 1)
    assert hash_column(data, "x.parquet", "t", "TIMESTAMP(9)")[0] == {
        wang_hash(MICROS),
        wang_hash(micros),
    }


def test_a_known_type_decides_how_fine_a_timestamp_is() -> None:
    in_millis = {wang_hash(MICROS // 1000), wang_hash(-1)}
    for name, data in (("x.parquet", PARQUET), ("x.orc", ORC), ("x.avro", AVRO)):
        assert hash_column(data, name, "us", "TIMESTAMP(3)")[0] == in_millis
        assert hash_column(data, name, "ms", "TIMESTAMP(6)")[0] == {
            wang_hash(MICROS // 1000 * 1000),
            wang_hash(-1000),
        }


def test_times_are_milliseconds_of_the_day() -> None:
    times = pa.table(
        {
            "t": pa.array([1_234_567_890], pa.time64("us")),
            "u": pa.array([1_234_567], pa.time32("ms")),
        }
    )
    assert hash_column(parquet_bytes(times), "x.parquet", "t")[0] == {wang_hash(1_234_567)}
    assert hash_column(parquet_bytes(times), "x.parquet", "u")[0] == {wang_hash(1_234_567)}
    stored_as_int = pa.table({"t": pa.array([1_234_567], pa.int32())})
    assert hash_column(orc_bytes(stored_as_int), "x.orc", "t", "TIME(3)")[0] == {
        wang_hash(1_234_567)
    }


def test_blanks_behind_char_in_orc_do_not_count() -> None:
    padded = pa.table({"c": ["ab   ", "     "]})
    assert hash_column(orc_bytes(padded), "x.orc", "c", "CHAR(5)")[0] == text_hashes(b"ab", b"")
    assert hash_column(orc_bytes(padded), "x.orc", "c", "VARCHAR(5)")[0] == text_hashes(
        b"ab   ", b"     "
    )
    assert hash_column(parquet_bytes(padded), "x.parquet", "c", "CHAR(5)")[0] == text_hashes(
        b"ab   ", b"     "
    )


@each(
    "when, negative",
    [
        (dt.datetime(1, 1, 1, 5, 6, 7, 89), True),
        (dt.datetime(1900, 1, 1, 12, 0, 0, 1), True),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), True),
        (dt.datetime(9999, 12, 31, 23, 59, 59, 999999), False),
    ],
)
def test_int96_as_paimon_writes_it(when: dt.datetime, negative: bool) -> None:
    """Times before 1970 with a negative nanosecond of the day."""
    micros = (when - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    for nanos_within in (0, 1, 616, 617, 999):
        day, nano_of_day = divmod(micros * 1000 + nanos_within, 86_400_000_000_000)
        if negative and nano_of_day:
            day, nano_of_day = day + 1, nano_of_day - 86_400_000_000_000
        plain = struct.pack("<qi", nano_of_day, day + 2_440_588)
        assert read_int96(pa.array([bytes(12), plain], pa.binary(12)).slice(1)).cast(
            pa.int64()
        ).to_pylist() == [micros]


UNHASHABLE = {
    "flag": ([True], "BOOLEAN"),
    "money": (pa.array([1], pa.decimal128(5, 2)), "DECIMAL"),
    "list": ([[1]], "ARRAY"),
    "m": (pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32())), "MAP"),
    "big": (pa.array([1], pa.uint64()), "does not determine the Paimon type"),
}


def test_what_cannot_be_hashed_is_refused_with_a_reason() -> None:
    data = parquet_bytes(
        pa.table({"s": ["x"], **{name: values for name, (values, _) in UNHASHABLE.items()}})
    )
    messages = {name: message for name, (_, message) in UNHASHABLE.items()}
    for column, message in {"missing": "no column", "s[k]": "not a map", **messages}.items():
        with pytest.raises(UsageError, match=message):
            hash_column(data, "x.parquet", column)
    with pytest.raises(UsageError, match="does not determine the Paimon type"):
        hash_column(ORC, "x.orc", "us")
    with pytest.raises(UsageError, match="csv"):
        hash_columns(b"a,b", "x.csv", {})


@each(
    "column, data_type",
    [
        ("s", "INT"),
        ("i", "STRING"),
        ("f", "DOUBLE"),
        ("l", "DATE"),
        ("d", "TIMESTAMP(3)"),
        ("us", "TIME(3)"),
    ],
)
@each("name", ["x.parquet", "x.orc", "x.avro"])
def test_a_column_stored_as_another_type_is_unreadable(
    name: str, column: str, data_type: str
) -> None:
    data = {"x.parquet": PARQUET, "x.orc": ORC, "x.avro": AVRO}[name]
    with pytest.raises(UnreadableError, match=f"column {column}"):
        hash_column(data, name, column, data_type)


@each("name, data", [("x.parquet", PARQUET), ("x.orc", ORC), ("x.avro", AVRO)])
def test_broken_data_files_are_unreadable(name: str, data: bytes) -> None:
    for damaged_data in (b"", data[:20], data[: len(data) // 2], data[:-10]):
        with pytest.raises(UnreadableError):
            hash_column(damaged_data, name, "s")


def test_zones_of_orc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A TIMESTAMP_LTZ is taken from a file written in UTC only, a TIMESTAMP of our days from
    any."""
    # New systems know EST only by its city.
    for name, place in (("EST", "America/Panama"), ("GMT", "Etc/GMT"), ("UTC", "Etc/UTC")):
        (tmp_path / name).symlink_to(Path("/usr/share/zoneinfo", place))
    monkeypatch.setenv("TZDIR", str(tmp_path))
    elsewhere = orc_bytes(TABLE, compression="uncompressed").replace(b"GMT", b"EST")
    for compression in ("uncompressed", "zlib", "zstd"):
        assert is_written_in_utc(orc_bytes(TABLE, compression=compression))
    assert not is_written_in_utc(elsewhere)
    assert hash_column(ORC, "x.orc", "us", "TIMESTAMP_LTZ(6)")[0] == EXPECTED["us"][0]
    assert hash_column(elsewhere, "x.orc", "us", "TIMESTAMP(6)")[0] == EXPECTED["us"][0]
    with pytest.raises(UsageError, match="zone"):
        hash_column(elsewhere, "x.orc", "us", "TIMESTAMP_LTZ(6)")
    old = pa.table({"t": pa.array([dt.datetime(1800, 1, 1)], pa.timestamp("us"))})
    with pytest.raises(UsageError, match="zone"):
        hash_column(
            orc_bytes(old, compression="uncompressed").replace(b"GMT", b"EST"),
            "x.orc",
            "t",
            "TIMESTAMP(6)",
        )


def test_a_file_without_a_time_zone_is_not_taken_for_utc() -> None:
    for noise in (b"", b"\0", b"\xff" * 30, ORC[:-1], ORC[: len(ORC) // 2]):
        assert not is_written_in_utc(noise)
