"""Commands on columns that only some files of a table have, and on partition columns."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import explain, open_table, probe
from sbbf_tool.cli import run
from sbbf_tool.file.missing_column import MissingColumn
from sbbf_tool.file.table_file import TableFile
from sbbf_tool.parquet.column_names import ColumnNames
from support.tables import each


@pytest.fixture
def table(tmp_path) -> Path:
    """A table whose first file does not have the column `email`."""
    folder = tmp_path / "users"
    deltalake.write_deltalake(folder, pa.table({"id": range(100)}))
    later = pa.table({"id": range(100, 200), "email": [f"u{number}@x" for number in range(100)]})
    deltalake.write_deltalake(folder, later, mode="append", schema_mode="merge")
    return folder


@pytest.fixture
def partitioned(tmp_path) -> Path:
    folder = tmp_path / "orders"
    rows = pa.table({"id": range(100), "day": ["2026-01-01", "2026-01-02"] * 50})
    deltalake.write_deltalake(folder, rows, partition_by=["day"])
    return folder


def call(capsys, *words: object) -> tuple[int, str, str]:
    code = run([str(word) for word in words])
    output = capsys.readouterr()
    return code, output.out, output.err


def test_a_file_without_the_column_answers_absent(table, capsys):
    call(capsys, "add-filter", table, "-c", "email", "--in-place")
    code, out, _ = call(capsys, "probe", table, "email", "absent@x")
    assert (code, out) == (1, "Queried 1 value in 2 files: filters exclude all of them; 1 file without the column\n")
    assert call(capsys, "probe", table, "email", "u7@x")[0] == 0
    code, out, _ = call(capsys, "explain", table, "email", "absent@x")
    assert (code, out.splitlines()[-1]) == (1, "2 files: 2 done; 1 file without the column")


def test_null_is_in_a_file_without_the_column(table, capsys):
    code, out, _ = call(capsys, "probe", table, "-c", "email", "--null")
    assert code == 0
    assert sum(line.endswith(": null: row group 0") for line in out.splitlines()) == 2


def test_the_report_of_a_file_without_the_column(table):
    reports = [report for report in open_table(table).probe("email", ["a@x", None]) if report.type is None]
    assert [[answer.answer for value in report.values for answer in value.row_groups] for report in reports] == [["absent", "maybe"]]
    assert reports[0].values[0].row_groups[0].reason == "the file does not have the column, so that all its rows are null"


@each(
    "words, end",
    [
        (("verify", "-c", "email"), "2 files: 1 done, 1 not applicable; no filter to verify"),
        (("verify", "-c", "email", "-c", "id"), "2 files: 2 done; no filter to verify"),
        (("inspect", "-c", "email"), "2 files: 1 done, 1 not applicable; 100 rows in 1 row group"),
        (("add-filter", "-c", "email", "-n"), "2 files: 1 done, 1 not applicable; 1 filter would be added"),
        (("add-filter", "-c", "email", "-c", "id", "-n"), "2 files: 2 done; 3 filters would be added"),
    ],
)
def test_a_file_without_the_column_is_not_a_failure(table, capsys, words, end):
    code, out, _ = call(capsys, words[0], table, *words[1:])
    assert (code, out.splitlines()[-1].startswith(end)) == (0, True), out


def test_a_required_column_need_not_be_in_all_files(table, capsys):
    assert call(capsys, "check", table, "--require", "email")[0] == 1
    call(capsys, "add-filter", table, "-c", "email", "--in-place")
    code, out, _ = call(capsys, "check", table, "--require", "email", "--each-file", "--format", "json")
    assert code == 0, out
    outcomes = [
        rule["outcome"] for line in out.splitlines() for rule in json.loads(line).get("rules", ()) if rule["rule"] == "missing-filter"
    ]
    assert sorted(outcomes) == ["not run", "passed"]


@each("words", [("probe", "emial", "a"), ("verify", "-c", "emial"), ("check", "--require", "emial"), ("inspect", "-c", "emial")])
def test_a_column_that_the_table_does_not_have_is_an_error(table, capsys, words):
    code, _, err = call(capsys, words[0], table, *words[1:])
    assert (code, err) == (2, f"sbbf: {table}: there is no column 'emial'; did you mean email?\n")


@each(
    "columns, answer, reason",
    [
        (ColumnNames(unmapped=frozenset({("id",), ("email",)})), "absent", "all its rows are null"),
        (ColumnNames(unmapped=frozenset({("id",), ("ID",)})), "cannot say", "in other upper and lower case"),
        (ColumnNames(unmapped=frozenset({("email",)}), defaults=frozenset({("email",)})), "cannot say", "gives the column a value"),
        (ColumnNames({1: ("email",)}), "cannot say", "no field ids"),
        (ColumnNames({1: ("email",)}, {("mail",): ("email",)}), "absent", "all its rows are null"),
    ],
)
def test_only_the_schema_of_the_table_makes_an_absence_certain(tmp_path, columns, answer, reason):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1]}), path)
    name = "ID" if ("ID",) in columns.table_paths else "email"
    report = probe(TableFile(str(path), columns), name, "x")
    ((row_group,),) = [value.row_groups for value in report.values]
    assert (row_group.answer, reason in (row_group.reason or "")) == (answer, True)
    assert bool(report.inconclusive) == (answer != "absent")
    assert explain(TableFile(str(path), columns), name, "x").absent == (answer == "absent")


def test_a_column_of_a_partition_answers_by_its_values(partitioned, capsys):
    code, out, _ = call(capsys, "probe", partitioned, "day", "2026-01-02")
    assert code == 0
    assert (
        out.splitlines()[-1]
        == "Queried 1 value in 2 files: 1 file may hold 1 of the values; 1 file cannot hold any of them; 2 files without the column"
    )
    assert call(capsys, "probe", partitioned, "day", "2026-01-03")[0] == 1
    assert call(capsys, "explain", partitioned, "day", "2026-01-03")[0] == 1


@each(
    "stored, value, answer",
    [
        ("5", "5", "maybe"),
        ("5", 5, "maybe"),
        ("5", "05", "maybe"),
        ("5", "6", "absent"),
        ("0.1", "0.10000000149", "maybe"),
        ("0.1", Decimal("0.2"), "absent"),
        ("nan", float("inf"), "maybe"),
        ("5", "1e9999999", "maybe"),
        ("true", True, "maybe"),
        ("true", False, "absent"),
        ("2026-01-01", date(2026, 1, 1), "maybe"),
        ("2026-01-01", date(2026, 1, 2), "absent"),
        ("2026-01-01 00:00:00", "2026-01-01T01:00:00+01:00", "maybe"),
        ("eu", "us", "absent"),
        ("eu", "EU", "maybe"),
        ("eu", b"us", "maybe"),
        ("eu", "0x6575", "maybe"),
    ],
)
def test_partition_values_are_compared_in_all_forms(stored, value, answer):
    assert MissingColumn("c", "", stored).answer(value) == answer


def test_a_partition_column_needs_no_filter(partitioned, capsys):
    code, _, err = call(capsys, "add-filter", partitioned, "-c", "day", "--in-place")
    line = f"sbbf: {partitioned}: day is a partition column: its values are in the table's metadata, and no filter is needed\n"
    assert (code, err) == (2, line)


def test_a_second_run_says_that_there_is_nothing_to_do(partitioned, capsys):
    call(capsys, "add-filter", partitioned, "-c", "id", "--in-place")
    code, out, err = call(capsys, "add-filter", partitioned, "-c", "id", "--in-place")
    assert (code, err.endswith("; nothing to do\n")) == (0, True), err
    assert out.splitlines()[0] == "2 files: 2 had every filter; 0 filters added, 0 bytes"


@each("options", [(), ("-o", "a.parquet")])
def test_a_table_has_one_target(partitioned, capsys, options):
    code, _, err = call(capsys, "add-filter", partitioned, "-c", "id", *options)
    assert (code, err) == (2, "sbbf: a table changes in one commit; change it in place\n")


def test_a_dry_run_reports_what_the_commit_would_refuse(partitioned, capsys):
    log = partitioned / "_delta_log" / "00000000000000000001.json"
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": ["unheardOf"]}
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    code, _, err = call(capsys, "add-filter", partitioned, "-c", "id", "-n")
    assert (code, "unheardOf" in err) == (4, True), err


def test_fixes_name_the_table(partitioned, capsys):
    call(capsys, "add-filter", partitioned, "-c", "id", "--fpp", "0.4", "--in-place")
    code, out, _ = call(capsys, "check", partitioned, "--max-fpp", "0.00001", "--select", "fpp-above-limit", "--each-file")
    fixes = {line.strip() for line in out.splitlines() if line.startswith("    fix: ")}
    assert (code, fixes) == (1, {f"fix: sbbf add-filter {partitioned} -c id --rebuild all --fpp 1e-05 --in-place"})
