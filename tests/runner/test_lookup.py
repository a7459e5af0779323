"""A lookup of many values in many files gives the answers of `probe` for each file, also for filters of drafts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from sbbf_tool import SbbfError, add_filters, open_files
from sbbf_tool.cli import run
from sbbf_tool.reports.lookup import LookupReport
from sbbf_tool.reports.probe import ProbeReport
from sbbf_tool.runner import works
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection
from support.lakes import small_files

VALUES = ("1", "7", "207", "1000", "3516", "999999", "-3", None)
DIALECTS = (None, "draft1-thrift", "draft1-raw")
NULLS = "nulls are never in a Bloom filter"


@pytest.fixture
def lake(tmp_path: Path, fixtures: Path) -> Path:
    """Files with filters of the released format, with filters of a draft, and without filters."""
    folder = small_files(tmp_path / "lake", 3)
    add_filters(folder / "part-00001.parquet", ["id"], in_place=True)
    shutil.copy(fixtures / "drafts" / "draft1-thrift.parquet", folder)
    for name in ("pyarrow-plain", "pyarrow-filters"):
        shutil.copy(fixtures / f"{name}.parquet", folder)
    return folder


def hits_of(report: ProbeReport) -> dict[str, tuple[int, ...]]:
    """Return the row groups that may hold each value according to `probe`."""
    hits = {
        value.value: tuple(answer.row_group for answer in value.row_groups if answer.answer == "maybe" or answer.reason == NULLS)
        for value in report.values
    }
    return {value: numbers for value, numbers in hits.items() if numbers}


def inconclusive_of(report: ProbeReport) -> set[int]:
    answers = (answer for value in report.values if value.note != NULLS for answer in value.row_groups)
    return {answer.row_group for answer in answers if answer.answer not in ("maybe", "absent")}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_lookup_gives_the_answers_of_probe(lake, dialect):
    rows = list(LocalRunner().run(Selection(lake), works.look_up("id", VALUES, dialect=dialect)))
    probed = list(open_files(lake).probe("id", VALUES, dialect=dialect))
    assert len(rows) == len(probed) == 6
    for row, report in zip(rows, probed, strict=True):
        if isinstance(report, SbbfError):
            assert str(row.error) == str(report)
            continue
        looked: LookupReport = row.report
        assert (looked.file, looked.column, looked.keys) == (report.file, report.column, len(VALUES))
        assert {hit.value: hit.row_groups for hit in looked.hits} == hits_of(report)
        assert {number for answer in looked.inconclusive for number in answer.row_groups} == inconclusive_of(report)
        assert looked.is_absent == report.is_absent


def test_a_draft_filter_answers_only_with_its_dialect(lake, capsys):
    def look_up(*options: str) -> dict:
        capsys.readouterr()
        run(["probe", str(lake), "-c", "id", "--value", "1000", "--value", "999999", "--format", "json", *options])
        documents = map(json.loads, capsys.readouterr().out.splitlines())
        return next(document for document in documents if document.get("file") == str(lake / "draft1-thrift.parquet"))

    assert look_up()["hits"] == []
    (inconclusive,) = look_up()["inconclusive"]
    assert inconclusive["answer"] == "cannot say"
    assert inconclusive["reason"].endswith("; name the dialect to query it")
    run(["probe", str(lake), "-c", "id", "--value", "1000"])
    assert "; name the dialect to query it)\n" in capsys.readouterr().out
    report = look_up("--dialect", "draft1-thrift")
    assert report["inconclusive"] == []
    assert [hit["value"] for hit in report["hits"]] == ["1000"]
