"""The modules of `site/src`, run by Node: hashes, filters, headers and values are those of sbbf."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xxhash

from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.filters import build_header, parse_header
from sbbf_tool.parquet.literals import CANNOT_SAY, parse
from sbbf_tool.parquet.type_names import column_of_type

pytestmark = pytest.mark.slow

SITE = Path(__file__).parents[2] / "site" / "src"
PROGRAM = Path(__file__).parent / "run_modules.mjs"

Call = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def call() -> Call:
    """`call(hashes=..., headers=..., filters=..., values=...)`: what the modules return for each."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed")

    def run(**request: Any) -> dict[str, Any]:
        text = json.dumps({"site": SITE.as_uri(), **request})
        done = subprocess.run([node, str(PROGRAM)], input=text, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        answers: dict[str, Any] = json.loads(done.stdout)
        return answers

    return run


def test_published_hashes(call: Call) -> None:
    """Vectors of the xxHash specification's repository and of Python's xxhash."""
    answers = call(hashes=["", b"a".hex(), b"abc".hex(), b"Nobody inspects the spammish repetition".hex()])
    assert answers["hashes"] == ["ef46db3751d8e999", "d24ec4f1a98c6e5b", "44bc2cf5ad770999", "fbcea83c8a378bf1"]


def test_hashes_of_every_length(call: Call) -> None:
    chance = random.Random(20261124)
    values = [chance.randbytes(length) for length in range(150)]
    assert call(hashes=[value.hex() for value in values])["hashes"] == [xxhash.xxh64_hexdigest(value) for value in values]


def test_filters_answer_and_measure_as_those_of_sbbf(call: Call) -> None:
    chance = random.Random(20261124)
    requests, expected = [], []
    for num_bytes, values in ((32, 0), (32, 3), (96, 20), (1000, 90), (4096, 300), (65536, 9000), (128, 5000)):
        bloom = BloomFilter.empty(num_bytes)
        stored = [chance.getrandbits(64) for _ in range(values)]
        for h in stored:
            bloom.insert_hash(h)
        query_hashes = [*stored[:50], *(chance.getrandbits(64) for _ in range(200))]
        requests.append({"bitset": bytes(bloom.bitset).hex(), "hashes": [f"{h:016x}" for h in query_hashes]})
        expected.append((bloom.fill_ratio, bloom.fpp, [bloom.check_hash(h) for h in query_hashes]))
    answers = call(filters=requests)["filters"]
    assert [(answer["fillRatio"], answer["estimatedFpp"], answer["holds"]) for answer in answers] == expected


HEADERS = {
    "today": build_header(1024),
    "128 MiB": build_header(128 << 20),
    "field of a later version": build_header(64)[:-1] + b"\x16\x02\x00",
    "long field headers": bytes.fromhex("0502 80 01".replace(" ", "")) + bytes.fromhex("1c1c00001c1c00001c1c000000"),
    "varint of three bytes": b"\x15\x80\x81\x00" + build_header(64)[-13:],
    "no compression": build_header(64)[:-5] + b"\x00",
    "another algorithm": build_header(64).replace(b"\x1c\x1c\x00\x00", b"\x1c\x2c\x00\x00", 1),
    "another hash": build_header(64)[:-9] + b"\x1c\x2c\x00\x00\x1c\x1c\x00\x00\x00",
    "another compression": build_header(64)[:-5] + b"\x1c\x2c\x00\x00\x00",
    "no algorithm": b"\x15\x80\x01\x00",
    "empty unions": b"\x15\x80\x01\x1c\x00\x1c\x00\x1c\x00\x00",
    "draft of 12 bytes": struct.pack("<3I", 1024, 0, 0),
    "draft of 16 bytes": struct.pack("<4I", 1024, 0, 0, 0),
    "31 bytes": build_header(31),
    "no bytes": build_header(0),
    "negative": b"\x15\x3f" + build_header(64)[-13:],
    "2^31 - 1 bytes": build_header(2**31 - 1),
    "zeros": bytes(64),
    "ones": b"\xff" * 64,
    "cut": build_header(64)[:7],
    "text": b"PAR1 is no header, and neither is this text, which goes on.....",
}


@pytest.mark.parametrize("name", HEADERS)
def test_headers_are_usable_if_sbbf_uses_them(call: Call, name: str) -> None:
    data = HEADERS[name].ljust(64, b"\xaa") if name not in ("cut",) else HEADERS[name]
    (answer,) = call(headers=[data.hex()])["headers"]
    try:
        header = parse_header(data)
    except UnreadableError:
        assert "unreadable" in answer or answer["reason"], answer
        return
    assert bool(answer.get("reason") or answer.get("unreadable")) == (header.unsupported_reason is not None), answer
    if header.unsupported_reason is None:
        assert (answer["length"], answer["numBytes"]) == (header.length, header.num_bytes)


def test_headers_with_any_byte_changed_are_never_used_unless_sbbf_uses_them(call: Call) -> None:
    chance = random.Random(20261124)
    headers = []
    for _ in range(3000):
        data = bytearray(build_header(chance.choice([32, 64, 1000, 4096, 1 << 20])).ljust(64, b"\x00"))
        for _ in range(chance.choice([1, 2, 4])):
            data[chance.randrange(20)] = chance.choice([0, 0x15, 0x1C, 0x2C, 0xFF, chance.randrange(256)])
        headers.append(bytes(data))
    wrong = []
    for data, answer in zip(headers, call(headers=[data.hex() for data in headers])["headers"], strict=True):
        try:
            header = parse_header(data)
        except UnreadableError:
            header = None
        is_used = not answer.get("reason") and not answer.get("unreadable")
        if is_used and (
            header is None or header.unsupported_reason or (answer["length"], answer["numBytes"]) != (header.length, header.num_bytes)
        ):
            wrong.append((data.hex(), answer, header))
    assert wrong == []


TYPES = [
    "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY(4)", "BOOLEAN",
    "INT32 INT(8,signed)", "INT32 INT(16,unsigned)", "INT32 INT(32,unsigned)", "INT64 INT(64,unsigned)", "INT64 INT(64,signed)",
    "INT32 DECIMAL(9,2)", "INT64 DECIMAL(18,0)", "FIXED_LEN_BYTE_ARRAY(5) DECIMAL(11,3)", "FIXED_LEN_BYTE_ARRAY(16) DECIMAL(38,38)",
    "BYTE_ARRAY DECIMAL(20,4)", "BYTE_ARRAY DECIMAL(100,0)", "FIXED_LEN_BYTE_ARRAY(2) FLOAT16", "INT32 DATE", "INT32 TIME(MILLIS,UTC)",
    "INT64 TIME(MICROS,local)", "INT64 TIME(NANOS,UTC)", "INT64 TIMESTAMP(MILLIS,UTC)", "INT64 TIMESTAMP(MICROS,local)",
    "INT64 TIMESTAMP(NANOS,UTC)", "FIXED_LEN_BYTE_ARRAY(12) INTERVAL", "BYTE_ARRAY STRING", "BYTE_ARRAY ENUM", "BYTE_ARRAY JSON",
    "BYTE_ARRAY BSON", "BYTE_ARRAY GEOMETRY", "FIXED_LEN_BYTE_ARRAY(16) UUID", "INT64 DATE", "FIXED_LEN_BYTE_ARRAY(4) STRING",
]  # fmt: skip
TEXTS = [
    "", " ", "0", "-0", "+0", "1", "+1", "-1", "007", "--1", "+-1", "1_000", "1e3", "1E-3", "1e400", "-1e400", "1.", ".5", ".", "e1",
    " 12.50 ", "12.345", "-12.3", "99999999", "9999999.99", "10000000.00", "0.000", "1e-2000", "1e2001", "0e99999", "127", "128", "-128",
    "-129", "255", "256", "32767", "65535", "65536", "2147483647", "2147483648", "-2147483648", "4294967295", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551615", "123456789012345678901234567890", "0.1", "-0.1", "0.30000001",
    "16777217", "33554435", "65504", "65519.99", "65520", "6e-8", "5.9604644775390625e-08", "2.9802322387695312e-08", "3e-8",
    "0.00006103515625", "1.00048828125", "inf", "-Infinity", "+INF", "nan", "-NaN", "NULL", "null", "true", "0x", "0X00", "0x2a",
    "0x2A000000", "0x0000000000000000", "0x00000080", "0x0000c07f", "0xff", "0x7fff", "0x0080", "0x00fe", "0xzz", "0x123",
    "0x00000000000000000000000000000000", "0xffffffffffffffff", "0x000000000000000000000000", "0x0000000000000000883d2500",
    "0xffffffffffffffff8c3d2500", "0x010000001f00000000cc2b0a", "0xdeadbeef", "1970-01-01", "1969-12-31", "2026-11-21", "2026-02-29",
    "2024-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "-0001-12-31", "+12345-06-07", "-5877641-06-23", "5881580-07-11",
    "2026-13-01", "2026-1-1", "13:45", "13:45:00", "13:45:00.123", "13:45:00,123456", "13:45:00.1234567", "13:45:00.123456789",
    "13:45:00.1234567891", "13:45:00Z", "13:45+02:00", "24:00:00", "24:00:01", "23:60", "00:00:00.000", "2026-11-21T13:45:00.123Z",
    "2026-11-21 13:45", "2026-11-21T13:45:00.123+02:00", "2026-11-21t13:45:00.123456-0330", "1969-12-31T23:59:59.999",
    "1969-12-31T23:59:59.9999999Z", "1677-09-21T00:12:43.145224192Z", "1677-09-21T00:12:43.145224191Z", "2262-04-11T23:47:16.854775807Z",
    "9999-12-31T23:59:59.999999999", "2026-11-21T13:45:00+24:00", "2026-11-21T13:45:00+01:02:03", "P1M2DT3.004S", "P1Y2M3W4DT5H6M7.891S",
    "PT24H", "P30D", "P31DT25H", "PT0.0001S", "P", "PT", "P1M2DT3.0040S", "P4294967295M", "P4294967296M", "P2147483648MT0S",
    "123e4567-e89b-12d3-a456-426614174000", "{123E4567E89B12D3A456426614174000}", "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
    "123e4567", "é", "日本語", "\U0001f600", "abcd", "äö",
]  # fmt: skip


def describe(column: Column) -> dict[str, Any]:
    logical = column.logical
    kinds = {"bits", "signed", "unit", "utc", "precision", "scale"}
    return {
        "physical": column.physical,
        "typeLength": column.type_length,
        "logical": logical and {"kind": logical.kind, **{name: getattr(logical, name) for name in kinds}},
        "doubt": None,
    }


def columns() -> list[Column]:
    return [column_of_type(name) for name in TYPES]


@pytest.mark.parametrize("column", columns(), ids=lambda column: column.type_name)
def test_values_have_the_forms_that_sbbf_queries(call: Call, column: Column) -> None:
    chance = random.Random(column.type_name)
    numbers = [repr(chance.choice([1, -1]) * chance.random() * 10 ** chance.randrange(-9, 9)) for _ in range(100)]
    numbers += [str(chance.randrange(-(2**63), 2**63) >> chance.randrange(64)) for _ in range(50)]
    texts = [*TEXTS, *numbers]
    writer = {"createdBy": "parquet-cpp-arrow version 26.0.1", "keys": {}}
    answers = call(values=[{"column": describe(column), "text": text, "writer": writer} for text in texts])["values"]

    different = []
    for text, answer in zip(texts, answers, strict=True):
        try:
            literal = parse(column, text)
            expected = {"forms": sorted({form.hex() for form in literal.forms}) if not literal.verdict else [], "verdict": literal.verdict}
        except UsageError:
            expected = {"error": True}
        mine = {"error": True} if "error" in answer else {"forms": answer["forms"], "verdict": answer["verdict"]}
        if mine != expected:
            different.append((text, mine, expected))
    assert different == []
    assert {answer["type"] for answer in answers if "type" in answer} <= {column.type_name}
    assert any(answer.get("forms") for answer in answers) or column.physical == "BOOLEAN"


def test_line_breaks_are_never_absent(call: Call) -> None:
    """A form has one character for each line break, whatever the user pasted."""
    column = describe(column_of_type("STRING"))
    (answer,) = call(values=[{"column": column, "text": "a\nb", "writer": {"createdBy": "", "keys": {}}}])["values"]
    assert answer["verdict"] == CANNOT_SAY


@pytest.mark.parametrize(
    ("name", "created_by", "keys", "is_certain"),
    [
        ("INT96", "parquet-cpp-arrow version 20.0.0", {}, True),
        ("INT96", "parquet-mr version 1.12.0 (build x)", {"org.apache.spark.version": "3.5.0"}, True),
        ("INT96", "parquet-mr version 1.12.0 (build x)", {}, False),
        ("INT96", "", {}, False),
        ("INTERVAL", "parquet-cpp-arrow version 20.0.0", {}, True),
        ("INTERVAL", "DuckDB version v1.4.0 (build x)", {}, False),
        ("INTERVAL", "DuckDB version v2.0.0 (build x)", {"duckdb.interval_bloom_filter": "normalized-v1"}, True),
        ("INTERVAL", "parquet-rs", {"duckdb.interval_bloom_filter": "normalized-v2"}, False),
        ("BYTE_ARRAY DECIMAL(9,2)", "parquet-cpp-arrow version 20.0.0", {}, False),
        ("INT32 DECIMAL(9,2)", "", {}, True),
    ],
)
def test_absence_is_certain_only_if_all_stored_forms_are_known(
    call: Call, name: str, created_by: str, keys: dict[str, str], is_certain: bool
) -> None:
    text = {"INT96": "1969-01-01T10:00", "INTERVAL": "P1D"}.get(name, "1.5")
    request = {"column": describe(column_of_type(name)), "text": text, "writer": {"createdBy": created_by, "keys": keys}}
    (answer,) = call(values=[request])["values"]
    assert answer["forms"] != []
    assert (answer["doubt"] is None) == is_certain
