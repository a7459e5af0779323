"""The reader of the generated classes in plain Python: it says what thrift's C extension says,
whichever of the two is installed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated, TCompactProtocolFactory
from thrift.transport.TTransport import TMemoryBuffer

from parquet import made_footers, wire
from sbbf_tool.errors import UnreadableError
from sbbf_tool.parquet import structs
from sbbf_tool.parquet.idl import ttypes
from sbbf_tool.parquet.idl.ttypes import FileMetaData, SchemaElement, Statistics
from sbbf_tool.parquet.structs import build_struct, describe, parse_prefix
from support.damage import damage
from support.tables import each

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXTENSION = pytest.mark.skipif(
    TCompactProtocolAccelerated(TMemoryBuffer(b""))._fast_decode is None,
    reason="the installed thrift has no C extension to compare with",
)


def footer_of(path: Path) -> bytes:
    data = path.read_bytes()
    length = int.from_bytes(data[-8:-4], "little")
    return data[-8 - length : -8]


FOOTERS = [footer_of(path) for path in sorted(FIXTURES.glob("*.parquet"))]


def by_extension(cls: Any, data: bytes) -> tuple[Any, int] | None:
    """What the C extension reads, within the bounds that the package sets; None where it
    refuses."""
    transport = TMemoryBuffer(data)
    protocol = TCompactProtocolAccelerated(
        transport, string_length_limit=len(data), container_length_limit=len(data), fallback=False
    )
    struct = cls()
    try:
        struct.read(protocol)
    except Exception:
        return None
    return struct, transport.cstringio_buf.tell()


def by_python(cls: Any, data: bytes) -> tuple[Any, int] | None:
    struct = cls()
    try:
        end = structs.read(struct, data)
    except UnreadableError:
        return None
    return struct, end


def assert_same(cls: Any, data: bytes) -> bool:
    """What the extension reads, Python reads too; that it refuses what the extension refuses is not
    needed, for then Python decides."""
    fast = by_extension(cls, data)
    if fast is None:
        return False
    slow = by_python(cls, data)
    assert slow is not None
    assert repr(slow) == repr(fast)  # a NaN is a NaN
    return True


@EXTENSION
@each("raw", FOOTERS)
def test_footers_of_real_files(raw):
    assert assert_same(FileMetaData, raw)
    assert by_python(FileMetaData, raw) == (by_python(FileMetaData, raw + b"more")[0], len(raw))
    metadata = parse_prefix(FileMetaData, raw)[0]
    transport = TMemoryBuffer()
    metadata.write(TCompactProtocolFactory().getProtocol(transport))
    assert build_struct(metadata) == transport.getvalue(), "written bytes depend on no extension"


@EXTENSION
def test_damaged_footers():
    seeds = range(20)
    read = refused = 0
    for number in seeds:
        for at, raw in enumerate(FOOTERS):
            if len(raw) > 20_000:
                continue
            try:
                is_read = assert_same(FileMetaData, damage(raw, random.Random(f"{number} {at}")))
            except BaseException as error:
                error.add_note(f"seed {number}, footer {at}")
                raise
            read += is_read
            refused += not is_read
    assert read > len(seeds)
    assert refused > len(seeds)


CLASSES = [
    cls for cls in vars(ttypes).values() if isinstance(cls, type) and hasattr(cls, "thrift_spec")
]


@EXTENSION
@settings(max_examples=150)
@given(
    st.sampled_from(CLASSES),
    st.lists(made_footers.random_fields(), max_size=5),
    st.binary(max_size=30),
    st.integers(0, 400),
)
def test_any_fields_for_any_class(cls, fields, more, end):
    data = wire.write(tuple(fields)) + more
    assert_same(cls, data)
    assert_same(cls, data[:end])
    assert_same(cls, more)


LEVELS = {
    "text that is not UTF-8": (
        SchemaElement,
        (wire.Field(4, wire.BINARY, wire.text(b"a\xff\xfe\xe2\x82b")),),
        True,
    ),
    "bytes": (Statistics, (wire.Field(5, wire.BINARY, wire.text(b"a\xff")),), True),
    "a list of another kind": (
        FileMetaData,
        (wire.Field(2, wire.LIST, wire.items(wire.I32, (wire.number(1),))),),
        False,
    ),
    "an empty list of another kind": (
        FileMetaData,
        (wire.Field(2, wire.LIST, wire.items(wire.I32, ())),),
        True,
    ),
    "a list longer than the bytes": (
        FileMetaData,
        (wire.Field(2, wire.LIST, b"\xfc" + wire.varint(2**31 - 1)),),
        False,
    ),
    "a field of another kind": (SchemaElement, (wire.Field(4, wire.I64, wire.number(5)),), True),
    "an i32 beyond its width": (
        SchemaElement,
        (wire.Field(7, wire.I32, b"\xff\xff\xff\xff\x7f"),),
        True,
    ),
    "an i32 in six bytes": (SchemaElement, (wire.Field(7, wire.I32, wire.varint(1, 5)),), False),
    "an i64 in ten bytes": (FileMetaData, (wire.Field(3, wire.I64, wire.varint(2**64 - 1)),), True),
    "a boolean": (
        Statistics,
        (wire.Field(7, wire.FALSE, b""), wire.Field(8, wire.TRUE, b"")),
        True,
    ),
    "a boolean where an integer is due": (Statistics, (wire.Field(3, wire.TRUE, b""),), True),
    "a field twice": (
        SchemaElement,
        (wire.Field(7, wire.I32, wire.number(1)), wire.Field(7, wire.I32, wire.number(2))),
        True,
    ),
    "a uuid": (
        SchemaElement,
        (wire.Field(99, wire.UUID, bytes(16)), wire.Field(4, wire.BINARY, wire.text("x"))),
        True,
    ),
}


@pytest.fixture(params=["as installed", "without the extension"])
def parse(request, monkeypatch) -> Iterator[Callable[[Any, bytes], tuple[Any, int]]]:
    """`parse_prefix`, also where thrift has no extension: its own Python code must not decide
    then."""
    if request.param == "as installed":
        yield parse_prefix
        return
    monkeypatch.setitem(
        sys.modules, "thrift.protocol.fastbinary", None
    )  # as Python marks what cannot be imported
    monkeypatch.delattr("thrift.protocol.fastbinary", raising=False)
    with ThreadPoolExecutor(1) as thread:  # the protocol is created once per thread
        assert (
            thread.submit(describe)
            .result()
            .endswith("without its C extension, so that large footers take longer")
        )
        yield lambda cls, data: thread.submit(parse_prefix, cls, data).result()


@each("cls, fields, is_read", LEVELS)
def test_where_implementations_differ(parse, cls, fields, is_read):
    data = wire.write(fields)
    assert (by_python(cls, data) is not None) == is_read
    if is_read:
        assert repr(parse(cls, data)) == repr(by_python(cls, data))
    else:
        with pytest.raises(UnreadableError, match=f"^not a readable {cls.__name__} \\("):
            parse(cls, data)
