"""What is known of a row group is the same by row group as by value."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters
from sbbf_tool.file.filter_answers import positions
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.file.pruning import (
    DICTIONARY,
    FILTER,
    STATISTICS,
    narrow,
    query_row_group,
    query_statistics,
    without_statistics,
)
from sbbf_tool.file.question import question_of

VALUES = {
    "id": [[0], [2, 4], [1], [1, 3, 200], [150], [None], [None, 2]],
    "name": [["n0"], ["a", "z"], ["n1"], ["n1", "n0"], ["n7x", "n10x"], [None]],
}


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "dictionary"])
def path(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("answers") / "a.parquet"
    numbers = range(0, 400, 2)
    table = pa.table({"id": numbers, "name": [f"n{number}" for number in numbers]})
    pq.write_table(table, path, row_group_size=50, use_dictionary=request.param)
    add_filters(path, ["id"], in_place=True)
    return path


@pytest.mark.parametrize("name", VALUES)
def test_both_views_agree(path, name):
    decided_by = set()
    with ParquetFile.open(path) as file:
        column = next(each for each in file.footer.columns if each.name == name)
        for values in VALUES[name]:
            question = question_of(column, values)
            for narrowed in narrow(file, question, range(file.footer.num_row_groups)):
                number = narrowed.row_group
                statistics = query_statistics(file, number, question)
                by_value = statistics.by_statistics()
                assert statistics.is_absent == all(each.is_absent for each in by_value)
                every = query_row_group(
                    file, without_statistics(file, number, question), every_means=True
                )
                means = [by_value, every.by_filter(), every.by_dictionary() or by_value]
                excluded = [
                    any(each.is_absent for each in of_value)
                    for of_value in zip(*means, strict=True)
                ]
                assert narrowed.is_absent == all(excluded)
                held = [at for at, is_excluded in enumerate(excluded) if not is_excluded]
                assert set(positions(narrowed.answers.values)) <= set(held)
                if narrowed.is_absent:
                    decided_by.add(narrowed.decided_by)
    assert STATISTICS in decided_by
    if name == "id":
        assert FILTER in decided_by
    elif file.footer.chunk_meta(0, column.index).is_dictionary_encoded:
        assert DICTIONARY in decided_by
