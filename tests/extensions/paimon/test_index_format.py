"""The bytes of an index: the container, the filter, what is hashed of each type, and values written
as text."""

from __future__ import annotations

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.errors import UnreadableError, UsageError
from sbbf_tool.extensions.paimon import bloom64_spec as spec
from sbbf_tool.extensions.paimon import index_container
from sbbf_tool.extensions.paimon.bloom64 import (
    MAX_PROBES,
    BloomFilter64,
    build_bloom64,
    parse_bloom64,
)
from sbbf_tool.extensions.paimon.bloom64_spec import compute_sizing, wang_hash
from sbbf_tool.extensions.paimon.fast_hash import double_keys, float_keys, hash_bytes, hash_longs
from sbbf_tool.extensions.paimon.index_container import build_container, parse_container
from sbbf_tool.extensions.paimon.table_schema import parse_type_text
from sbbf_tool.extensions.paimon.verbs.probe import parse_literal
from support.tables import each

bodies = st.none() | st.binary(max_size=20)

contents = st.dictionaries(
    st.text(max_size=8), st.dictionaries(st.text(max_size=8), bodies, max_size=3), max_size=4
)

SAMPLE = build_container(
    {
        "é": {"bloom-filter": b"\0\0\0\1\7", "bitmap": b"xyz"},
        "m[\U0001f600]": {"bloom-filter": None},
        "": {},
    }
)


@given(contents)
def test_containers_round_trip(indexes: dict[str, dict[str, bytes | None]]) -> None:
    container = parse_container(build_container(indexes))
    assert container.bodies == indexes
    for column, kinds in indexes.items():
        for kind, body in kinds.items():
            entry = container.indexes[column][kind]
            assert (entry.empty, container.body_of(entry)) == (body is None, body or b"")


def test_the_bytes_of_a_container() -> None:
    expected = (
        bytes.fromhex("00054e4ed01a35ae") + struct.pack(">iii", 1, 53,
            1) + b"\0\1c" + struct.pack(">i", 1)
        + b"\0\x0cbloom-filter" + struct.pack(">ii", 53, 5) + struct.pack(">i", 0) + b"\0\0\0\1\7"
    )  # fmt: skip
    assert build_container({"c": {"bloom-filter": b"\0\0\0\1\7"}}) == expected
    assert len(build_container({})) == 24


def test_a_column_named_twice_adds_up_and_the_last_of_a_kind_counts() -> None:
    """Beside the directory, the head has redundant bytes, which are ignored."""
    entries = [
        b"\0\1" + kind + struct.pack(">ii", at, 1)
        for kind, at in ((b"a", 81), (b"b", 82), (b"b", 83))
    ]
    column = (
        b"\0\1c" + struct.pack(">i", 2) + b"".join(entries[:2]),
        b"\0\1c" + struct.pack(">i", 1) + entries[2],
    )
    head = b"".join(column) + struct.pack(">i", 10) + b"redundancy"
    container = parse_container(
        bytes.fromhex("00054e4ed01a35ae") + struct.pack(">iii", 1, 81, 2) + head + b"123"
    )
    assert container.bodies == {"c": {"a": b"1", "b": b"3"}}


PLAIN = build_container({"c": {"bloom-filter": b"\0\0\0\1\7"}})


def test_what_is_unreadable() -> None:
    data = SAMPLE
    for end in range(len(data)):
        with pytest.raises(UnreadableError) as caught:
            parse_container(data[:end])
        assert caught.value.place is not None
    for offset, value, message in (
        (0, 1, "magic"), (8, 2, "version"), (12, -1, "head"), (12, 10**6, "head"),
        (16, -1, "columns"), (16, 2**31 - 1, "columns"),
    ):  # fmt: skip
        damaged = bytearray(data)
        struct.pack_into(">i", damaged, offset, value)
        with pytest.raises(UnreadableError, match=message):
            parse_container(bytes(damaged))
    for start, length in (
        (-2, 0),
        (0, 1),
        (19, 1),
        (10**6, 1),
        (2**31 - 1, 2**31 - 1),
        (53, -1),
        (53, 6),
    ):
        damaged = bytearray(PLAIN)
        struct.pack_into(">ii", damaged, 53 - 12, start, length)
        with pytest.raises(UnreadableError):
            parse_container(bytes(damaged))


