"""Advice on columns whose right advice is known, and numbers that can be counted by hand."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import UnreadableError, add_filters, advise, inspect
from support.advised import GROUP, advice, table, write
from support.tables import each


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("advised") / "known.parquet")


@pytest.mark.slow
@each(
    "column, verdict, because",
    [
        ("random_id", "add", "min and max leave 5 of 5 row groups"),
        ("uuid", "add", "min and max leave 5 of 5 row groups"),
        ("maybe", "add", "min and max leave 5 of 5 row groups"),
        ("place.code", "add", "min and max leave 5 of 5 row groups"),
        ("tags.list.element", "add", "min and max leave 5 of 5 row groups"),
        ("sorted_id", "no gain", "sorted"),
        ("country", "no gain", "values repeat"),
        ("flag", "no gain", "BOOLEAN"),
        ("half", "no gain", "DuckDB loses rows"),
        ("nothing", "no gain", "only nulls"),
    ],
)
def test_verdicts(path, column, verdict, because):
    _, columns = advice(path)
    assert (columns[column].verdict, because in columns[column].reason) == (verdict, True), columns[
        column
    ].reason


@each(
    "geo, verdict",
    [
        ('{"columns": {"shape": {}}}', "left out"),
        ('{"columns": ["shape"]}', "add"),
        ("{", "add"),
        ("[]", "add"),
    ],
)
def test_columns_that_the_key_of_geoparquet_names(tmp_path, geo, verdict):
    shapes = pa.table({"shape": [f"{number * 2654435761 % 2**32:x}" for number in range(GROUP)]})
    path = write(
        tmp_path / "shapes.parquet",
        shapes.replace_schema_metadata({"geo": geo}),
        row_group_size=GROUP // 4,
        store_schema=True,
    )
    assert advice(path)[1]["shape"].verdict == verdict


def test_the_numbers_in_the_advice_are_those_of_the_data(path):
    _, columns = advice(path)
    # Two of five row groups were read, so that even unique ids are an estimate for the others.
    assert (columns["random_id"].ndv, columns["random_id"].ndv_is_exact) == (GROUP, False)
    assert (columns["country"].ndv, columns["country"].ndv_is_exact) == (25, True)
    assert columns["maybe"].ndv == pytest.approx(GROUP / 2, rel=0.05)
    assert columns["random_id"].row_groups_with_value == pytest.approx(1, abs=0.1)
    assert columns["country"].row_groups_with_value == pytest.approx(5, abs=0.1)
    assert columns["random_id"].after_statistics == pytest.approx(5, abs=0.05)
    assert columns["sorted_id"].after_statistics == 1


def test_the_estimated_size_is_the_size_of_the_built_filters(path, tmp_path):
    report, columns = advice(path)
    chosen = [name for name, column in columns.items() if column.verdict == "add"]
    add_filters(path, chosen, output=tmp_path / "filtered.parquet")
    totals = {total.column: total for total in inspect(tmp_path / "filtered.parquet").columns}
    assert {name: columns[name].cost_bytes for name in chosen} == pytest.approx(
        {name: totals[name].filter_bytes for name in chosen}, rel=0.01
    )
    assert report.fix is not None
    assert list(report.fix.columns) == chosen


def test_engines_that_use_the_dictionary_do_not_benefit(tmp_path):
    path = write(
        tmp_path / "dictionaries.parquet", table().select(["random_id"]), use_dictionary=True
    )
    assert advice(path, engine_names=["spark"])[1]["random_id"].verdict == "no gain"
    assert advice(path, engine_names=["duckdb"])[1]["random_id"].verdict == "add"
    (caution,) = advice(path)[1]["random_id"].cautions
    assert "Spark" in caution.partition(" use the dictionary")[0]
    assert "DuckDB" in caution.partition("only ")[2]


def test_an_unreadable_file_does_not_prevent_advice_on_others(path, tmp_path):
    damaged_path = tmp_path / "broken.parquet"
    damaged_path.write_bytes(b"PAR1 nothing PAR1")
    report = advise([path, damaged_path])
    assert (report.files, len(report.unreadable)) == (1, 1)
    with pytest.raises(UnreadableError):
        advise(damaged_path)


def test_a_filter_that_cannot_be_read_does_not_prevent_advice_for_queries(path, tmp_path):
    filtered = tmp_path / "filtered.parquet"
    add_filters(path, ["random_id"], output=filtered)
    at = inspect(filtered).filters[0].offset
    content = filtered.read_bytes()
    filtered.write_bytes(content[:at] + b"\xff" * 16 + content[at + 16 :])
    present = pq.read_table(path, columns=["random_id"])["random_id"][0].as_py()
    report, columns = advice(filtered, queries=[f"random_id = {present}"])
    assert report.exit_code == 0
    assert columns["random_id"].reason == "1 of its filters cannot be read; rebuild them"
    (query,) = report.queries
    assert 1 <= query.after_filters < query.after_statistics == 5


def test_only_queried_columns_get_a_filter(path):
    present = pq.read_table(path, columns=["random_id"])["random_id"][0].as_py()
    queries = [f"random_id = {present}", "random_id IN (1, 2) AND country = 'AA'", "sorted_id = 5"]
    report, columns = advice(path, queries=queries)
    assert columns["random_id"].verdict == "add"
    assert columns["uuid"].reason == "none of the given queries compares it with = or IN"
    present_value, two_columns, absent_value = report.queries
    assert (
        present_value.row_groups,
        present_value.after_statistics,
        present_value.after_filters,
    ) == (5, 5, 5)
    assert present_value.after_advice == pytest.approx(5 * 0.01)
    assert two_columns.after_statistics == 0
    assert absent_value.after_advice == 0
