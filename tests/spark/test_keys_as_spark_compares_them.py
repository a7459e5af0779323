"""Keys of a DataFrame against Spark's own comparison: key types x column types x zones x ANSI. What
Spark finds is never absent."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest

from sbbf_tool import add_filters
from sbbf_tool.file.context import Context
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.reports.rows import Row
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.probe import Probe

pytest.importorskip("pyspark", reason="the Python package pyspark is not installed")

from sbbf_tool import Edit, FilterSpec
from sbbf_tool.spark import pipeline, probe_keys
from sbbf_tool.spark.causes import quiet_pyspark
from sbbf_tool.spark.key_types import compare_in_spark
from sbbf_tool.spark.rows import rows_of
from sbbf_tool.verbs import AddFilter

pytestmark = [pytest.mark.engines, pytest.mark.heavy]

VALUES = {
    "tinyint": ("7", "0", "-1"),
    "int": ("7", "0", "16777217"),
    "bigint": ("7", "16777217", "9007199254740993", "9007199254740992"),
    "decimal(10,2)": ("7", "7.25", "-1"),
    "decimal(38,20)": ("7", "7.25", "0.00000000000000000001"),
    "float": ("7", "0.1", "-0.0", "'NaN'", "16777216"),
    "double": ("7", "0.1", "0.0", "'NaN'", "9007199254740992"),
    "string": ("'7'", "'007'", "' 7'", "'7.0'", "'2020-01-01'", "'2020-01-01 00:00:00'", "'0x37'"),
    "binary": ("'7'", "'0x37'"),
    "date": ("'2020-01-01'", "'1500-01-01'", "'2019-12-31'"),
    "timestamp": (
        "'2020-01-01 00:00:00'",
        "'1500-01-01 00:00:00'",
        "'2019-12-31 18:15:00'",
        "'2020-03-08 02:30:00'",
    ),
    "timestamp_ntz": (
        "'2020-01-01 00:00:00'",
        "'1500-01-01 00:00:00'",
        "'2019-12-31 18:15:00'",
        "'2020-03-08 02:30:00'",
    ),
}
NAMES = {kind: kind.translate(str.maketrans("(,)", "___")) for kind in VALUES}
LEGACY = {
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
}
SESSIONS = [
    ("UTC", "true", {}),
    pytest.param("Asia/Kathmandu", "true", {}, marks=pytest.mark.heavy),
    pytest.param("Asia/Kathmandu", "false", {}, marks=pytest.mark.heavy),
    ("America/New_York", "false", {}),
    ("Asia/Kathmandu", "false", LEGACY),
]


def frame_of(spark, prefix):
    """Return a frame with a row per number, and a column per type; null where a type has fewer
    values."""
    rows = []
    for number in range(max(map(len, VALUES.values()))):
        cells = (
            f"CAST({values[number] if number < len(values) else 'NULL'} AS {kind}) AS "
            f"{prefix}{NAMES[kind]}"
            for kind, values in VALUES.items()
        )
        rows.append(f"SELECT {number} AS {prefix}number, {', '.join(cells)}")
    return spark.sql(" UNION ALL ".join(rows))


def is_comparable(spark, frame, key, column, ansi):
    """Return whether Spark compares the types; text that is no number ends a query in ANSI mode."""
    if (
        ansi == "true"
        and "string" in (key, column)
        and key != column
        and "binary" not in (key, column)
    ):
        return False
    try:
        with quiet_pyspark():
            frame.selectExpr(f"k_{NAMES[key]} = c_{NAMES[column]}")
    except Exception:
        return False
    return True


@pytest.mark.parametrize(("zone", "ansi", "settings"), SESSIONS)
def test_what_spark_finds_is_never_absent(spark, tmp_path, set_conf, zone, ansi, settings):
    for name, value in settings.items():
        set_conf(name, value)
    set_conf("spark.sql.session.timeZone", zone)
    set_conf("spark.sql.ansi.enabled", ansi)
    set_conf("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame_of(spark, "c_").coalesce(1).write.parquet(str(tmp_path / "lake"))
    (path,) = map(str, (tmp_path / "lake").glob("*.parquet"))
    add_filters(path, [f"c_{name}" for name in NAMES.values()], in_place=True, force=True)
    keys = frame_of(spark, "k_")
    pairs = keys.crossJoin(spark.read.parquet(str(tmp_path / "lake")))
    cases = [
        (key, column)
        for key, column in product(VALUES, VALUES)
        if is_comparable(spark, pairs, key, column, ansi)
    ]
    finds = (
        f"collect_set(CASE WHEN k_{NAMES[key]} = c_{NAMES[column]} THEN k_number END)"
        for key, column in cases
    )
    found = dict(zip(cases, pairs.selectExpr(*finds).collect()[0], strict=True))
    key_values = {
        kind: keys.select(f"k_{name}").toArrow().column(0).to_pylist()[: len(VALUES[kind])]
        for kind, name in NAMES.items()
    }
    wrong, answered = [], set()
    for key, column in cases:
        compares = partial(compare_in_spark, key, True)
        for number, value in enumerate(key_values[key]):
            row = Work(Probe(f"c_{NAMES[column]}", [value], compares=compares), Context())(path)
            assert row.report is not None, (key, column, value, row.reason)
            if row.report.is_absent:
                answered.add((key, column))
                if number in found[key, column]:
                    wrong.append((key, column, value))
    assert not wrong
    # Types that compare by their own value are answered.
    absent = {
        kind: Work(
            Probe(f"c_{NAMES[kind]}", [value], compares=partial(compare_in_spark, kind, True)),
            Context(),
        )(path).report.is_absent
        for kind, value in {"bigint": 5, "double": 5.0, "string": "x", "binary": b"x"}.items()
    }
    assert all(absent.values()), absent
    assert found["timestamp", "timestamp_ntz"], "a case that depends on the zone"


def test_dates_and_local_times_as_keys_of_instants(spark, tmp_path, set_conf):
    set_conf("spark.sql.session.timeZone", "Asia/Kathmandu")
    set_conf("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    lake = str(tmp_path / "lake")
    spark.sql("SELECT TIMESTAMP'2020-01-01 00:00:00' AS at").coalesce(1).write.parquet(lake)
    pipeline.run(
        AddFilter(FilterSpec("at")), pipeline.discover(spark, lake), edit=Edit(in_place=True)
    )
    files = pipeline.discover(spark, lake)
    reasons = set()
    for key in (
        "DATE'2020-01-01'",
        "TIMESTAMP_NTZ'2020-01-01 00:00:00'",
        "TIMESTAMP'2020-01-01 00:00:00'",
    ):
        keys = spark.sql(f"SELECT {key} AS at")
        (row,) = rows_of(probe_keys(files, "at", keys), Row[ProbeReport])
        assert not row.report.is_absent, key
        reasons.update(each.reason for each in row.report.inconclusive)
    assert len(reasons) == 1
    (row,) = rows_of(
        probe_keys(files, "at", spark.sql("SELECT TIMESTAMP'2020-01-01 00:00:01' AS at")),
        Row[ProbeReport],
    )
    assert row.report.is_absent
    (row,) = rows_of(pipeline.run(Probe("at", ["2020-01-01 00:00:00"]), files), Row[ProbeReport])
    assert row.report.notes == ("read as UTC",)
