"""Statistics that exclude stored values of chunks without a filter: `check` finds them if their
rule is selected by name, and `add-filter` warns of each chunk that it reads."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, check
from sbbf_tool.cli import main
from sbbf_tool.parquet.idl.ttypes import FileMetaData
from sbbf_tool.rules.catalog import Policy
from support.corpus_edits import edit_footer
from support.tables import each

SELECTED = Policy(select=("wrong-statistics",))
NUMBERS = pa.array([*range(99), None], pa.int64())
WRITERS: dict[str, dict[str, Any]] = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "delta": {"use_dictionary": False, "column_encoding": {"x": "DELTA_BINARY_PACKED"}},
}
LIES: dict[str, tuple[dict[str, Any], str | None]] = {
    "none": ({}, None),
    "max": ({"max_value": struct.pack("<q", 50)}, "a value is above max_value"),
    "min": ({"min_value": struct.pack("<q", 5)}, "a value is below min_value"),
    "nulls": ({"null_count": 0}, "queries for null lose rows"),
    "only nulls": ({"null_count": 100}, "queries for a value lose rows"),
    "wide": ({"max_value": struct.pack("<q", 5000)}, None),
}


def state(path: Path, row_group: int, column: int, **statistics: Any) -> Path:
    """Write other statistics into a footer."""

    def change(metadata: FileMetaData) -> None:
        stated = metadata.row_groups[row_group].columns[column].meta_data.statistics
        for name, value in statistics.items():
            setattr(stated, name, value)

    return edit_footer(path, change)


@each("writer", list(WRITERS))
@each("lie", list(LIES))
def test_a_chunk_without_a_filter_is_read_if_the_rule_is_selected(
    tmp_path: Path, writer: str, lie: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": NUMBERS, "y": NUMBERS}), path, **WRITERS[writer])
    statistics, fact = LIES[lie]
    state(path, 0, 0, **statistics)
    for with_filter in ((), ("y",), ("x",)):
        if with_filter:
            add_filters(path, with_filter, in_place=True)
        findings = check(path, SELECTED).findings
        assert [each.column for each in findings] == ([] if fact is None else ["x"])
        assert all(fact in str(each.evidence[0]) for each in findings if fact is not None)
        assert check(path, SELECTED).failed == (fact is not None)
    report = add_filters(path, "x", output=tmp_path / "b.parquet", rebuild="all")
    # Of a chunk whose values are all in a dictionary, a build reads no page that tells nulls.
    is_read = (lie, writer) != ("nulls", "dictionary")
    warned = [warning for warning in report.warnings if fact is not None and fact in warning]
    assert len(warned) == len(report.warnings) == int(fact is not None and is_read)


def test_only_the_selected_rule_reads_chunks_without_a_filter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": NUMBERS}), path, row_group_size=50, compression="none")
    state(path, 1, 0, max_value=struct.pack("<q", 50))
    assert not check(path).findings
    ((evidence,),) = (finding.evidence for finding in check(path, SELECTED).findings)
    assert evidence.row_group == 1
    assert main(["check", str(path), "--select", "wrong-statistics"]) == 1
    assert "a value is above max_value" in capsys.readouterr().out
    data = bytearray(path.read_bytes())
    data[4:40] = bytes(36)
    path.write_bytes(data)
    report = check(path, SELECTED)
    assert [each.evidence[0].row_group for each in report.findings] == [1]
    assert "row group 0" in report.unreadable[0]


def test_a_filter_that_is_left_out_is_no_reason_not_to_warn(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": range(20_000), "y": [1] * 20_000}), path)
    state(path, 0, 0, max_value=struct.pack("<q", 50))
    report = add_filters(path, ["x", "y"], max_bytes=64, output=tmp_path / "b.parquet")
    assert [each.column for each in report.saturated_filters] == ["x"]
    assert any("a value is above max_value" in warning for warning in report.warnings)
