"""Files of a table are scanned with the names that the table gives to their columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import deltalake
import pytest

from sbbf_tool.file import scan
from sbbf_tool.running.run import run
from sbbf_tool.verbs.probe import Probe
from support.delta_tables import make_table, rows_of
from support.tables import each

pytestmark = pytest.mark.skipif(not scan.can_scan(), reason="the extension _scan was not built")


def _rows(table: Path, verb: Probe) -> list[tuple[Any, ...]]:
    rows = []
    for row in run(verb, table):
        report = row.report
        answer = report and (report.file, report.hits, report.inconclusive, report.named_columns)
        rows.append((row.path, row.status, row.reason, answer))
    return rows


@each("column, value", [("id", 1000), ("id", 15), ("day", "a"), ("day", "x"), ("number", 15)])
@each("options", [{}, {"partitioned": True}])
def test_the_same_rows(tmp_path, monkeypatch, options, column, value):
    table = make_table(tmp_path / "t", files=6, **options)
    if column == "number":
        more = rows_of(0, 10).append_column("number", rows_of(0, 10)["id"])
        deltalake.write_deltalake(table, more, mode="append", schema_mode="merge")
    monkeypatch.setattr("sbbf_tool.running.local.FILES_WITHOUT_SCAN", 2)
    answers = _rows(table, Probe(column, [value]))
    monkeypatch.setattr(scan, "can_scan", lambda: False)
    assert answers == _rows(table, Probe(column, [value]))


def test_files_of_a_table_are_not_opened(tmp_path, monkeypatch):
    table = make_table(tmp_path / "t", files=6, partitioned=True)
    monkeypatch.setattr("sbbf_tool.running.local.FILES_WITHOUT_SCAN", 2)
    monkeypatch.setattr(Probe, "carry", None)
    assert [row.report.is_absent for row in run(Probe("id", [1000]), table)] == [True] * 6
