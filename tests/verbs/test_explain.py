"""`explain`: which row groups min and max, dictionary and filter skip, and in which engines."""

from __future__ import annotations

import decimal
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, explain
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.query_engines.verdicts import list_verdicts
from support.advised import write
from support.corpus_edits import edit_footer
from support.samples import places
from support.tables import each


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained")
    plain = write(folder / "plain.parquet")
    add_filters(
        plain,
        ["random_id", "sorted_id", "uuid", "half", "country"],
        output=folder / "filtered.parquet",
    )
    return folder / "filtered.parquet"


def steps(report, engine: str) -> list[str]:
    (explanation,) = (item for item in report.engines if item.engine == engine)
    return list(explanation.steps)


def test_only_the_filter_excludes_a_value_within_min_and_max(path):
    report = explain(path, "random_id", 500_000_000_000)
    assert {row.statistics for row in report.row_groups} == {"maybe"}
    assert {row.dictionary for row in report.row_groups} == {None}
    assert [row.filter for row in report.row_groups].count("absent") >= 4
    assert steps(report, "duckdb") == [
        "filter" if row.filter == "absent" else "read" for row in report.row_groups
    ]
    assert steps(report, "polars") == ["read"] * 5
    # The verdicts of engines depend on type and size alone, and are found once for all files.
    misses = list_verdicts.cache_info().misses
    assert explain(path, "random_id", 500_000_000_000) == report
    assert list_verdicts.cache_info().misses == misses


@pytest.mark.parametrize(
    ("column", "value", "answers"),
    [
        (pa.array([0, 2**32 - 1], pa.uint32()), 2**31, "maybe"),
        (pa.array([-5, -1], pa.int32()), 1, "absent"),
        (pa.array([-0.0, 1.0]), "0.0", "maybe"),
        (pa.array([0.0, 1.0]), "-0.0", "maybe"),
        (pa.array([0.0, 1.0]), 1.5, "absent"),
        (pa.array([0.0, math.nan]), "nan", "maybe"),
        (pa.array(["a", "é"]), "z", "maybe"),
        (pa.array(["a", "z"]), "é", "absent"),
        (pa.array([b"\x01", b"\x80"]), b"\x7f", "maybe"),
        (pa.array([True, True]), "false", "absent"),
        (pa.array([True, True]), "true", "maybe"),
    ],
)
def test_min_and_max_use_the_order_of_the_column_type(tmp_path, column, value, answers):
    pq.write_table(pa.table({"v": column}), tmp_path / "v.parquet")
    (row,) = explain(tmp_path / "v.parquet", "v", value).row_groups
    assert row.statistics == answers


@each(
    "values, minimum, skipping",
    [
        (pa.array([1, 5]), 2, {"duckdb", "datafusion", "pyarrow", "spark", "trino"}),
        (pa.array([1, 5], pa.uint32()), 2, {"duckdb", "datafusion"}),
        (pa.array(["a", "c"]), b"b", {"duckdb", "datafusion"}),
        (
            pa.array([decimal.Decimal(1), decimal.Decimal(5)], pa.decimal128(25, 2)),
            (200).to_bytes(11, "big"),
            {"duckdb", "datafusion", "pyarrow"},
        ),
    ],
)
def test_the_statistics_of_older_writers_skip_what_each_engine_trusts(
    tmp_path: Path, values: pa.Array, minimum: int | bytes, skipping: set[str]
) -> None:
    """A stored value is outside of the older bounds: engines that trust them lose its row."""
    path = tmp_path / "older.parquet"
    pq.write_table(pa.table({"v": values}), path, use_dictionary=False, store_schema=False)

    def state_older(metadata: FileMetaData) -> None:
        statistics = metadata.row_groups[0].columns[0].meta_data.statistics
        low = minimum
        if isinstance(low, int):
            low = low.to_bytes(len(statistics.min_value), "little")
        statistics.min, statistics.max = low, statistics.max_value
        statistics.min_value = statistics.max_value = None
        metadata.column_orders = None
        metadata.created_by = "parquet-mr version 1.8.2 (build 0)"

    edit_footer(path, state_older)
    names = ("duckdb", "datafusion", "pyarrow", "spark", "trino", "polars", "clickhouse")
    report = explain(path, "v", values[0].as_py(), engine_names=names)
    assert {engine.engine for engine in report.engines if engine.skipped_by_statistics} == skipping
    assert {row.statistics for row in report.row_groups} == {
        "absent" if "trino" in skipping else "cannot say"
    }


def test_engines_lose_the_rows_of_a_value_that_the_dictionary_holds_and_the_filter_excludes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "wrong.parquet"
    pq.write_table(pa.table({"id": range(1000)}), path)
    add_filters(path, "id", in_place=True)
    place = places(path)[0, "id"]
    with open(path, "r+b") as stream:
        stream.seek(place.offset + place.length - 1024)
        stream.write(bytes(1024))
    report = next(
        report
        for value in range(50)
        if (report := explain(path, "id", value)).row_groups[0].filter == "absent"
    )
    assert not report.absent
    harms = {engine.engine: engine.harm for engine in report.engines}
    assert (harms["duckdb"], harms["spark"], harms["polars"]) == ("loses rows", None, None)
    assert (
        "the dictionary holds the value, but the filter excludes it"
        in explain(path, "id", report.value, engine_names="duckdb").engines[0].explanation
    )


def test_a_value_that_only_a_wrong_filter_holds_hides_no_lost_rows(tmp_path: Path) -> None:
    """The dictionary excludes 11, and the filter, which is that of another file, 10."""
    even, odd = (tmp_path / name for name in ("even.parquet", "odd.parquet"))
    for first, path in enumerate((even, odd)):
        pq.write_table(pa.table({"id": range(first, 1000 + first, 2)}), path)
        add_filters(path, "id", in_place=True)
    wrong = places(odd)[0, "id"]
    wrong_bytes = odd.read_bytes()[wrong.offset : wrong.offset + wrong.length]
    with even.open("r+b") as stream:
        stream.seek(places(even)[0, "id"].offset)
        stream.write(wrong_bytes)
    report = explain(even, "id", [10, 11], engine_names="duckdb")
    assert report.engines[0].harm == "loses rows"
