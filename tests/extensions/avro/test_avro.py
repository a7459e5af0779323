"""Avro: schemas, values and files, in both directions, and what is done to broken ones."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.avro import file as avro_file
from sbbf_tool.extensions.avro.file import AvroHeader, build_file, iter_values, parse_header, unpack
from sbbf_tool.extensions.avro.schema import Encoding, open_values, parse_schema
from support.tables import each

SYNC = bytes(range(16))
TREE = {
    "type": "record",
    "name": "r",
    "namespace": "a.b",
    "fields": [
        {"name": "n", "type": "null"},
        {"name": "b", "type": "boolean"},
        {"name": "i", "type": "int"},
        {"name": "l", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "y", "type": "bytes"},
        {"name": "s", "type": "string"},
        {"name": "x", "type": {"type": "fixed", "name": "four", "size": 4}},
        {"name": "x2", "type": "four"},
        {"name": "e", "type": {"type": "enum", "name": "letter", "symbols": ["A", "B"]}},
        {"name": "a", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "m", "type": {"type": "map", "values": "a.b.letter"}},
        {
            "name": "u",
            "type": [
                "null",
                {"type": "record", "name": "inner", "fields": [{"name": "k", "type": "long"}]},
            ],
            "default": None,
        },
    ],
}
SCHEMA = parse_schema(json.dumps(TREE))
single = st.floats(width=32, allow_nan=False)
letters = st.sampled_from(["A", "B"])
VALUES = st.fixed_dictionaries(
    {
        "n": st.none(),
        "b": st.booleans(),
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.integers(-(2**63), 2**63 - 1),
        "f": single,
        "d": st.floats(allow_nan=False),
        "y": st.binary(max_size=9),
        "s": st.text(max_size=9),
        "x": st.binary(min_size=4, max_size=4),
        "x2": st.binary(min_size=4, max_size=4),
        "e": letters,
        "a": st.lists(st.none() | st.text(max_size=3), max_size=4),
        "m": st.dictionaries(st.text(max_size=3), letters, max_size=3),
        "u": st.none() | st.fixed_dictionaries({"k": st.integers(-(2**63), 2**63 - 1)}),
    }
)


def header(codec: str = "null", schema: Any = TREE) -> AvroHeader:
    text = json.dumps(schema)
    return AvroHeader(text, parse_schema(text), codec, SYNC, 0)


def read(data: bytes, **how: bool) -> list[Any]:
    return list(iter_values(data, parse_header(data), **how))


def array(items: Any) -> Any:
    return {"type": "array", "items": items}


def record(**fields: Any) -> Any:
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": schema} for name, schema in fields.items()],
    }


def fixed(size: int) -> Any:
    return {"type": "fixed", "name": "f", "size": size}


def enum(*symbols: str) -> Any:
    return {"type": "enum", "name": "e", "symbols": symbols}


def build_datum(schema: Any, value: Any) -> bytes:
    return Encoding(parse_schema(json.dumps(schema))).build(value)


def build_long(number: int) -> bytes:
    return build_datum("long", number)


def read_datum(schema: Any, data: bytes, **how: bool) -> Any:
    return Encoding(parse_schema(json.dumps(schema))).read(open_values(data), **how)


@pytest.mark.slow
@given(st.lists(VALUES, max_size=5), st.sampled_from(sorted(avro_file.WRITABLE_CODECS)))
def test_a_file_comes_back(values: list[dict[str, Any]], codec: str) -> None:
    data = build_file(header(codec), values)
    assert read(data) == values
    assert parse_header(data).schema == SCHEMA
    assert parse_header(data).codec == codec


@each(
    "number, encoded",
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-64, "7f"),
        (64, "8001"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers(number: int, encoded: str) -> None:
    assert build_long(number).hex() == encoded
    assert read_datum("long", bytes.fromhex(encoded)) == number


@each("encoded", ["", "80", "ff" * 20])
def test_what_is_no_number_is_unreadable(encoded: str) -> None:
    with pytest.raises(UnreadableError):
        read_datum("long", bytes.fromhex(encoded))


def test_text_as_stored_bytes() -> None:
    schema = {"type": "map", "values": ["null", "string"]}
    data = build_datum(schema, {"é": "ü", "x": None})
    assert read_datum(schema, data, raw_strings=True) == {"é": "ü", "x": None}
    latin = build_long(1) + build_long(1) + b"k" + build_long(1) + build_long(1) + b"\xfc" + b"\0"
    assert (
        read_datum(schema, latin, raw_strings=True)["k"].encode("utf-8", "surrogateescape")
        == b"\xfc"
    )
    with pytest.raises(UnreadableError, match="UTF-8"):
        read_datum(schema, latin)


def test_blocks_with_a_negative_count_carry_their_size() -> None:
    data = build_long(-2) + build_long(2) + b"\2\4" + build_long(1) + b"\6" + b"\0"
    assert read_datum(array("long"), data) == [1, 2, 3]


@each("count", [10, 2**40, -(2**40), 2**63 - 1, 1 - 2**63])
@each("items", ["boolean", array("long"), record(k="boolean")])
def test_an_array_cannot_claim_more_than_there_is(items: Any, count: int) -> None:
    for schema in (array(items), {"type": "map", "values": items}):
        with pytest.raises(UnreadableError):
            read_datum(schema, build_long(count) + b"\0\0")


NOTHING = [
    "null",
    {"type": "null", "logicalType": "date"},
    fixed(0),
    record(),
    record(a="null", b=record(c=fixed(0))),
]


@each("items", NOTHING)
def test_an_array_of_items_without_bytes_is_unreadable(items: Any) -> None:
    """Ten bytes could say that there are 2^62 of them."""
    for schema in (array(items), record(x=["null", array(items)])):
        with pytest.raises(UnreadableError, match="items take no bytes"):
            read_datum(schema, b"\2" + build_long(2**62) + b"\0")
    assert len(read_datum(array(["null", items]), b"\4\0\0\0")) == 2


def test_a_block_of_nulls_has_no_more_of_them_than_bytes() -> None:
    null = {"type": "record", "name": "r", "fields": []}
    data = build_file(header(schema=null), []) + build_long(2**40) + build_long(0) + SYNC
    with pytest.raises(UnreadableError, match="values, but has 0 bytes"):
        read(data)


def test_the_items_of_a_value_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sbbf_tool.extensions.avro.schema.MAX_ITEMS", 100)
    encoding = Encoding(parse_schema(json.dumps(array("boolean"))))
    stream = open_values(
        (build_long(60) + bytes(60) + b"\0") * 2 + build_long(120) + bytes(120) + b"\0"
    )
    assert len(encoding.read(stream)) == len(encoding.read(stream)) == 60
    with pytest.raises(UnreadableError, match="more than 100 items"):
        encoding.read(stream)


HOSTILE = {
    "a negative length of bytes": ("bytes", build_long(-1) + b"abc"),
    "a negative length of text": ("string", build_long(-4) + b"abc"),
    "a length beyond the block": ("bytes", build_long(2**62) + b"abc"),
    "a fixed that is cut off": (fixed(10), b"abc"),
    "a fixed of any size": (fixed(2**70), b"abc"),
    "a double that is cut off": ("double", b"abc"),
    "a float that is cut off": ("float", b"abc"),
    "a boolean that is not there": ("boolean", b""),
    "a symbol that is not there": (enum("A", "B"), b"\4"),
    "a branch that is not there": (["null", "long"], b"\4"),
    "no symbols": (enum(), b"\0"),
}


@each("schema, data", HOSTILE)
def test_hostile_values_are_unreadable_in_one_line(schema: Any, data: bytes) -> None:
    for inside in (schema, array(schema), record(x=schema)):
        with pytest.raises(UnreadableError) as caught:
            read_datum(inside, (b"\2" if inside == array(schema) else b"") + data)
        assert "\n" not in str(caught.value)


def test_named_types_that_double_are_no_schema_of_values() -> None:
    """Sixty types, each of two of the one before it, would be 2^60 values of no byte."""
    fields: list[dict[str, Any]] = [
        {"name": "f0", "type": {"type": "record", "name": "r0", "fields": []}}
    ]
    for n in range(1, 60):
        both = [{"name": name, "type": f"r{n - 1}"} for name in "ab"]
        fields.append(
            {"name": f"f{n}", "type": {"type": "record", "name": f"r{n}", "fields": both}}
        )
    schema = {"type": "record", "name": "r", "fields": fields}
    with pytest.raises(UnreadableError, match="too large"):
        read_datum(schema, b"")


@each(
    "text",
    [
        "",
        "3",
        '"strange"',
        '{"type": "record", "name": "r"}',
        '{"type": "record", "name": "r", "fields": [{"type": "int"}]}',
        '{"type": "record", "name": "r", "fields": [{"name": "x", "type": "r"}]}',
        '{"type": "fixed", "name": "f", "size": -1}',
        '{"type": 3}',
        "[" * 100_000,
        '{"type":"array","items":' * 200 + '"int"' + "}" * 200,
        json.dumps(["int"] * 200_000),
    ],
)
def test_what_is_no_schema_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableError):
        parse_schema(text)


@each("value", [{}, {"k": "x"}, {"k": 2**63}, {"k": 1, "more": 1}, 3, {"k": True}])
def test_a_value_of_another_schema_is_refused(value: object) -> None:
    with pytest.raises(UsageError):
        build_datum(record(k="long"), value)


def snappy(block: bytes) -> bytes:
    return pa.Codec("snappy").compress(block, asbytes=True) + zlib.crc32(block).to_bytes(4, "big")


def packed(codec: str, block: bytes) -> bytes:
    import bz2
    import lzma

    return {"snappy": snappy, "bzip2": bz2.compress, "xz": lzma.compress}.get(
        codec, lambda data: avro_file.pack(data, codec)
    )(block)


CODECS = ("null", "deflate", "zstandard", "snappy", "bzip2", "xz")


@each("codec", CODECS[1:])
def test_a_block_that_unpacks_to_too_much_is_unreadable(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(avro_file, "MAX_BLOCK", 1000)
    assert len(unpack(packed(codec, bytes(1000)), codec)) == 1000
    with pytest.raises(UnreadableError):
        unpack(packed(codec, bytes(1001)), codec)


@each("codec", CODECS)
def test_the_blocks_together_are_bounded(codec: str) -> None:
    """Many blocks of the same bytes: each is below the limit of a block."""
    header = AvroHeader('"long"', "long", codec, bytes(16), 0)
    block = packed(codec, bytes(1000))
    number = avro_file.Encoding("long")
    data = 3 * (number.build(1000) + number.build(len(block)) + block + header.sync)
    assert list(iter_values(data, header, limit=3000)) == [0] * 3000
    with pytest.raises(UnreadableError, match="more than 2,999 bytes"):
        list(iter_values(data, header, limit=2999))


@each("codec", CODECS[1:])
def test_a_broken_block_is_unreadable(codec: str) -> None:
    block = packed(codec, bytes(range(256)) * 4)
    for damaged_block in (block[: len(block) // 2], b"\xff" + block[1:], b"\xff" * 20):
        with pytest.raises(UnreadableError):
            unpack(damaged_block, codec)


def test_a_snappy_block_states_its_size() -> None:
    for block, message in (
        (b"\xff" * 20, "a varint has more than ten bytes"),
        (b"\x80" * 15, "a varint has more than ten bytes"),
        (b"\x80" * 5 + bytes(10), "cannot be decompressed"),
        (b"", "has 0 bytes and states 0"),
        (b"\0" * 4, "has 4 bytes and states 0"),
    ):
        with pytest.raises(UnreadableError, match=message):
            unpack(block, "snappy")


def block_of(count: int, size: int, block: bytes) -> bytes:
    return build_long(count) + build_long(size) + block + SYNC


@each("count, block", [(0, b""), (1, b"\2"), (3, b"\2\4\6")])
def test_a_block_may_have_as_many_values_as_bytes_or_none(count: int, block: bytes) -> None:
    data = build_file(header("null", "long"), []) + block_of(count, len(block), block)
    assert read(data) == [1, 2, 3][:count]


@each(
    "block, message",
    [
        (block_of(1, 3, b"\2"), "the block states 3 bytes, but 17 remain"),
        (block_of(1, -1, b"\2"), "the block states -1 bytes"),
        (block_of(2, 1, b"\2"), "the block states 2 values, but has 1 bytes"),
        (block_of(-1, 1, b"\2"), "the block states -1 values"),
        (block_of(1, 2, b"\2\4"), "1 bytes remain after the last value"),
        (block_of(0, 1, b"\2"), "1 bytes remain after the last value"),
        (block_of(1, 1, b"\2")[:-1] + b"!", "does not end with the sync marker"),
    ],
)
def test_blocks_that_contradict_themselves_are_unreadable(block: bytes, message: str) -> None:
    with pytest.raises(UnreadableError, match=message):
        read(build_file(header("null", "long"), []) + block)


def broken_files() -> list[bytes]:
    good = build_file(header("deflate"), [])
    block = build_long(1) + build_long(0) + SYNC
    many = build_long(10**9) + build_long(1) + b"\0" + SYNC
    return [
        b"",
        b"Obj",
        b"Obj\1",
        good[:-1],
        good + b"\1",
        good + block,
        good + many,
        good.replace(b"avro.schema", b"avro.schemb"),
    ]


@each("data", broken_files())
def test_broken_files_are_unreadable(data: bytes) -> None:
    with pytest.raises(UnreadableError):
        read(data)


VALUE = {
    "n": None, "b": True, "i": 1, "l": -1, "f": 0.5, "d": 0.25, "y": b"abc", "s": "text",
    "x": b"1234", "x2": b"5678", "e": "A",
    "a": ["x", None], "m": {"k": "B"}, "u": {"k": 7},
}  # fmt: skip


def sample(codec: str) -> bytes:
    return build_file(header(codec), [VALUE] * 3)


@each("codec", ["null", "deflate", "zstandard"])
def test_every_truncation_of_a_file_is_unreadable(codec: str) -> None:
    data = sample(codec)
    header_end = parse_header(data).blocks_at
    for end in range(len(data)):
        if end == header_end:
            continue  # a file without a block is a file without values
        with pytest.raises(UnreadableError):
            read(data[:end])
