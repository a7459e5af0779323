"""Hashes: XXH64 by the book, and the same from every kernel in every layout that values come in."""

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

# The third is long enough for a stripe of 32 bytes, and leaves 4 + 3 over.
VECTORS = [
    (b"", 0xEF46DB3751D8E999),
    (b"a", 0xD24EC4F1A98C6E5B),
    (b"abc", 0x44BC2CF5AD770999),
    (b"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
]

WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 36, 40, 44, 63, 64, 65, 100, 129]

# What Python says of an int that the compiled kernel's type does not hold; Python's own kernels have no such limit.
TOO_LARGE = "cannot fit 'int'"
# The kernels find the same fault at different moments.
OUTSIDE, DECREASE = "outside the data|(leave|exceed) the", "offsets( that)? decrease"
TOO_SHORT = "has no length|ends at byte|past the end|values in a page"

values = st.lists(st.binary(max_size=80), max_size=60)


def arrow(parts: list[bytes], width: int, before: bytes = b"") -> tuple[bytes, array[int]]:
    """`parts` as data and offsets, behind `before`."""
    return before + b"".join(parts), array("i" if width == 4 else "q", accumulate(map(len, parts), initial=len(before)))


def runs_of_one_length(runs: list[tuple[int, int]]) -> list[bytes]:
    """Values with the given lengths, each repeated as often as stated."""
    lengths = [length for length, repeated in runs for _ in range(repeated)]
    return [bytes((7 * i + j) % 256 for j in range(length)) for i, length in enumerate(lengths)]


def plain_page(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_known_hashes(data: bytes, expected: int) -> None:
    assert spec.xxh64(data) == hashing.hash_value(data) == expected


@pytest.mark.parametrize("length", range(130))
def test_the_transcription_agrees_with_the_xxhash_package_at_every_length(length: int) -> None:
    data = bytes(range(200, 200 - length, -1))
    assert spec.xxh64(data) == xxhash.xxh64_intdigest(data)
    assert spec.xxh64(data, seed=2**64 - 1) == xxhash.xxh64_intdigest(data, seed=2**64 - 1)


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_the_transcription_agrees_with_the_xxhash_package(data: bytes, seed: int) -> None:
    assert spec.xxh64(data, seed) == xxhash.xxh64_intdigest(data, seed)


def test_a_text_is_not_its_bytes() -> None:
    with pytest.raises(TypeError):
        hashing.hash_value("abc")  # type: ignore[arg-type]


# Few values take another way through the numpy kernel than many.
@pytest.mark.parametrize("count", [0, 1, 31, 32, 100])
@pytest.mark.parametrize("width", WIDTHS)
def test_fixed_width(kernel: Kernel, width: int, count: int) -> None:
    data = bytes(i * i % 251 for i in range(width * count))
    hashes = kernel.hash_fixed(data, width)
    assert hashes.format == "Q"
    assert hashes.tolist() == [xxhash.xxh64_intdigest(data[i * width : (i + 1) * width]) for i in range(count)]


def test_fixed_width_beyond_one_batch(kernel: Kernel) -> None:
    data = bytes(range(251)) * 521
    hashes = kernel.hash_fixed(data[: 16_385 * 4], 4)
    assert hashes.tolist() == [xxhash.xxh64_intdigest(data[i : i + 4]) for i in range(0, 16_385 * 4, 4)]


@given(data=values)
@pytest.mark.parametrize("width", [4, 8])
def test_arrow_layout(kernel: Kernel, width: int, data: list[bytes]) -> None:
    hashes = kernel.hash_variable(*arrow(data, width, before=b"not a value"), width)
    assert hashes.format == "Q"
    assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in data]


@pytest.mark.parametrize("length", [0, 1, 36])
def test_arrow_layout_of_values_of_one_length(kernel: Kernel, length: int) -> None:
    data = [bytes((i + j) % 256 for j in range(length)) for i in range(50)]
    assert kernel.hash_variable(*arrow(data, 4, before=b"xyz"), 4).tolist() == [xxhash.xxh64_intdigest(value) for value in data]


@given(runs=st.lists(st.tuples(st.integers(0, 70), st.integers(1, 20)), max_size=8), width=st.sampled_from([4, 8]))
def test_arrow_layout_of_runs_of_one_length(kernel: Kernel, runs: list[tuple[int, int]], width: int) -> None:
    """The compiled kernel takes five or eight neighbours of one length at once."""
    data = runs_of_one_length(runs)
    assert kernel.hash_variable(*arrow(data, width), width).tolist() == [xxhash.xxh64_intdigest(value) for value in data]