def test_a_container_has_at_most_the_bytes_of_a_java_array(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        build_container({"x" * 65536: {}})
    assert index_container._MAX_SIZE == 2_147_483_647
    size = len(build_container({"c": {"k": b"body"}}))
    monkeypatch.setattr(index_container, "_MAX_SIZE", size)
    assert len(build_container({"c": {"k": b"body"}})) == size
    with pytest.raises(UsageError, match=f"would have {size + 1} bytes; the limit is {size}"):
        build_container({"c": {"k": b"body+"}})


hashes64 = st.integers(0, 2**64 - 1)

awkward = st.sampled_from(
    [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 0x80000000_80000000]
)


def as_array(hashes: list[int]) -> np.ndarray:
    return np.array(hashes, np.uint64)


@given(
    st.lists(hashes64 | awkward, max_size=30),
    st.integers(1, 40),
    st.integers(0, 70),
    st.lists(hashes64 | awkward, max_size=30),
)
def test_the_fast_kernel_is_the_plain_one(
    inserted: list[int], size: int, k: int, queries: list[int]
) -> None:
    bits = bytearray(size)
    for value in inserted:
        spec.insert(bits, k, value)
    bloom = BloomFilter64(np.zeros(size, np.uint8), k)
    bloom.insert(as_array(inserted))
    assert bloom.bits.tobytes() == bytes(bits)
    assert bloom.contains(as_array(queries)).tolist() == [
        spec.contains(bits, k, value) for value in queries
    ]
    assert bloom.contains(as_array(inserted)).all()
    assert bloom.fill_ratio == sum(byte.bit_count() for byte in bits) / bloom.num_bits


def test_many_hashes_cross_chunks() -> None:
    rng = np.random.default_rng(7)
    inserted = rng.integers(0, 2**64, 200_000, np.uint64)
    bloom = BloomFilter64.for_items(200_000, 0.01)
    bloom.insert(inserted)
    assert bloom.contains(inserted).all()
    absent = bloom.contains(rng.integers(0, 2**64, 200_000, np.uint64)).mean()
    assert absent == pytest.approx(0.01, rel=0.2)
    assert bloom.estimate_fpp() == pytest.approx(0.01, rel=0.1)
    assert bloom.estimated_ndv == pytest.approx(200_000, rel=0.01)


def test_the_body_of_the_published_vector() -> None:
    """{"a", "b", ""} with k = 6 in 88 bits: fast_hash's and the filter's bytes as another
    implementation's tests have them."""
    bloom = BloomFilter64(np.zeros(11, np.uint8), 6)
    bloom.insert(hash_bytes([b"a", b"b", b""]))
    assert build_bloom64(bloom).hex() == "00000006" + "00202003d02000404910c9"


@given(st.binary(min_size=1, max_size=50), st.integers(0, 2**32 - 1))
def test_a_filter_comes_back_as_it_was(bits: bytes, k: int) -> None:
    body = k.to_bytes(4, "big") + bits
    bloom = parse_bloom64(body)
    assert (bloom.k, build_bloom64(bloom)) == (k, body)
    with pytest.raises(UnreadableError):
        parse_bloom64(body[: len(bits) % 5])


def test_paimon_reads_the_bytes_of_k_as_signed() -> None:
    probes = {
        0: 0, 1: 1, 127: 127, 128: 0, 133: 0, 255: 0, 256: 256, 257: 257, 383: 383, 384: 128,
        0x8001: 0, 0x10080: 65408,
    }  # fmt: skip
    assert {k: BloomFilter64(np.zeros(1, np.uint8), k).paimon_probes for k in probes} == probes


def test_a_huge_k_is_answered_in_bounded_time() -> None:
    bits = np.full(1 << 10, 255, np.uint8)
    full = BloomFilter64(bits, 2**32 - 1)
    assert full.contains(as_array([1, 2, 3])).all()
    bits[:512] = 0
    assert not full.contains(as_array([1, 2, 3])).any()
    with pytest.raises(UsageError):
        full.insert(as_array([1]))
    assert full.k > MAX_PROBES


@each(
    "items, fpp, sizing",
    [
        (1_000_000, 0.1, (4_792_536, 3)),
        (1, 0.5, (8, 6)),
        (0, 0.1, (8, 1)),  # a division by zero, rounded to a long and cut to an int
        (-1, 0.5, (8, 1)),
        (100, 1.0, (8, 1)),
        (100, -1.0, (8, 1)),  # NaN
        (100, float("nan"), (8, 1)),
        (1, 5e-324, (1552, 1076)),
    ],
)
def test_sizing_where_java_arithmetic_shows(
    items: int, fpp: float, sizing: tuple[int, int]
) -> None:
    assert compute_sizing(items, fpp) == sizing
    for too_many, rate in ((100_000_000, 1e-6), (1, 0.0), (100, 1.5), (2**63, 0.1), (2**31, 0.1)):
        with pytest.raises(UsageError):
            compute_sizing(too_many, rate)


longs = st.integers(-(2**63), 2**63 - 1)


@each(
    "value, expected",
    [
        (0, 0),
        (1, 0x5BCA7C69B794F8CE),
        (-1, 0x5BCA868437950D03),
        (10, 0x95EA2955ABD45275),
        (-(2**63), 0x3BE7D0F7780DE548),
    ],
)
def test_published_integers(value: int, expected: int) -> None:
    assert wang_hash(value) == expected
    assert hash_longs(np.array([value], np.int64)).tolist() == [expected]


@given(st.lists(longs, max_size=50))
def test_many_integers_hash_as_one_by_one(values: list[int]) -> None:
    assert hash_longs(np.array(values, np.int64)).tolist() == [wang_hash(value) for value in values]


def test_every_nan_is_the_canonical_one_and_zeros_differ() -> None:
    singles = np.array(
        [0x7FC00000, 0xFFC12345, 0x7F800001, 0, 0x80000000, 0x3F800000], np.uint32
    ).view(np.float32)
    assert float_keys(singles).tolist() == [0x7FC00000] * 3 + [0, -0x80000000, 0x3F800000]
    doubles = np.array([0x7FF8000000000000, 0xFFF8000012345678, 0, 1 << 63], np.uint64).view(
        np.float64
    )
    assert double_keys(doubles).tolist() == [0x7FF8000000000000] * 2 + [0, -(2**63)]


@each(
    "data_type, text, key",
    [
        ("STRING", "", b""),
        ("BYTES", "0x", b""),
        ("BINARY(2)", "0xFf00", b"\xff\0"),
        ("INT", "+7", 7),
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("FLOAT", "1", 0x3F800000),
        ("FLOAT", "NaN", 0x7FC00000),
        ("FLOAT", "-Infinity", 0xFF800000 - 2**32),
        ("FLOAT", "1e-50", 0),
        ("FLOAT", "1.00000017881393432617187499", 0x3F800001),  # rounded twice it would be ...002
        ("DOUBLE", "0.1", 0x3FB999999999999A),
        ("DOUBLE", "-nan", 0x7FF8000000000000),
        ("DATE", "-0001-03-01", -719528 - 306),
        ("DATE", "+10000-01-01", 2932897),
        ("TIME(0)", "00:00:01.999999999", 1999),
        ("TIMESTAMP(3)", "1970-01-01T00:00:00.0019", 1),
        ("TIMESTAMP(3)", "1969-12-31 23:59:59.9999", -1),
        ("TIMESTAMP(6)", "1969-12-31T23:59:59.999999999", -1),
        ("TIMESTAMP(9)", "1970-01-01T00:00:00.000001999Z", 1),
        ("TIMESTAMP(0)", "1970-01-02", 86_400_000),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "1970-01-01T01:00:00+01:00", 0),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", "1970-01-01T01:00:00-0130", 9_000_000),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "1970-01-01T00:00:01", 1_000_000),
    ],
)
def test_values(data_type: str, text: str, key: bytes | int) -> None:
    assert parse_literal(text, parse_type_text(data_type)).key == key


