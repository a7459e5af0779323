"""A file of many that lacks the column of a request: answered for where that is certain, and otherwise left out, not an error."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, probe
from sbbf_tool.errors import NoColumnError
from sbbf_tool.verbs.explain import explain
from support.tables import each

ABSENT, MAYBE, CANNOT_SAY = "absent", "maybe", "cannot say"


def write(path: Path, **columns: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns or {"id": range(100)}), path, row_group_size=50)
    return path


def answers(path: object, column: str, values: list[object]) -> list[str]:
    """Return the answers of `probe`, after comparing them with those of `explain`."""
    report = probe(path, column, values, strict=False)
    answer_sets = [{answer.answer for answer in value.row_groups} for value in report.values]
    assert all(len(each) == 1 for each in answer_sets)
    for value, (answer,) in zip(values, answer_sets, strict=True):
        explanation = explain(path, column, value, strict=False)
        assert explanation.absent == (answer == ABSENT)
    return [answer for (answer,) in answer_sets]


class TestAnswers:
    def test_a_column_that_the_file_lacks_is_absent(self, tmp_path: Path):
        path = write(tmp_path / "a.parquet")
        assert answers(path, "user_id", ["5", 5, b"x", 1.5]) == [ABSENT] * 4
        (column,) = probe(path, "user_id", ["5"], strict=False).named_columns
        assert (column.name, column.type) == ("user_id", None)
        for verb in (probe, explain):
            with pytest.raises(NoColumnError, match="there is no column 'user_id'"):
                verb(path, "user_id", "5")

    def test_null_may_be_there(self, tmp_path: Path):
        assert answers(write(tmp_path / "a.parquet"), "user_id", [None, "null", "5"]) == [MAYBE, MAYBE, ABSENT]

    @each("name", ["user_id", "USER_ID", "`User_Id`"])
    def test_a_column_that_differs_by_case_may_hold_the_value(self, tmp_path: Path, name: str):
        assert answers(write(tmp_path / "a.parquet", User_ID=range(100)), name.replace("`User_Id`", "`User_id`"), ["500"]) == [CANNOT_SAY]

    @each("name", ["tags.list.element", "tags.bag.array_element", "TAGS.element", "tags.array"])
    def test_another_form_of_the_same_list_may_hold_the_value(self, tmp_path: Path, name: str):
        tags = pa.array([["a", "b"]] * 100, pa.list_(pa.field("item", pa.string())))
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"tags": tags}), path, use_compliant_nested_type=False)
        assert answers(path, name, ["z"]) == [CANNOT_SAY]

    def test_a_table_may_give_a_value(self, tmp_path: Path):
        (tmp_path / "orders" / "_delta_log").mkdir(parents=True)
        (tmp_path / "orders" / "_delta_log" / f"{0:020}.json").write_text("{}\n")
        path = write(tmp_path / "orders" / "part" / "a.parquet")
        assert answers(path, "user_id", ["5"]) == [CANNOT_SAY]


class TestPartitions:
    @each(
        "partition, value, answer",
        [
            ("2026-01-31", "2026-01-31", MAYBE),
            ("2026-01-31", datetime.date(2026, 1, 31), MAYBE),
            ("2026-01-31", "2026-02-01", ABSENT),
            ("2026-01-31", "2026-01-31 00:00:00", MAYBE),
            ("7", 7, MAYBE),
            ("07", "7", MAYBE),
            ("7.0", Decimal(7), MAYBE),
            ("7", 8, ABSENT),
            ("7", None, ABSENT),
            ("", None, MAYBE),
            ("eu", "eu", MAYBE),
            ("eu", "us", ABSENT),
            ("eu", "EU", MAYBE),
            ("true", True, MAYBE),
            ("true", False, ABSENT),
            ("0.1", "0.10000000149", MAYBE),
            ("0.1", Decimal("0.2"), ABSENT),
            ("nan", float("inf"), MAYBE),
            ("5", "1e9999999", MAYBE),
            ("2026-01-01 00:00:00", "2026-01-01T01:00:00+01:00", MAYBE),
            ("a%2Fb", "a/b", MAYBE),
            ("eu", b"eu", MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", None, MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", "null", MAYBE),
            ("__HIVE_DEFAULT_PARTITION__", "eu", ABSENT),
        ],
    )
    def test_the_value_of_the_partition_answers(self, tmp_path: Path, partition: str, value: object, answer: str):
        path = write(tmp_path / f"part={partition}" / "a.parquet")
        assert answers(path, "part", [value]) == [answer]
        assert probe(path, "part", [value], strict=False).named_columns[0].type == "partition"

    def test_the_column_of_the_file_comes_first(self, tmp_path: Path):
        path = write(tmp_path / "id=5" / "a.parquet")
        add_filters(path, "id", in_place=True)
        assert answers(path, "id", [6000]) == [ABSENT]
