"""Types that no available writer writes, or not from Python: pyarrow's pages and filters, and a
footer that annotates them.

The filters are Arrow C++'s, of the bytes in the pages. Queries in the notation of the annotated
type must be right, as with ours.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe
from sbbf_tool.errors import RefusedError, UnreadableError
from support import corpus_edits as edits
from support.tables import each

WKB_POINT = struct.pack("<BIdd", 1, 1, 30.0, 10.0)
BSON_DOCUMENT = bytes.fromhex("0c0000001061000100000000")

# Annotation, the column's type in pyarrow, plain bytes that are stored, and each as a person writes
# it.
TYPES: list[tuple[str, dict[str, Any], pa.DataType, dict[bytes, str]]] = [
    ("ENUM", edits.ENUM, pa.binary(), {b"RED": "RED", b"": "", b"null": "null"}),
    ("BSON", edits.BSON, pa.binary(), {BSON_DOCUMENT: f"0x{BSON_DOCUMENT.hex()}"}),
    ("GEOMETRY", edits.GEOMETRY, pa.binary(), {WKB_POINT: f"0x{WKB_POINT.hex()}"}),
    ("GEOGRAPHY", edits.GEOGRAPHY, pa.binary(), {WKB_POINT: f"0x{WKB_POINT.hex()}"}),
    (
        "INTERVAL",
        edits.INTERVAL,
        pa.binary(12),
        {
            bytes(12): "P0D",
            struct.pack("<III", 14, 3, 14_706_007): "P1Y2M3DT4H5M6.007S",
            struct.pack("<III", *[2**32 - 1] * 3): "P4294967295M4294967295DT4294967.295S",
        },
    ),
    (
        "DECIMAL(9,2)",
        edits.decimal(9, 2),
        pa.binary(),
        {
            b"\x01": "0.01",
            b"\x00\x00\x02": "0.02",
            bytes(31) + b"\x03": "0.03",
            b"\x80": "-1.28",
            b"\xff\xff\x7f": "-1.29",
            b"\x00": "0",
        },
    ),
    (
        "DECIMAL(76,0)",
        edits.decimal(76, 0),
        pa.binary(),
        {(10**75).to_bytes(32, "big"): "1" + "0" * 75, b"\xff": "-1"},
    ),
    (
        "DECIMAL(5,1)",
        edits.decimal(5, 1),
        pa.binary(7),
        {(-5).to_bytes(7, "big", signed=True): "-0.5", bytes(7): "0"},
    ),
    (
        "DECIMAL(5,1)",
        edits.decimal(5, 1),
        pa.int64(),
        {struct.pack("<q", -5): "-0.5", struct.pack("<q", 99999): "9999.9"},
    ),
]


def annotated(
    path: Path,
    annotation: dict[str, Any],
    kind: pa.DataType,
    stored: list[bytes],
    *,
    filters: bool = True,
) -> Path:
    values = [struct.unpack("<q", plain)[0] for plain in stored] if kind == pa.int64() else stored
    table = pa.table({"v": pa.array([*values, None], kind)})
    pq.write_table(
        table, path, bloom_filter_options={"v": {"ndv": 1000, "fpp": 1e-6}} if filters else None
    )
    return edits.annotate(path, {"v": annotation})


@each("name, annotation, kind, values", TYPES)
def test_a_filter_is_queried_in_the_notation_of_the_type(
    tmp_path: Path,
    name: str,
    annotation: dict[str, Any],
    kind: pa.DataType,
    values: dict[bytes, str],
) -> None:
    theirs, ours = (
        annotated(tmp_path / "theirs.parquet", annotation, kind, list(values)),
        tmp_path / "ours.parquet",
    )
    add_filters(theirs, ["v"], output=ours, rebuild="all", fpp=1e-6)

    for path in (theirs, ours):
        report = probe(path, "v", list(values.values()))
        assert report.type.endswith(f" {name}")
        assert [answer.value for answer in report.values if answer.is_absent] == []
        absent = {"ENUM": "GREEN", "INTERVAL": "P1M"}.get(
            name, "12.3" if name == "DECIMAL(9,2)" else "7" if "DECIMAL" in name else "0x00"
        )
        assert probe(path, "v", [absent], filters_only=True).is_absent


def test_decimals_of_byte_arrays_may_be_padded_as_a_writer_likes(tmp_path: Path) -> None:
    """The specification requires the fewest bytes. Files hold values with more of them too, and the
    answer states what was queried."""
    stored = [
        (n * (-1) ** n).to_bytes(width, "big", signed=True) for n, width in enumerate(range(2, 33))
    ]
    path, ours = (
        annotated(tmp_path / "f.parquet", edits.decimal(9, 2), pa.binary(), stored, filters=False),
        tmp_path / "ours.parquet",
    )
    add_filters(path, ["v"], output=ours, fpp=1e-9)

    for n in range(31):
        (answer,) = probe(ours, "v", [f"{n * (-1) ** n / 100:.2f}"]).values
        assert not answer.is_absent
        assert answer.note is not None
        assert "superfluous sign bytes: queried are those of 1 to 32 bytes" in answer.note
    assert probe(ours, "v", ["0.99"], filters_only=True).is_absent


def test_interval_filters_marked_in_an_unknown_way_are_refused(tmp_path: Path) -> None:
    """A reader that honours the mark queries the filter for bytes that are unknown here."""
    from sbbf_tool.parquet.idl.ttypes import KeyValue

    path = annotated(
        tmp_path / "f.parquet", edits.INTERVAL, pa.binary(12), [bytes(12)], filters=False
    )

    def mark(metadata: Any) -> None:
        metadata.key_value_metadata = [
            KeyValue(key="duckdb.interval_bloom_filter", value="normalized-v2")
        ]

    edits.edit_footer(path, mark)
    with pytest.raises(RefusedError, match="marks its INTERVAL filters as 'normalized-v2'"):
        add_filters(path, ["v"], output=tmp_path / "ours.parquet")


@pytest.mark.engines
def test_null_arrays_of_duckdb(tmp_path: Path) -> None:
    """DuckDB 2.0 gives a null ARRAY as many entries as others have, and pyarrow takes that for a
    broken file. PLAIN pages need no decoder; a column with other pages gets no filter.
    """
    duckdb = pytest.importorskip("duckdb")
    path, ours = tmp_path / "f.parquet", tmp_path / "ours.parquet"
    query = (
        "COPY (SELECT CASE WHEN n % 3 = 0 THEN array_value(n, -1) END AS v FROM "
        f"range(9) t(n)) TO '{path}'"
    )
    duckdb.sql(f"{query} (FORMAT parquet, DICTIONARY_SIZE_LIMIT 1)")

    add_filters(path, ["v"], output=ours)
    assert [value.is_absent for value in probe(ours, "v", [-1, 0, 3, 6, 12345]).values] == [
        False
    ] * 4 + [True]
    assert duckdb.sql(f"FROM '{ours}'").fetchall() == duckdb.sql(f"FROM '{path}'").fetchall()

    duckdb.sql(f"{query} (FORMAT parquet, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1)")
    with pytest.raises(UnreadableError, match="pyarrow cannot decode the pages"):
        add_filters(path, ["v"], output=tmp_path / "none.parquet")
    assert not (tmp_path / "none.parquet").exists()
