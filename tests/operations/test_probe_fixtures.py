"""Every answer of `probe` over files of real writers, compared with the rows: a stored value is never `absent`."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sbbf_tool import inspect, probe
from sbbf_tool.errors import UsageError

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
