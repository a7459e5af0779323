"""The functions of SQL on a local Spark: their rows are what `inspect`, `probe` and `verify`
say."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from sbbf_tool import add_filters, inspect, probe, verify
from support.tables import each

pytestmark = pytest.mark.engines


@pytest.fixture(scope="module")
def sql(spark):
    from sbbf_tool.spark import register

    has_data_sources = hasattr(spark, "dataSource")
    with (
        nullcontext()
        if has_data_sources
        else pytest.warns(UserWarning, match=r"^PySpark 3\.5\S* has no data sources in Python")
    ):
        register(spark)
    return lambda query: [row.asDict(recursive=True) for row in spark.sql(query).collect()]


@pytest.fixture(scope="module")
def lake(tmp_path_factory, fixtures):
    folder = tmp_path_factory.mktemp("lake")
    for number in (1, 2):
        add_filters(fixtures / "events.parquet", ["user_id"], output=folder / f"{number}.parquet")
    return folder


@pytest.fixture(scope="module")
def paths(spark, lake):
    """A view of paths, one of which does not exist."""
    names = [str(lake / name) for name in ("1.parquet", "2.parquet", "missing.parquet")]
    spark.createDataFrame([(name,) for name in names], "path string").createOrReplaceTempView(
        "paths"
    )
    return names


def test_filters_of_a_folder_and_of_a_table_of_paths(sql, lake, paths):
    expected = [
        (path, chunk.row_group, chunk.column, chunk.fill_ratio)
        for path in paths[:2]
        for chunk in inspect(path).filters
    ]
    assert len(expected) == 6
    rows = sql(f"SELECT * FROM sbbf_filters('{lake}') ORDER BY file, row_group")
    assert [
        (row["file"], row["row_group"], row["column"], row["fill_ratio"]) for row in rows
    ] == expected
    assert {row["rows"] for row in rows} == {inspect(paths[0]).rows}
    rows = sql(
        "SELECT f.* FROM paths, LATERAL sbbf_filters(paths.path) AS f ORDER BY file, row_group"
    )
    assert [(row["file"], row["status"]) for row in rows] == [
        *((path, "ok") for path in paths[:2] for _ in range(3)),
        (paths[2], "failed"),
    ]
    assert "no such file" in rows[-1]["reason"].lower()


def test_answers_for_a_key(sql, paths):
    (answers,) = probe(paths[0], "user_id", ["42"]).values
    rows = sql(f"SELECT * FROM sbbf_probe('{paths[0]}', 'user_id', 42) ORDER BY row_group")
    assert [(row["row_group"], row["answer"]) for row in rows] == [
        (answer.row_group, answer.answer) for answer in answers.row_groups
    ]
    (row,) = sql(f"SELECT * FROM sbbf_probe('{paths[2]}', 'user_id', 42)")
    assert (row["file"], row["answer"], row["status"]) == (paths[2], None, "failed")


def test_verified_filters(sql, paths):
    rows = sql(f"SELECT * FROM sbbf_verify('{paths[0]}') ORDER BY row_group")
    assert [(row["row_group"], row["is_verified"], row["verified_values"]) for row in rows] == [
        (result.row_group, True, result.verified_values) for result in verify(paths[0]).filters
    ]


def test_files_that_may_contain_a_value(sql, paths, lake):
    absent = next(
        value
        for value in range(10**9, 10**9 + 1000)
        if probe(paths[0], "user_id", [value]).is_absent
    )
    answer = "sbbf_may_contain(path, 'user_id', {})"
    assert [
        row["path"] for row in sql(f"SELECT path FROM paths WHERE {answer.format(absent)}")
    ] == [paths[2]]
    stored = sql(f"SELECT min(user_id) AS id FROM parquet.`{paths[0]}`")[0]["id"]
    assert len(sql(f"SELECT path FROM paths WHERE {answer.format(stored)}")) == 3
    assert sql(
        f"SELECT sbbf_may_contain(NULL, 'user_id', 1) AS answer, sbbf_may_contain('{lake}', "
        f"'user_id', {absent}) AS whole"
    ) == [{"answer": None, "whole": False}]


@each(
    "value, answer",
    [
        ("'no number'", "cannot say"),
        ("-5.0D", "absent"),
        ("true", "cannot say"),
        ("CAST(42 AS DECIMAL(10, 2))", "absent"),
    ],
)
def test_a_value_of_another_type_is_an_equal_integer_or_spark_may_convert_it(
    sql, paths, value, answer
):
    assert sql(f"SELECT sbbf_may_contain('{paths[0]}', 'user_id', {value}) AS answer") == [
        {"answer": answer != "absent"}
    ]
    rows = sql(f"SELECT * FROM sbbf_probe('{paths[0]}', 'user_id', {value})")
    assert {(row["answer"], row["status"]) for row in rows} == {(answer, "ok")}, rows


def test_a_column_that_may_be_misspelt(sql, paths):
    assert sql(f"SELECT sbbf_may_contain('{paths[0]}', 'userid', 42) AS answer") == [
        {"answer": True}
    ]


@pytest.mark.heavy
@each("zone", ["UTC", "America/New_York"])
def test_times_are_compared_as_spark_compares_them(spark, sql, tmp_path, zone):
    """A stored time is never absent, whatever the zone of the session; text has an answer, with a
    zone or for a local column."""
    zones_before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        times = (
            "TIMESTAMP_NTZ'2020-01-01 00:00:00' AS local, TIMESTAMP'2020-01-01 00:00:00' AS instant"
        )
        spark.sql(f"SELECT {times}").coalesce(1).write.parquet(str(tmp_path / "lake"))
        for file in (tmp_path / "lake").glob("*.parquet"):
            add_filters(file, ["local", "instant"], in_place=True)
        for value in ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE"):
            literal = f"{value}'2020-01-01{'' if value == 'DATE' else ' 00:00:00'}'"
            for column in ("local", "instant"):
                assert sql(
                    f"SELECT count(*) AS rows FROM parquet.`{tmp_path}/lake` WHERE {column} = "
                    f"{literal}"
                ) == [{"rows": 1}]
                assert sql(
                    f"SELECT sbbf_may_contain('{tmp_path}/lake', '{column}', {literal}) AS answer"
                ) == [{"answer": True}]
        (instant,) = sql(
            f"SELECT date_format(to_utc_timestamp(instant, '{zone}'), "
            f"\"yyyy-MM-dd'T'HH:mm:ss'Z'\") AS text FROM parquet.`{tmp_path}/lake`"
        )
        texts = {("local", "2020-01-01T00:00:00"): True, ("local", "2020-01-01T00:00:01"): False}
        texts |= {("instant", instant["text"]): True, ("instant", "2020-01-01T00:00:01Z"): False}
        for (column, text), answer in texts.items():
            assert sql(
                f"SELECT sbbf_may_contain('{tmp_path}/lake', '{column}', '{text}') AS answer"
            ) == [{"answer": answer}]
        for column, time, reason in (
            ("local", "TIMESTAMP_NTZ'2020-01-01 00:00:00'", "zone of this time is not known"),
            ("instant", "'2020-01-01 00:00:01'", "read as UTC"),
        ):
            (row,) = sql(f"SELECT * FROM sbbf_probe('{tmp_path}/lake', '{column}', {time})")
            assert (row["answer"], row["status"]) == (None, "failed")
            assert reason in row["reason"]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zones_before)