@given(runs=st.lists(st.tuples(st.integers(0, 70), st.integers(1, 20)), max_size=8))
def test_plain_page_of_runs_of_one_length(kernel: Kernel, runs: list[tuple[int, int]]) -> None:
    data = runs_of_one_length(runs)
    assert kernel.hash_length_prefixed(plain_page(data), len(data)).tolist() == [xxhash.xxh64_intdigest(value) for value in data]


@pytest.mark.parametrize("length", [3, 36])
def test_runs_longer_than_the_compiled_kernel_looks_ahead(kernel: Kernel, length: int) -> None:
    data = runs_of_one_length([(length, 1300), (length + 1, 6)])
    hashes = [xxhash.xxh64_intdigest(value) for value in data]
    assert kernel.hash_variable(*arrow(data, 4), 4).tolist() == hashes
    assert kernel.hash_length_prefixed(plain_page(data), len(data)).tolist() == hashes


@pytest.mark.parametrize("length", [0, 3, 36])
@pytest.mark.parametrize("count", [1, 4, 5, 8, 9, 13, 641])
def test_a_page_that_ends_within_its_last_value_is_refused_after_a_run(kernel: Kernel, length: int, count: int) -> None:
    page = plain_page(runs_of_one_length([(length, count)]))
    for missing in (1, length + 3):
        with pytest.raises(ValueError, match=TOO_SHORT):
            kernel.hash_length_prefixed(page[:-missing], count)


@given(data=values)
def test_plain_page(kernel: Kernel, data: list[bytes]) -> None:
    hashes = kernel.hash_length_prefixed(plain_page(data), len(data))
    assert hashes.format == "Q"
    assert hashes.tolist() == [xxhash.xxh64_intdigest(value) for value in data]


@given(data=values, behind=st.binary(min_size=1, max_size=9))
def test_a_page_with_bytes_after_its_last_value_is_refused(kernel: Kernel, data: list[bytes], behind: bytes) -> None:
    """A reader that miscounts the values, or takes levels for values, has bytes left over."""
    with pytest.raises(ValueError, match=f"has {len(behind)} bytes after its last value"):
        kernel.hash_length_prefixed(plain_page(data) + behind, len(data))


def test_every_contiguous_buffer_will_do(kernel: Kernel) -> None:
    data = bytes(range(96))
    expected = kernel.hash_fixed(data[1:89], 8)
    assert kernel.hash_fixed(bytearray(data[1:89]), 8) == expected
    assert kernel.hash_fixed(memoryview(data)[1:89], 8) == expected  # not aligned
    assert kernel.hash_fixed(memoryview(data[1:89]).cast("Q"), 8) == expected
    assert kernel.hash_fixed(memoryview(data[1:89]).cast("B", [11, 8]), 8) == expected
    with pytest.raises(BufferError):
        kernel.hash_fixed(memoryview(data)[::2], 8)


