"""Every answer of `probe` over files of real writers, compared with the rows: a stored value is never `absent`."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import inspect, probe
from sbbf_tool.errors import UsageError

FIXTURES = sorted((Path(__file__).parent.parent.parent / "fixtures").glob("*.parquet"))
# parquet-java writes filters of BOOLEAN columns that hold nothing; `probe` says that it cannot say.
SIMPLE = (int, str, bytes, float)
NUMBERS = {("INT64", None), ("INT64", "INT(64,signed)"), ("DOUBLE", None)}
ABSENT_KEYS = 2000


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


@pytest.mark.parametrize("path", [path for path in FIXTURES if path.stem.endswith("-filters")], ids=lambda path: path.stem)
def test_absent_values_pass_at_about_the_estimated_fpp(path):
    report = inspect(path)
    columns = {row.column for row in report.filters if (row.physical_type, row.logical_type) in NUMBERS}
    assert columns
    for column in columns:
        expected = passed = queries = 0
        answers = probe(path, column, [10**15 + number for number in range(ABSENT_KEYS)]).values
        rates = {row.row_group: row.estimated_fpp for row in report.filters if row.column == column}
        for row_group, rate in rates.items():
            queries += ABSENT_KEYS
            expected += rate * ABSENT_KEYS
            passed += sum(answer.row_groups[row_group].answer == "maybe" for answer in answers)
        assert abs(passed - expected) <= 6 * math.sqrt(expected + 1), (column, passed, expected, queries)
