"""Every non-null value of a chunk arrives, in order, as the plain bytes of its physical type; each
expectation is packed by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet.idl.ttypes import CompressionCodec
from support.corpus_edits import annotate, decimal, edit_footer
from support.samples import stored
from support.tables import each


def write(path: Path, values: pa.Array, **options: Any) -> Path:
    pq.write_table(pa.table({"v": values}), path, **options)
    return path


def test_byte_array_decimals_are_what_the_writer_stored_superfluous_sign_bytes_and_all(
    tmp_path: Path,
) -> None:
    forms = [b"\x01", b"\x00\x01", bytes(40) + b"\x01", b"\xff\xff", b"\x00\x80", b"\x80", b""]
    path = write(tmp_path / "f.parquet", pa.array(forms, pa.binary()), use_dictionary=False)

    assert stored(annotate(path, {"v": decimal(9, 2)})) == forms


# Encodings, pages, codecs

INTEGERS, STRINGS = list(range(-3000, 3000)), [f"value {n * n}" for n in range(3000)]
ENCODINGS: list[tuple[str, pa.Array]] = [
    *(
        (encoding, pa.array(INTEGERS, pa.int32()))
        for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
    ),
    *(
        (encoding, pa.array(INTEGERS, pa.int64()))
        for encoding in ("PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
    ),
    *((encoding, pa.array(INTEGERS, pa.float32())) for encoding in ("PLAIN", "BYTE_STREAM_SPLIT")),
    *((encoding, pa.array(INTEGERS, pa.float64())) for encoding in ("PLAIN", "BYTE_STREAM_SPLIT")),
    *(
        (encoding, pa.array(STRINGS))
        for encoding in ("PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
    ),
    *(
        (encoding, pa.array([value.rjust(16).encode() for value in STRINGS], pa.binary(16)))
        for encoding in ("PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT")
    ),
]
LAYOUTS = {pa.int32(): "<i", pa.int64(): "<q", pa.float32(): "<f", pa.float64(): "<d"}


def packed(array: pa.Array) -> list[bytes]:
    layout = LAYOUTS.get(array.type)
    values = array.drop_null().to_pylist()
    return [
        struct.pack(layout, value)
        if layout
        else value.encode()
        if isinstance(value, str)
        else value
        for value in values
    ]


@each("version", ["1.0", "2.0"])
@each("encoding, array", ENCODINGS)
def test_every_encoding_in_pages_of_either_version(
    tmp_path: Path, encoding: str, array: pa.Array, version: str
) -> None:
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
