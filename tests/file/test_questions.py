"""Values in one block of text are the same question as the values one by one."""

from __future__ import annotations

import pickle
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sbbf_tool.errors import UsageError
from sbbf_tool.file.question import Texts, question_of
from sbbf_tool.parquet import literals
from sbbf_tool.parquet.columns import Column
from sbbf_tool.parquet.logical import Logical

COLUMNS = {
    "INT32": ("INT32", None),
    "INT64": ("INT64", None),
    **{
        f"INT({bits},{signed})": ("INT32", Logical("INT", bits=bits, signed=signed))
        for bits in (8, 16, 32)
        for signed in (True, False)
    },
    **{
        f"INT64 INT({bits},{signed})": ("INT64", Logical("INT", bits=bits, signed=signed))
        for bits in (32, 64)
        for signed in (True, False)
    },
    "BYTE_ARRAY": ("BYTE_ARRAY", None),
    "STRING": ("BYTE_ARRAY", Logical("STRING")),
    "JSON": ("BYTE_ARRAY", Logical("JSON")),
    "BSON": ("BYTE_ARRAY", Logical("BSON")),
    "DECIMAL": ("INT64", Logical("DECIMAL", precision=9, scale=2)),
    "BYTE_ARRAY DECIMAL": ("BYTE_ARRAY", Logical("DECIMAL", precision=9, scale=2)),
    "DATE": ("INT32", Logical("DATE")),
    "TIMESTAMP": ("INT64", Logical("TIMESTAMP", unit="MICROS", utc=True)),
    "FLOAT": ("FLOAT", None),
    "DOUBLE": ("DOUBLE", None),
    "INT96": ("INT96", None),
    "BOOLEAN": ("BOOLEAN", None),
    "UUID": ("FIXED_LEN_BYTE_ARRAY", Logical("UUID")),
    "FIXED_LEN_BYTE_ARRAY": ("FIXED_LEN_BYTE_ARRAY", None),
}

EDGES = [
    *(
        "",
        " ",
        "0",
        "-0",
        "+0",
        "-",
        "+",
        "+-1",
        "--1",
        "00",
        "007",
        "-007",
        "+7",
        "1_000",
        " 7",
        "7 ",
        "1e3",
        "1.5",
        "\u0661",
        "\xb2",
    ),
    *(
        str(sign * (1 << bits) + more)
        for bits in (7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for more in (-1, 0, 1)
    ),
    *(
        "0" * 1001,
        "0" * 999 + "7",
        "9" * 5000,
        "null",
        "NULL",
        "nan",
        "-inf",
        "0x",
        "0X",
        "0x2a",
        "0x2A000000",
        "0x2a00000000000000",
    ),
    *(
        "x1",
        "0x1",
        "0xzz",
        "text",
        "caf\xe9",
        "\U0001f600",
        "\udcff",
        "a\udc80b",
        "\0",
        "a\nb",
        "2024-02-29",
        "2024-02-29T12:00:00",
    ),
    *("123e4567-e89b-12d3-a456-426614174000", "true", "1.005", "12345678.9", "0.0", "-0.0"),
]
NUMBERS = (
    st.integers(-300, 300) | st.integers(-(1 << 33), 1 << 33) | st.integers(-(1 << 65), 1 << 65)
)
TEXTS = st.lists(
    NUMBERS.map(str) | st.sampled_from(EDGES) | st.text(max_size=4, alphabet="0x1-+ \u0661\udcffn"),
    max_size=30,
)


def column_of(name: str) -> Column:
    physical, logical = COLUMNS[name]
    length = 16 if physical == "FIXED_LEN_BYTE_ARRAY" else 0
    return Column(0, ("c",), ("c",), physical, length, logical, 0, 0)


def texts_of(values: list[str], nulls: int = 0) -> Texts:
    return Texts.of([[value.encode("utf-8", "surrogateescape") for value in values]], nulls)


def outcome_of(column: Column, values: Texts | tuple[str | None, ...]) -> object:
    """What can be seen of a question, or its error."""
    try:
        question = question_of(column, values)
    except UsageError as error:
        return re.sub(
            r": value [\d,]+ of [\d,]+(; if it is a header, remove it)?(?=; )", "", str(error)
        )  # of a block only
    row = question.row
    return (
        [*row.hashes],
        [*row.owners],
        [*row.keys],
        row.special,
        [question.text(at) for at in range(len(values))],
        question.literals,
    )


@pytest.mark.parametrize("name", COLUMNS)
@settings(max_examples=40, deadline=None)
@given(values=TEXTS, nulls=st.integers(0, 2), only_valid=st.booleans())
def test_a_block_of_text_is_the_same_question_as_its_values(name, values, nulls, only_valid):
    column = column_of(name)
    if only_valid:
        values = [value for value in values if is_valid(column, value)]
    assert outcome_of(column, texts_of(values, nulls)) == outcome_of(
        column, (*[None] * nulls, *values)
    )


def is_valid(column: Column, value: str) -> bool:
    try:
        literals.parse_object(column, value)
    except UsageError:
        return False
    return True


@given(values=st.lists(st.sampled_from(EDGES), max_size=20), nulls=st.integers(0, 2))
def test_a_block_of_text_has_its_values(values, nulls):
    texts = texts_of(values, nulls)
    expected = [*[None] * nulls, *values]
    assert len(texts) == len(expected)
    assert [*texts] == expected == [texts[at] for at in range(len(texts))]
    assert texts[-3:] == tuple(expected[-3:])
    sent = pickle.loads(pickle.dumps(texts))
    assert sent == texts
    assert [*sent] == expected
    with pytest.raises(IndexError):
        texts[len(texts)]
