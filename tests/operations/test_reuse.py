"""What is kept from one file to the next, and what must not be taken for the same."""

from __future__ import annotations

from datetime import datetime

import pytest

from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.reuse import Reuse
from support.tables import each


@pytest.fixture
def column(fixtures):
    with ParquetFile.open(fixtures / "pyarrow-filters.parquet") as file:
        yield file.footer.columns[0]


@each(
    "first, second",
    [
        ((1,), (True,)),
        ((1,), (2,)),
        ((1,), (1, 1)),
        ((0.0,), (-0.0,)),
        ((datetime(2026, 10, 25, 2, 30, fold=0),), (datetime(2026, 10, 25, 2, 30, fold=1),)),
    ],
)
def test_equal_values_are_not_always_the_same_question(column, first, second):
    reuse = Reuse()

    def ask(values):
        try:
            return reuse.question_of(column, values).literals
        except Exception as error:
            return str(error)

    def ask_alone(values):
        return type(reuse)().question_of(column, values).literals

    ask(first)
    try:
        expected = ask_alone(second)
    except Exception as error:
        expected = str(error)
    assert ask(second) == expected


def test_a_buffer_may_hold_another_value_by_the_next_time(fixtures):
    with ParquetFile.open(fixtures / "pyarrow-filters.parquet") as file:
        text = next(column for column in file.footer.columns if column.physical == "BYTE_ARRAY")
    reuse, buffer = Reuse(), bytearray(b"one")
    values = (buffer,)
    before = reuse.question_of(text, values).hashes
    buffer[:] = b"two"
    assert reuse.question_of(text, values).hashes != before
