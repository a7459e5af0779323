"""What is kept from one file to the next, and what must not be taken for the same."""

from __future__ import annotations

import copy
import pickle
from datetime import datetime

import pytest

from sbbf_tool import probe
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.reuse import Reuse
from support.tables import each


@pytest.fixture
def column(fixtures):
    with ParquetFile.open(fixtures / "pyarrow-filters.parquet") as file:
        yield file.footer.columns[0]


def test_files_of_one_schema_share_their_columns(fixtures):
    reuse = Reuse()
    path = fixtures / "pyarrow-filters.parquet"
    with ParquetFile.open(path, reuse=reuse) as first, ParquetFile.open(path, reuse=reuse) as second, ParquetFile.open(path) as alone:
        assert first.footer.columns is second.footer.columns
        assert first.footer.columns == alone.footer.columns
        assert first.footer.columns is not alone.footer.columns


def test_the_same_question_is_put_into_words_once(column):
    reuse = Reuse()
    assert reuse.question_of(column, (1, "2", None)) is reuse.question_of(copy.copy(column), (1, "2", None))


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


def test_another_process_gets_an_empty_one(column):
    reuse = Reuse()
    question = reuse.question_of(column, (1,))
    sent = pickle.loads(pickle.dumps(reuse))
    assert sent.question_of(column, (1,)) is not question


def test_answers_are_the_same_with_and_without(fixtures):
    path, reuse = fixtures / "pyarrow-filters.parquet", Reuse()
    for name in ("id", "id"):
        for values in (["1", "2"], ["1", "2"], ["3"]):
            assert probe(path, name, values, reuse=reuse) == probe(path, name, values)
