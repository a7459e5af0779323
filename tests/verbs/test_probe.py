"""`probe`: its answers, and the few bytes that it reads for them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UsageError, add_filters, inspect, probe, remove_filters
from support.samples import ROW_GROUP_ROWS, places, write_column, write_events


@pytest.fixture
def filtered(tmp_path):
    path = write_events(tmp_path / "events.parquet")
    add_filters(path, ["id", "name", "score", "tags"], in_place=True, fpp=1e-6)
    return path


def answers(path, column, value) -> list[str]:
    (value_answer,) = probe(path, column, [value]).values
    return [answer.answer for answer in value_answer.row_groups]


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("row", [0, 1, 99])
def test_only_the_row_group_that_holds_a_value_may_hold_it(filtered, number, row):
    n = number * ROW_GROUP_ROWS + row
    expected = ["maybe" if at == number else "absent" for at in range(3)]
    assert answers(filtered, "id", n * 7) == answers(filtered, "id", str(n * 7)) == expected
    assert answers(filtered, "score", n / 4) == expected


def test_without_a_filter_the_dictionary_answers(filtered):
    remove_filters(filtered, ["name"], in_place=True)
    assert answers(filtered, "name", "name 7b") == ["absent"] * 3
    assert [each.answer for each in probe(filtered, "name", ["name 7b"], filters_only=True).inconclusive] == ["no filter"]


@pytest.mark.parametrize(("column", "value"), [("idd", 7), ("id", "seven"), ("id", 2**63), ("point", 1)])
def test_an_invalid_column_or_value_is_a_usage_error(filtered, column, value):
    with pytest.raises(UsageError) as caught:
        probe(filtered, column, [value])
    assert caught.value.file == str(filtered)
    assert caught.value.hint


def test_only_one_block_of_a_large_filter_is_read(tmp_path):
    path = write_column(tmp_path / "large.parquet", pa.array(range(50_000), pa.int64()))
    add_filters(path, ["v"], in_place=True)
    (place,) = places(path).values()
    footer = pq.read_metadata(path).serialized_size
    assert place.length > 60_000
    assert probe(path, "v", [17]).bytes_read < footer + 200
    many = probe(path, "v", range(10**6, 10**6 + 5000), filters_only=True)
    assert many.bytes_read < footer + place.length + 200


FIXTURES = sorted((Path(__file__).parent.parent.parent / "fixtures").glob("*.parquet"))
# parquet-java writes filters of BOOLEAN columns that hold nothing; `probe` says that it cannot say.
SIMPLE = (int, str, bytes, float)


def columns_with_filters(path: Path) -> list[str]:
    return [total.column for total in inspect(path).columns if "." not in total.column]


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_no_stored_value_of_the_fixtures_is_absent(path):
    queries = 0
    with pq.ParquetFile(path) as file:
        for name in columns_with_filters(path):
            for row_group in range(file.num_row_groups):
                stored = file.read_row_group(row_group, columns=[name]).column(0).to_pylist()
                values = list(dict.fromkeys(value for value in stored if isinstance(value, SIMPLE)))
                try:
                    answers = probe(path, name, values).values
                except UsageError:
                    continue  # pyarrow shows it as another type; the corpus of types has those
                for value, answer in zip(values, answers, strict=True):
                    assert answer.row_groups[row_group].answer in ("maybe", "no filter", "cannot say"), (name, value)
                queries += len(values)
    if path.stem.endswith("-filters"):
        assert queries > 0
