"""`sbbf inspect --no-bitsets`: sizes without the figures that need the bits, for a file, a folder and a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sbbf_tool
from sbbf_tool.bloom.filter import BloomFilter
from sbbf_tool.cli import run


@pytest.fixture
def printed(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run `inspect` on copies of a file; no bitset may be read."""
    (tmp_path / "lake").mkdir()
    for name in ("a", "b"):
        shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "lake" / f"{name}.parquet")
    monkeypatch.chdir(tmp_path / "lake")

    def refuse(*arguments: object) -> BloomFilter:
        raise AssertionError("a bitset was read")

    monkeypatch.setattr("sbbf_tool.operations.inspect.BloomFilter", refuse)

    def print_report(*words: str) -> str:
        assert run(["inspect", *words, "--no-bitsets", "--jobs", "1"]) == 0
        return capfd.readouterr().out

    return print_report


def test_the_table_has_sizes_alone(printed: Callable[..., str]) -> None:
    lines = printed("a.parquet").splitlines()
    assert lines[1].split() == ["column", "type", "filters", "size", "of", "data"]
    assert lines[2].split() == ["id", "INT64", "4", "of", "4", "576", "27.7", "%"]


def test_each_filter_has_its_header_and_size(printed: Callable[..., str]) -> None:
    header, first = printed("a.parquet", "--row-groups").splitlines()[1:3]
    assert header.split() == ["row", "group", "column", "type", "offset", "header", "bitset", "blocks", "of", "chunk"]
    assert first.split()[:7] == ["0", "id", "INT64", "35,761", "16", "128", "4"]


def test_a_folder_has_the_sums(printed: Callable[..., str]) -> None:
    *files, summary = map(json.loads, printed(".", "--format", "json").splitlines())
    assert [len(document["filters"]) for document in files] == [36, 36]
    assert {row["estimated_fpp"] for document in files for row in document["filters"]} == {None}
    columns: list[dict[str, Any]] = summary["totals"]["columns"]
    assert {(column["filter_bytes"], column["mean_fpp"]) for column in columns if column["column"] == "id"} == {(1152, None)}


def test_a_list_of_files_in_python(printed: Callable[..., str]) -> None:
    reports = list(sbbf_tool.open_files(".", jobs=1).inspect(bitsets=False))
    assert [report.filters[0].fill_ratio for report in reports if not isinstance(report, sbbf_tool.SbbfError)] == [None, None]