@pytest.mark.parametrize(
    ("data", "width", "complaint"),
    [
        (b"1234567", 8, "not a whole number of values"),
        (b"1", 2, "not a whole number of values"),
        (b"12345678", 0, "width"),
        (b"", 0, "width"),
        (b"12345678", -8, "width"),
        (b"12345678", 2**70, f"not a whole number of values|{TOO_LARGE}"),
        (b"12345678", -(2**70), f"width|{TOO_LARGE}"),
    ],
)
def test_a_width_that_does_not_fit_is_refused(kernel: Kernel, data: bytes, width: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_fixed(data, width)


@pytest.mark.parametrize("offset_width", [4, 8])
@pytest.mark.parametrize(
    ("offsets", "complaint"),
    [
        pytest.param([0, 3, 11], OUTSIDE, id="behind the data"),
        pytest.param([0, 11, 3], DECREASE, id="behind the data and back"),
        pytest.param([-1, 3], OUTSIDE, id="negative"),
        pytest.param([0, -1, 3], DECREASE, id="negative later"),
        pytest.param([0, 5, 4, 6], DECREASE, id="decreasing"),
        pytest.param([0, 5, 2**31 - 1, 6], DECREASE, id="far away and back"),
        pytest.param([11], OUTSIDE, id="no value, behind the data"),
        pytest.param([-1], OUTSIDE, id="no value, negative"),
        pytest.param([-(2**31), 2**31 - 1], OUTSIDE, id="the widest span"),
        pytest.param([0, 2, 4, 6, 11], OUTSIDE, id="behind the data after a run of one length"),
        pytest.param([0, 3, 6, 9, 12], OUTSIDE, id="behind the data at the end of a run of one length"),
        pytest.param([0, 2, 4, 3, 8], DECREASE, id="decreasing within a run of one length"),
        pytest.param([], "no offsets", id="none"),
    ],
)
def test_wrong_offsets_are_refused(kernel: Kernel, offsets: list[int], offset_width: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_variable(b"0123456789", array("i" if offset_width == 4 else "q", offsets), offset_width)


@pytest.mark.parametrize(
    ("offsets", "width", "complaint"),
    [
        (bytes(7), 4, "not a whole number of offsets"),
        (bytes(12), 8, "not a whole number of offsets"),
        (bytes(8), 2, "4 (or|and) 8"),
        (bytes(8), 0, "4 (or|and) 8"),
        (bytes(8), -4, "4 (or|and) 8"),
        (bytes(8), 2**70, f"4 (or|and) 8|{TOO_LARGE}"),
    ],
)
def test_offsets_of_an_invalid_shape_are_refused(kernel: Kernel, offsets: bytes, width: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_variable(b"0123456789", offsets, width)


def test_wide_offsets_that_overflow_are_refused(kernel: Kernel) -> None:
    with pytest.raises(ValueError, match=OUTSIDE):
        kernel.hash_variable(b"0123456789", array("q", [0, 2**63 - 1]), 8)
    with pytest.raises(ValueError, match=OUTSIDE):
        kernel.hash_variable(b"0123456789", array("q", [-(2**63), 2**63 - 1]), 8)
    with pytest.raises(ValueError, match=DECREASE):
        kernel.hash_variable(b"0123456789", array("q", [0, 2**62, -(2**63), -(2**62), 0]), 8)  # four steps of 2^62 come round to 0


@pytest.mark.parametrize(
    ("page", "count", "complaint"),
    [
        pytest.param(b"", 1, TOO_SHORT, id="empty"),
        pytest.param(plain_page([b"abc"]), 2, TOO_SHORT, id="one value too few"),
        pytest.param(plain_page([b"abc"])[:-1], 1, TOO_SHORT, id="cut within a value"),
        pytest.param(plain_page([b"abc"]) + b"\1\0\0", 2, TOO_SHORT, id="cut within a length"),
        pytest.param(plain_page([b"abc"]) + b"\xff\xff\xff\xff" + b"rest", 2, TOO_SHORT, id="the longest length"),
        pytest.param(plain_page([b"abc"]), -1, "-1 values|at least 0, not -1", id="a negative count"),
        pytest.param(plain_page([b"abc"]), 2**62, TOO_SHORT, id="a count that no memory holds"),
        pytest.param(plain_page([b"abc"]), 2**70, f"{TOO_SHORT}|{TOO_LARGE}", id="a count that no machine holds"),
    ],
)
def test_a_page_that_ends_too_early_is_refused(kernel: Kernel, page: bytes, count: int, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.hash_length_prefixed(page, count)
    with pytest.raises(UnreadableError):
        hashing.hash_length_prefixed(page, count)


@given(page=st.binary(max_size=40), count=st.integers(-1, 12))
def test_any_page_is_hashed_or_refused_as_the_specification_would(kernel: Kernel, page: bytes, count: int) -> None:
    try:
        expected = spec.hash_length_prefixed(page, count)
    except ValueError:
        with pytest.raises(ValueError, match=r"page|count"):
            kernel.hash_length_prefixed(page, count)
    else:
        assert kernel.hash_length_prefixed(page, count) == expected


@given(offsets=st.lists(st.integers(-2, 12), max_size=6))
def test_any_offsets_are_used_or_refused_as_the_specification_would(kernel: Kernel, offsets: list[int]) -> None:
    try:
        expected = spec.hash_variable(b"0123456789", array("i", offsets), 4)
    except ValueError:
        with pytest.raises(ValueError, match="offset"):
            kernel.hash_variable(b"0123456789", array("i", offsets), 4)
    else:
        assert kernel.hash_variable(b"0123456789", array("i", offsets), 4) == expected