@each(
    "data_type, text",
    [
        ("STRING", "\ud800"),
        ("BYTES", "0xf"),
        ("TINYINT", "128"),
        ("INT", "1.0"),
        ("INT", "٣"),
        ("FLOAT", "1e39"),
        ("DOUBLE", "1_0"),
        ("DATE", "2023-02-29"),
        ("TIME(3)", "24:00"),
        ("TIMESTAMP(3)", "2023-01-01T00:00:00+01:00"),
        ("TIMESTAMP(6)", "+999999999-01-01"),
        ("BOOLEAN", "true"),
    ],
)
def test_what_is_no_value_is_refused(data_type: str, text: str) -> None:
    with pytest.raises(UsageError):
        parse_literal(text, parse_type_text(data_type))


@given(st.integers(0x00800000, 0x7F000000), st.integers(-3, 3))
def test_a_float_is_the_nearest_to_its_decimal(bits: int, off: int) -> None:
    """Decimals around the middle between two floats, to more digits than a double has."""
    low, high = np.array([bits, bits + 1], np.uint32).view(np.float32)
    middle = (Fraction(float(low)) + Fraction(float(high))) / 2
    nudged = middle + off * middle / 10**30
    scale = 10**60
    text = f"{nudged.numerator * scale // nudged.denominator}e-60"
    if abs(nudged) < Fraction(1, 10**25):
        return  # sixty decimal places do not distinguish such numbers
    exact = Fraction(text)
    distances = abs(exact - Fraction(float(low))), abs(exact - Fraction(float(high)))
    expected = bits + (
        distances[1] < distances[0] or (distances[0] == distances[1] and bits % 2 == 1)
    )
    assert parse_literal(text, parse_type_text("FLOAT")).key == expected


@each("text", ["0", "0e999999999", "1e-999999999", "+.0"])
def test_a_float_with_a_large_exponent_takes_no_exact_arithmetic(text: str) -> None:
    """Fractions of such exponents would take minutes."""
    assert parse_literal(text, parse_type_text("FLOAT")).key == 0
