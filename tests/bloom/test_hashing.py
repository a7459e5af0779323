"""Hashes: XXH64 by the book, and the same from every kernel in every layout that values come in;
and the extremes of values."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.bloom import hashing, spec
from sbbf_tool.bloom.interface import Kernel
from sbbf_tool.errors import UnreadableError
from support.tables import each

# The third is long enough for a stripe of 32 bytes, and leaves 4 + 3 over.
VECTORS = [
    (b"", 0xEF46DB3751D8E999),
    (b"a", 0xD24EC4F1A98C6E5B),
    (b"abc", 0x44BC2CF5AD770999),
    (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
]

WIDTHS = [
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    12,
    15,
    16,
    17,
    20,
    24,
    31,
    32,
    33,
    36,
    40,
    44,
    63,
    64,
    65,
    100,
    129,
]

# What Python says of an int that the compiled kernel's type does not hold; Python's own kernels
# have no such limit.
TOO_LARGE = "cannot fit 'int'"
# The kernels find the same fault at different moments.
OUTSIDE, DECREASE = "outside the data|(leave|exceed) the", "offsets( that)? decrease"
TOO_SHORT = "has no length|ends at byte|past the end|values in a page"

edges = st.sampled_from([b"", b"\0", b"a" * 8, b"a" * 8 + b"\0", b"a" * 9, b"\xff" * 9])
values = st.lists(st.one_of(st.binary(max_size=80), edges), max_size=40)
runs = st.lists(st.tuples(st.integers(0, 70), st.integers(1, 20)), max_size=8)
turns = st.sampled_from([0, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1])


def arrow(parts: list[bytes], width: int, before: bytes = b"") -> tuple[bytes, array[int]]:
    """`parts` as data and offsets, behind `before`."""
    return before + b"".join(parts), array(
        "i" if width == 4 else "q", accumulate(map(len, parts), initial=len(before))
    )


def runs_of_one_length(runs: list[tuple[int, int]]) -> list[bytes]:
    """Values with the given lengths, each repeated as often as stated."""
    lengths = [length for length, repeated in runs for _ in range(repeated)]
    return [bytes((7 * i + j) % 256 for j in range(length)) for i, length in enumerate(lengths)]


def plain_page(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


@each("data, expected", VECTORS)
def test_known_hashes(data: bytes, expected: int) -> None:
    assert spec.xxh64(data) == hashing.hash_value(data) == expected


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_the_transcription_agrees_with_the_xxhash_package(data: bytes, seed: int) -> None:
    assert spec.xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)


def test_a_text_is_not_its_bytes() -> None:
    with pytest.raises(TypeError):
        hashing.hash_value("abc")  # type: ignore[arg-type]


# Few values take another way through the numpy kernel than many.
@each(
    "width, count",
    [*((width, count) for width in WIDTHS for count in (0, 1, 31, 32, 100)), (4, 16_385)],
)
def test_fixed_width(kernel: Kernel, width: int, count: int) -> None:
    data = bytes(i * i % 251 for i in range(width * count))
    hashes = kernel.hash_fixed(data, width)
    assert hashes.format == "Q"
    assert hashes.tolist() == [
        xxhash.xxh64_intdigest(data[i * width : (i + 1) * width]) for i in range(count)
    ]


@given(data=st.one_of(values, runs.map(runs_of_one_length)), width=st.sampled_from([4, 8]))
def test_values_of_any_length(kernel: Kernel, data: list[bytes], width: int) -> None:
    """The compiled kernel takes five or eight neighbours of one length at once."""
    expected = [xxhash.xxh64_intdigest(value) for value in data]
    for hashes in (
        kernel.hash_variable(*arrow(data, width, before=b"not a value"), width),
        kernel.hash_length_prefixed(plain_page(data), len(data)),
    ):
        assert hashes.format == "Q"
        assert hashes.tolist() == expected
    ends = kernel.ends_length_prefixed(plain_page(data), len(data))
    assert ends.format == "Q"
    assert ends.tolist() == [*accumulate(4 + len(value) for value in data)]


def test_every_contiguous_buffer_will_do(kernel: Kernel) -> None:
    data = bytes(range(96))
    expected = kernel.hash_fixed(data[1:89], 8)
    assert kernel.hash_fixed(bytearray(data[1:89]), 8) == expected
    assert kernel.hash_fixed(memoryview(data)[1:89], 8) == expected  # not aligned
    assert kernel.hash_fixed(memoryview(data[1:89]).cast("Q"), 8) == expected
    assert kernel.hash_fixed(memoryview(data[1:89]).cast("B", [11, 8]), 8) == expected
    with pytest.raises(BufferError):
        kernel.hash_fixed(memoryview(data)[::2], 8)


@each(
    "offsets, width, complaint",
    [
        (bytes(7), 4, "not a whole number of offsets"),
        (bytes(12), 8, "not a whole number of offsets"),
        (bytes(8), 2, "4 (or|and) 8"),
        (bytes(8), 0, "4 (or|and) 8"),
        (bytes(8), -4, "4 (or|and) 8"),
        (bytes(8), 2**70, f"4 (or|and) 8|{TOO_LARGE}"),
        (array("q", [0, 2**63 - 1]), 8, OUTSIDE),
        (array("q", [-(2**63), 2**63 - 1]), 8, OUTSIDE),
        (
            array("q", [0, 2**62, -(2**63), -(2**62), 0]),
            8,
            DECREASE,
        ),  # four steps of 2^62 come round to 0
    ],
)
def test_offsets_of_an_invalid_shape_are_refused(
    kernel: Kernel, offsets: bytes, width: int, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_variable(b"0123456789", offsets, width)


@each(
    "page, count, complaint",
    {
        "empty": (b"", 1, TOO_SHORT),
        "one value too few": (plain_page([b"abc"]), 2, TOO_SHORT),
        "cut within a value": (plain_page([b"abc"])[:-1], 1, TOO_SHORT),
        "cut within the last of many": (plain_page([b"abc"] * 9)[:-1], 9, TOO_SHORT),
        "cut after the last of many lengths": (plain_page([b"abcd"] * 20)[:-4], 20, TOO_SHORT),
        "cut within a length": (plain_page([b"abc"]) + b"\1\0\0", 2, TOO_SHORT),
        "the longest length": (plain_page([b"abc"]) + b"\xff\xff\xff\xff" + b"rest", 2, TOO_SHORT),
        "a negative count": (plain_page([b"abc"]), -1, "-1 values|at least 0, not -1"),
        "a count that no memory holds": (plain_page([b"abc"]), 2**62, TOO_SHORT),
        "a count that no machine holds": (plain_page([b"abc"]), 2**70, f"{TOO_SHORT}|{TOO_LARGE}"),
    },
)
def test_a_page_that_ends_too_early_is_refused(
    kernel: Kernel, page: bytes, count: int, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_length_prefixed(page, count)
    with pytest.raises(ValueError, match=complaint):
        kernel.ends_length_prefixed(page, count)
    with pytest.raises(UnreadableError):
        hashing.hash_length_prefixed(page, count)


@given(
    page=st.binary(max_size=40),
    count=st.integers(-1, 12),
    offsets=st.lists(st.integers(-2, 12), max_size=6),
)
def test_bytes_are_read_or_refused_as_the_specification_would(
    kernel: Kernel, page: bytes, count: int, offsets: list[int]
) -> None:
    for name, arguments in (
        ("hash_length_prefixed", (page, count)),
        ("ends_length_prefixed", (page, count)),
        ("extremes_length_prefixed", (page, count)),
        ("hash_variable", (b"0123456789", array("i", offsets), 4)),
        ("extremes_variable", (b"0123456789", array("i", offsets), 4)),
    ):
        try:
            expected = getattr(spec, name)(*arguments)
        except ValueError:
            with pytest.raises(ValueError, match=r"page|count|offset"):
                getattr(kernel, name)(*arguments)
        else:
            assert getattr(kernel, name)(*arguments) == expected


# --- The smallest and the largest value ---


@given(data=values)
def test_extremes_of_values_of_any_length(kernel: Kernel, data: list[bytes]) -> None:
    expected = (min(data), max(data)) if data else None
    assert kernel.extremes_length_prefixed(plain_page(data), len(data)) == expected
    for width in (4, 8):
        assert (
            kernel.extremes_variable(*arrow(data, width, before=b"not a value"), width) == expected
        )


@given(
    numbers=st.lists(st.one_of(st.integers(0, 2**64 - 1), turns), max_size=20),
    width=st.sampled_from([4, 8]),
    signed=st.booleans(),
)
def test_extremes_of_integers(kernel: Kernel, numbers: list[int], width: int, signed: bool) -> None:
    data = [(number % 2 ** (8 * width)).to_bytes(width, "little") for number in numbers]

    def key(value: bytes) -> int:
        return int.from_bytes(value, "little", signed=signed)

    expected = (min(data, key=key), max(data, key=key)) if data else None
    assert (
        kernel.extremes_fixed(b"".join(data), width, "signed" if signed else "unsigned") == expected
    )


@given(width=st.integers(1, 20), rows=st.binary(max_size=100))
def test_extremes_of_bytes_and_decimals(kernel: Kernel, width: int, rows: bytes) -> None:
    rows = rows[: len(rows) // width * width]
    data = [rows[at : at + width] for at in range(0, len(rows), width)]
    assert kernel.extremes_fixed(rows, width, "bytes") == ((min(data), max(data)) if data else None)

    def key(value: bytes) -> int:
        return int.from_bytes(value, "big", signed=True)

    assert kernel.extremes_fixed(rows, width, "decimal") == (
        (min(data, key=key), max(data, key=key)) if data else None
    )


def test_what_is_no_run_of_values_has_no_extremes(kernel: Kernel) -> None:
    for values, width, order, complaint in [
        (b"12345", 4, "signed", "not a whole number of values"),
        (b"12", 2, "signed", "4 or 8"),
        (b"1234", 4, "any", "order"),
        (b"", 0, "bytes", "width"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            kernel.extremes_fixed(values, width, order)
