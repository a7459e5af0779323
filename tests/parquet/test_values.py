"""Every non-null value of a chunk arrives, in order, as the plain bytes of its physical type; each expectation is packed by hand."""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.idl.ttypes import CompressionCodec
from support.corpus_edits import annotate, decimal, edit_footer
from support.newer_pyarrow import arrow_type
from support.samples import stored
from support.tables import each


def write(path: Path, values: pa.Array, **options: Any) -> Path:
    pq.write_table(pa.table({"v": values}), path, **options)
    return path


UTC = dt.UTC
A_DAY, A_MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 15, 123456, tzinfo=UTC)
MICROS = 1_709_209_815_123_456
KEY = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")

TYPES: list[tuple[pa.DataType, list[Any], Callable[[Any], bytes]]] = [
    (pa.int8(), [-128, 0, 127], lambda v: struct.pack("<i", v)),
    (pa.uint8(), [0, 255], lambda v: struct.pack("<I", v)),
    (pa.int16(), [-32768, 32767], lambda v: struct.pack("<i", v)),
    (pa.uint16(), [0, 65535], lambda v: struct.pack("<I", v)),
    (pa.int32(), [-(2**31), -1, 2**31 - 1], lambda v: struct.pack("<i", v)),
    (pa.uint32(), [0, 2**31, 2**32 - 1], lambda v: struct.pack("<I", v)),
    (pa.int64(), [-(2**63), 2**63 - 1], lambda v: struct.pack("<q", v)),
    (pa.uint64(), [0, 2**63, 2**64 - 1], lambda v: struct.pack("<Q", v)),
    (pa.float16(), [np.float16(1.5), np.float16(-65504)], lambda v: struct.pack("<e", v)),
    (pa.float32(), [1.5, -3.25, float("inf")], lambda v: struct.pack("<f", v)),
    (pa.float64(), [0.1, -1e308], lambda v: struct.pack("<d", v)),
    (pa.string(), ["", "a", "Grüße", "x" * 1000], str.encode),
    (pa.large_string(), ["", "long"], str.encode),
    (arrow_type("string_view"), ["", "a view of more than twelve bytes"], str.encode),
    (pa.binary(), [b"", b"\x00", b"\xff\xfe"], bytes),
    (pa.binary(5), [b"12345", bytes(5)], bytes),
    (pa.dictionary(pa.int32(), pa.string()), ["one", "two", "one"], str.encode),
    (pa.date32(), [A_DAY, dt.date(1, 1, 1)], lambda v: struct.pack("<i", (v - dt.date(1970, 1, 1)).days)),
    (pa.date64(), [A_DAY], lambda v: struct.pack("<i", 19_782)),
    (pa.time32("ms"), [dt.time(23, 59, 59, 999000)], lambda v: struct.pack("<i", 86_399_999)),
    (pa.time64("us"), [dt.time(0, 0, 0, 1)], lambda v: struct.pack("<q", 1)),
    (pa.time64("ns"), [dt.time(0, 0, 1)], lambda v: struct.pack("<q", 10**9)),
    (pa.timestamp("ms", "UTC"), [A_MOMENT.replace(microsecond=123000)], lambda v: struct.pack("<q", MICROS // 1000)),
    (pa.timestamp("us", "UTC"), [A_MOMENT], lambda v: struct.pack("<q", MICROS)),
    (pa.timestamp("us"), [A_MOMENT.replace(tzinfo=None)], lambda v: struct.pack("<q", MICROS)),
    (pa.timestamp("ns", "UTC"), [A_MOMENT], lambda v: struct.pack("<q", MICROS * 1000)),
    (pa.timestamp("s", "UTC"), [A_MOMENT.replace(microsecond=0)], lambda v: struct.pack("<q", MICROS // 1_000_000 * 1000)),
    (pa.decimal128(5, 2), [Decimal("1.00"), Decimal("-1.28")], lambda v: int(v * 100).to_bytes(3, "big", signed=True)),
    (pa.decimal128(38, 10), [Decimal("-0.0000000001")], lambda v: b"\xff" * 16),
    (pa.decimal256(76, 0), [Decimal(10) ** 75], lambda v: (10**75).to_bytes(32, "big")),
    (arrow_type("uuid"), [KEY.bytes], lambda v: KEY.bytes),
    (arrow_type("json_"), ['{"a": [1, 2]}'], str.encode),
]


@each("use_dictionary", {"dictionary": True, "plain": False})
@each("kind, values, pack", TYPES)
def test_each_type(tmp_path: Path, kind: pa.DataType, values: list[Any], pack: Callable[[Any], bytes], use_dictionary: bool) -> None:
    array = pa.array([values[0], None, *values, None, *values, None], kind)

    path = write(tmp_path / "f.parquet", array, use_dictionary=use_dictionary)

    assert stored(path) == [pack(value) for value in (values[0], *values, *values)]


def test_byte_array_decimals_are_what_the_writer_stored_superfluous_sign_bytes_and_all(tmp_path: Path) -> None:
    forms = [b"\x01", b"\x00\x01", bytes(40) + b"\x01", b"\xff\xff", b"\x00\x80", b"\x80", b""]
    path = write(tmp_path / "f.parquet", pa.array(forms, pa.binary()), use_dictionary=False)

    assert stored(annotate(path, {"v": decimal(9, 2)})) == forms


# Encodings, pages, codecs

INTEGERS, STRINGS = list(range(-3000, 3000)), [f"value {n * n}" for n in range(3000)]
ENCODINGS: list[tuple[str, pa.Array]] = [
    *((encoding, pa.array(INTEGERS, pa.int32())) for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")),
    *((encoding, pa.array(INTEGERS, pa.int64())) for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")),
    *((encoding, pa.array(INTEGERS, pa.float32())) for encoding in ("PLAIN", "BYTE_STREAM_SPLIT")),
    *((encoding, pa.array(INTEGERS, pa.float64())) for encoding in ("PLAIN", "BYTE_STREAM_SPLIT")),
    *((encoding, pa.array(STRINGS)) for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")),
    *(
        (encoding, pa.array([value.rjust(16).encode() for value in STRINGS], pa.binary(16)))
        for encoding in ("PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
    ),
]
LAYOUTS = {pa.int32(): "<i", pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d"}


def packed(array: pa.Array) -> list[bytes]:
    layout = LAYOUTS.get(array.type)
    values = array.drop_null().to_pylist()
    return [struct.pack(layout, value) if layout else value.encode() if isinstance(value, str) else value for value in values]


@each("version", ["1.0", "2.0"])
@each("encoding, array", ENCODINGS)
def test_every_encoding_in_pages_of_either_version(tmp_path: Path, encoding: str, array: pa.Array, version: str) -> None:
    path = write(
        tmp_path / "f.parquet",
        array,
        use_dictionary=False,
        column_encoding={"v": encoding},
        data_page_version=version,
        data_page_size=2000,
        write_batch_size=100,
        row_group_size=2500,
    )

    assert encoding in pq.read_metadata(path).row_group(0).column(0).encodings
    assert stored(path) == packed(array)


def test_a_codec_that_cannot_be_had_is_an_answer_with_a_reason(tmp_path: Path) -> None:
    def claim_lzo(metadata: Any) -> None:
        metadata.row_groups[0].columns[0].meta_data.codec = CompressionCodec.LZO

    path = edit_footer(write(tmp_path / "f.parquet", pa.array([1, 2])), claim_lzo)

    with pytest.raises(UnreadableError, match=r"(?i)lzo") as caught:
        stored(path)
    assert caught.value.place == "column v, row group 0"
