"""The smallest and the largest value: every kernel finds the same, and refuses the same."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sbbf_tool.bloom import spec
from sbbf_tool.bloom.interface import Kernel

edges = st.sampled_from([b"", b"\0", b"a" * 8, b"a" * 8 + b"\0", b"a" * 9, b"\xff" * 9])
texts = st.lists(st.one_of(st.binary(max_size=20), edges), max_size=30)
turns = st.sampled_from([0, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1])


def arrow(values: list[bytes], width: int, before: bytes = b"") -> tuple[bytes, array[int]]:
    return before + b"".join(values), array("i" if width == 4 else "q", accumulate(map(len, values), initial=len(before)))


def plain_page(values: list[bytes]) -> bytes:
    return b"".join(len(value).to_bytes(4, "little") + value for value in values)


@given(data=texts)
def test_values_of_any_length(kernel: Kernel, data: list[bytes]) -> None:
    expected = (min(data), max(data)) if data else None
    assert kernel.extremes_length_prefixed(plain_page(data), len(data)) == expected
    for width in (4, 8):
        assert kernel.extremes_variable(*arrow(data, width, before=b"not a value"), width) == expected


@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("order", ["signed", "unsigned"])
@given(numbers=st.lists(st.one_of(st.integers(0, 2**64 - 1), turns), max_size=20))
def test_integers(kernel: Kernel, numbers: list[int], width: int, order: str) -> None:
    data = [(number % 2 ** (8 * width)).to_bytes(width, "little") for number in numbers]

    def key(value: bytes) -> int:
        return int.from_bytes(value, "little", signed=order == "signed")

    expected = (min(data, key=key), max(data, key=key)) if data else None
    assert kernel.extremes_fixed(b"".join(data), width, order) == expected


@given(width=st.integers(1, 20), rows=st.binary(max_size=100))
def test_bytes_and_decimals(kernel: Kernel, width: int, rows: bytes) -> None:
    rows = rows[: len(rows) // width * width]
    data = [rows[at : at + width] for at in range(0, len(rows), width)]
    assert kernel.extremes_fixed(rows, width, "bytes") == ((min(data), max(data)) if data else None)

    def key(value: bytes) -> int:
        return int.from_bytes(value, "big", signed=True)

    assert kernel.extremes_fixed(rows, width, "decimal") == ((min(data, key=key), max(data, key=key)) if data else None)


@pytest.mark.parametrize(
    ("values", "width", "order", "complaint"),
    [
        (b"12345", 4, "signed", "not a whole number of values"),
        (b"12", 2, "signed", "4 or 8"),
        (b"1234", 4, "any", "order"),
        (b"", 0, "bytes", "width"),
    ],
)
def test_what_is_no_run_of_values_is_refused(kernel: Kernel, values: bytes, width: int, order: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        kernel.extremes_fixed(values, width, order)


@given(page=st.binary(max_size=40), count=st.integers(-1, 12))
def test_any_page_is_read_or_refused_as_the_specification_would(kernel: Kernel, page: bytes, count: int) -> None:
    try:
        expected = spec.extremes_length_prefixed(page, count)
    except ValueError:
        with pytest.raises(ValueError, match=r"page|count"):
            kernel.extremes_length_prefixed(page, count)
    else:
        assert kernel.extremes_length_prefixed(page, count) == expected


@given(offsets=st.lists(st.integers(-2, 12), max_size=6))
def test_any_offsets_are_used_or_refused_as_the_specification_would(kernel: Kernel, offsets: list[int]) -> None:
    places = array("i", offsets)
    try:
        expected = spec.extremes_variable(b"0123456789", places, 4)
    except ValueError:
        with pytest.raises(ValueError, match="offset"):
            kernel.extremes_variable(b"0123456789", places, 4)
    else:
        assert kernel.extremes_variable(b"0123456789", places, 4) == expected
