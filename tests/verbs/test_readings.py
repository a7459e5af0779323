"""Key-values of a footer, and schemas of tables, that change what stored bytes mean or which of
them are equal."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from sbbf_tool import Edit, FilterSpec, add_filters, explain, inspect, probe, prune, run
from sbbf_tool.parquet.idl.ttypes import FileMetaData, KeyValue
from sbbf_tool.verbs import AddFilter, Probe
from support.corpus_edits import edit_footer
from support.tables import each
from verbs.instants import rounded_down, write_int96

SCHEMA, VERSION = "org.apache.spark.sql.parquet.row.metadata", "org.apache.spark.version"
PARQUET_JAVA = "parquet-mr version 1.17.0 (build x)"
LOWER_CASE = {"__COLLATIONS": {"t": "spark.UTF8_LCASE"}}


def schema_of(kind: Any, **metadata: Any) -> str:
    return json.dumps(
        {
            "type": "struct",
            "fields": [{"name": "t", "type": kind, "nullable": True, "metadata": metadata}],
        }
    )


DATES = pa.array([dt.date(1500, 1, 1), dt.date(2020, 1, 1)])
DRILL, WRITER = "drill.version", "drill-writer.version"
SHIFT = 2 * 2_440_588
"""Days by which Drill before 1.9 stored dates too late."""
SHIFTED_DATES = pa.array(
    [(day - dt.date(1970, 1, 1)).days + SHIFT for day in DATES.to_pylist()], pa.int32()
).cast(pa.date32())
INSTANTS = pa.array(
    [dt.datetime(1850, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]
)
TEXTS = pa.array(["Ab", "cd "])
LISTS = pa.array([["Ab"], ["cd "]])
MAPS = pa.array([[("k", "Ab")], [("l", "cd ")]], pa.map_(pa.string(), pa.string()))
OLD, YOUNG = ["1400-01-01", "1582-10-14"], ["1582-10-15", "2021-01-01"]
OLD_TIMES, YOUNG_TIMES = (
    ["1400-01-01T00:00:00Z", "1899-12-31T23:59:59Z"],
    ["1900-01-01T00:00:00Z", "2021-01-01T00:00:00Z"],
)
CHAR_ASKED = ["Ab", "Ab   ", "cd", "cd ", "cd    ", "cd     "], ["Ac", "C", "c d"]
CASES: dict[str, tuple[dict[str, str], pa.Array, str, list[str], list[str]]] = {
    # Key-values, stored values, column, values that cannot be excluded, values that are absent.
    "date-legacy": ({VERSION: "4.3.0", "org.apache.spark.legacyDateTime": ""}, DATES, "t", OLD,
        YOUNG),
    "date-legacy-int96-only": ({VERSION: "4.3.0", "org.apache.spark.legacyINT96": ""}, DATES, "t",
        [], [*OLD, *YOUNG]),
    "date-spark-2": ({VERSION: "2.4.8"}, DATES, "t", OLD, YOUNG),
    "date-spark-without-version": ({SCHEMA: schema_of("date")}, DATES, "t", OLD, YOUNG),
    "date-spark-4": ({VERSION: "4.3.0", SCHEMA: schema_of("date")}, DATES, "t", [], [*OLD, *YOUNG]),
    "date-hive-hybrid": ({"writer.date.proleptic": "false"}, DATES, "t", OLD, YOUNG),
    "date-hive-proleptic": ({"writer.date.proleptic": "true"}, DATES, "t", [], [*OLD, *YOUNG]),
    "date-of-old-drill": ({DRILL: "1.8.0"}, SHIFTED_DATES, "t",
        ["1500-01-01", "2020-01-01", "2021-01-01"], []),
    "date-of-first-writer-of-drill": ({DRILL: "1.9.0", WRITER: "1"}, SHIFTED_DATES, "t",
        ["2020-01-01"], []),
    "date-of-drill-1.9": ({DRILL: "1.9.0", "is.date.correct": "true"}, DATES, "t", [], YOUNG),
    "date-of-drill-1.21": ({DRILL: "1.21.0", WRITER: "3"}, DATES, "t", [], YOUNG),
    "instant-of-old-drill": ({DRILL: "1.8.0"}, INSTANTS, "t", [], YOUNG_TIMES),
    "instant-legacy": ({VERSION: "4.3.0", "org.apache.spark.legacyDateTime": ""}, INSTANTS, "t",
        OLD_TIMES, YOUNG_TIMES),
    "instant-spark-4": ({VERSION: "4.3.0"}, INSTANTS, "t", [], [*OLD_TIMES, *YOUNG_TIMES]),
    "collation": ({SCHEMA: schema_of("string", **LOWER_CASE), VERSION: "4.3.0"}, TEXTS, "t",
        ["ab", "AB", "Ab", "zz"], []),
    "collation-of-elements": (
        {SCHEMA: schema_of({"type": "array", "elementType": "string"},
            __COLLATIONS={"t.element": "icu.DE"})},
        *(LISTS, "t", ["ab", "zz"], []),
    ),
    "collation-of-another": ({SCHEMA: schema_of("string", __COLLATIONS={"u": "icu.DE"})}, TEXTS,
        "t", ["Ab"], ["ab"]),
    "char": ({SCHEMA: schema_of("char(6)")}, TEXTS, "t", *CHAR_ASKED),
    "char-as-string": ({SCHEMA: schema_of("string", __CHAR_VARCHAR_TYPE_STRING="char(6)")}, TEXTS,
        "t", *CHAR_ASKED),
    "char-of-values": (
        {SCHEMA: schema_of({"type": "map", "keyType": "string", "valueType": "char(6)"})},
        *(MAPS, "t.value", *CHAR_ASKED),
    ),
    "char-in-array-as-string": (
        {SCHEMA: schema_of({"type": "array", "elementType": "string"},
            __CHAR_VARCHAR_TYPE_STRING="array<char(6)>")},
        *(LISTS, "t", ["Ab", "zz"], []),
    ),
    "varchar": ({SCHEMA: schema_of("varchar(6)")}, TEXTS, "t", ["Ab", "cd "], ["cd", "Ab "]),
    "not-json": ({SCHEMA: "__COLLATIONS char(6)"}, TEXTS, "t", ["Ab"], ["ab"]),
    "deep": ({SCHEMA: '{"type":' * 900 + '"__COLLATIONS"' + "}" * 900}, TEXTS, "t", ["Ab"], ["ab"]),
}  # fmt: skip


def state(path: Path, key_values: dict[str, str], created_by: str | None = PARQUET_JAVA) -> Path:
    """Write key-values and the writer into a footer."""

    def change(metadata: FileMetaData) -> None:
        metadata.key_value_metadata, metadata.created_by = (
            [KeyValue(*pair) for pair in key_values.items()],
            created_by,
        )

    return edit_footer(path, change)


def test_dates_of_drill_are_named(tmp_path: Path) -> None:
    def write(created_by: str | None, key_values: dict[str, str], *, statistics: bool) -> Path:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"t": SHIFTED_DATES}), path, write_statistics=statistics)
        return state(path, key_values, created_by)

    migrated = "parquet-mr version 1.8.1-drill-r0 (build 6b605a4ea05b66e1a6bf843353abcb4834a4ced8)"
    for created_by, key_values in ((PARQUET_JAVA, {DRILL: "1.8.0"}), (migrated, {})):
        path = write(created_by, key_values, statistics=True)
        assert any("Drill before 1.9" in note for note in inspect(path).notes)
        report = add_filters(path, "t", in_place=True)
        assert any("Drill before 1.9" in warning for warning in report.warnings)
        (hit,) = probe(path, "t", "2021-01-01").hits
        assert hit.answer == "cannot say"
        assert "Drill before 1.9" in (hit.reason or "")
    for unversioned in ("parquet-mr", None):
        path = write(unversioned, {}, statistics=True)
        (group,) = probe(path, "t", "2021-01-01").inconclusive
        assert "Drill before 1.9" in (group.reason or "")
    assert probe(write(PARQUET_JAVA, {}, statistics=True), "t", "2021-01-01").is_absent


@each("case", list(CASES))
def test_no_value_is_absent_that_an_engine_may_find(tmp_path: Path, case: str) -> None:
    key_values, stored, column, doubtful, absent = CASES[case]
    pq.write_table(
        pa.table({"t": stored}),
        tmp_path / "a.parquet",
        use_dictionary=False,
        write_statistics=False,
    )
    path = state(tmp_path / "a.parquet", key_values)
    add_filters(path, [column], in_place=True)
    assert [
        value.value for value in probe(path, column, [*doubtful, *absent]).values if value.is_absent
    ] == absent
    many = [*doubtful, *absent, *(f"{text}" for text in absent for _ in range(1001))]
    assert [
        value.value for value in probe(path, column, many).values if not value.is_absent
    ] == doubtful
    for text in doubtful:
        report = explain(path, column, text)
        assert not report.absent
        assert not any(engine.skipped_by_filter for engine in report.engines)
        if column == "t" and not pa.types.is_nested(stored.type):
            assert prune(path, column, text).files
    for text in absent:
        assert explain(path, column, text).absent
    if case in ("date-legacy", "instant-legacy", "collation", "char"):
        assert any(f"column {column}: " in note for note in inspect(path).notes)


@each(
    "key_values, created_by, doubtful, absent",
    [
        (
            {},
            "parquet-cpp-arrow version 23.0.0",
            ["2020-01-01T00:00:00.123456Z"],
            ["2020-01-01T00:00:00.123456701Z"],
        ),
        (
            {},
            "impala version 4.0",
            ["2020-01-01T00:00:00.123456Z"],
            ["2020-01-01T00:00:00.123456701Z"],
        ),
        (
            {VERSION: "4.3.0"},
            PARQUET_JAVA,
            [],
            ["2020-01-01T00:00:00.123456Z", "1400-01-01T00:00:00Z"],
        ),
        (
            {VERSION: "3.0.3"},
            PARQUET_JAVA,
            ["1400-01-01T00:00:00Z"],
            ["2020-01-01T00:00:00.123456Z"],
        ),
        (
            {VERSION: "4.3.0", "org.apache.spark.legacyINT96": ""},
            PARQUET_JAVA,
            ["1400-01-01T00:00:00Z"],
            ["2020-01-01T00:00:00.123456Z"],
        ),
        (
            {VERSION: "4.3.0", "org.apache.spark.legacyDateTime": ""},
            PARQUET_JAVA,
            [],
            ["1400-01-01T00:00:00Z"],
        ),
    ],
)
def test_instants_of_int96(
    tmp_path: Path,
    key_values: dict[str, str],
    created_by: str,
    doubtful: list[str],
    absent: list[str],
) -> None:
    stored = [1_577_836_800_123_456_700, 1_577_836_800_000_000_000]
    path = write_int96(
        tmp_path / "a.parquet", [[rounded_down(instant) for instant in stored]], created_by
    )
    state(path, key_values, created_by)
    add_filters(path, ["at"], in_place=True)
    assert [
        value.value for value in probe(path, "at", [*doubtful, *absent]).values if value.is_absent
    ] == absent
    assert not probe(
        path, "at", ["2020-01-01T00:00:00.1234567Z", "0x" + rounded_down(stored[1]).hex()]
    ).is_absent


@each(
    "metadata, doubtful",
    [(LOWER_CASE, ["ab"]), ({"__CHAR_VARCHAR_TYPE_STRING": "char(6)"}, ["Ab    "]), ({}, [])],
)
def test_the_schema_of_a_delta_table_counts_too(
    tmp_path: Path, metadata: dict[str, Any], doubtful: list[str]
) -> None:
    write_deltalake(str(tmp_path), pa.table({"t": TEXTS}))
    (log,) = (tmp_path / "_delta_log").glob("*0.json")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "metaData" in line:
            line["metaData"]["schemaString"] = schema_of("string", **metadata)
    log.write_text("\n".join(map(json.dumps, lines)))
    assert run(AddFilter(FilterSpec("t")), tmp_path, edit=Edit(in_place=True)).files == {"ok": 1}
    (report,) = (row.report for row in run(Probe("t", ["Ab", *doubtful, "zzzzzz"]), tmp_path))
    assert report is not None
    is_doubtful = "__COLLATIONS" in metadata
    assert [value.value for value in report.values if not value.is_absent] == [
        "Ab",
        *doubtful,
        *(["zzzzzz"] if is_doubtful else []),
    ]
