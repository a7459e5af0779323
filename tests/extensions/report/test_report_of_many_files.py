"""`sbbf report` about many files: sums, partitions, files that cannot be read, and a page that stays small."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.extensions.report.contents import FileContents
from sbbf_tool.extensions.report.gather import Gather
from sbbf_tool.extensions.report.page import Page
from sbbf_tool.extensions.report.pictures.svg import MOST_MARKS
from support.html_pages import parse_page

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    for day in (1, 2, 3):
        (folder / f"day=2026-01-0{day}").mkdir(parents=True)
        for at in range(2):
            path = folder / f"day=2026-01-0{day}" / f"{at}.parquet"
            values = range(day * 1000 + at, day * 1000 + at + 500)
            pq.write_table(pa.table({"id": values, "k": [f"k{value % 50}" for value in values]}), path, row_group_size=250)
            if (day, at) != (2, 1):
                sbbf_tool.add_filters(path, ["id", "k"] if day == 1 else "id", in_place=True)
    return folder


def test_the_sums_are_those_of_inspect(lake, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run(["report", str(lake), "-o", str(page), "--query", "id = 1700", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    reports = [sbbf_tool.inspect(path) for path in sorted(lake.rglob("*.parquet"))]
    filters = [row for report in reports for row in report.filters]
    assert {name: document[name] for name in ("schema", "output", "bytes", "files", "row_groups", "filters", "exit_code")} == {
        "schema": "sbbf.report",
        "output": str(page),
        "bytes": page.stat().st_size,
        "files": 6,
        "row_groups": 12,
        "filters": len(filters),
        "exit_code": 0,
    }
    content = parse_page(page.read_text())
    assert content.figures == ["bytes", "rates", "folds", "fill", "partitions", "distribution", "query_1"]
    columns = {row[0]: row[1:] for row in content.table("Columns with filters").rows}
    for name in ("id", "k"):
        of_column = [row for row in filters if row.column == name]
        rates = [row.estimated_fpp for row in of_column]
        size = sum(row.header_bytes + row.bitset_bytes for row in of_column)
        assert columns[name] == [len(of_column), 12, size, pytest.approx(sum(rates) / len(rates)), max(rates)]
    partitions = {(row[0], row[1]): row[2:5] for row in content.table("Filters by partition and column").rows}
    assert partitions == {
        ("day=2026-01-01", "id"): [2, 4, 4],
        ("day=2026-01-01", "k"): [2, 4, 4],
        ("day=2026-01-02", "id"): [2, 2, 4],
        ("day=2026-01-03", "id"): [2, 4, 4],
    }
    assert sum(content.table("Filters by rate").column("filters")) == len(filters)
    worst = content.table("The worst files")
    assert sorted(worst.column("file")) == sorted(report.file for report in reports)
    for row in content.table("Row groups by engine").rows:
        assert sum(row[1:]) == 12


def test_files_that_cannot_be_read_are_listed(lake, tmp_path, capsys):
    (lake / "day=2026-01-01" / "torn.parquet").write_bytes(b"PAR1")
    page = tmp_path / "page.html"
    assert run(["report", str(lake), "-o", str(page)]) == 3
    out, err = capsys.readouterr()
    assert out.startswith(f"{page}: 6 files, ")
    assert err.startswith(f"sbbf: {lake}/day=2026-01-01/torn.parquet: ")
    assert err.count("\n") == 1
    (row,) = parse_page(page.read_text()).table("Files that could not be read").rows
    assert row[0] == f"{lake}/day=2026-01-01/torn.parquet"
    assert str(row[1]) in err


def test_a_table(tmp_path):
    table = pa.table({"id": range(100), "day": ["a", "b"] * 50})
    deltalake.write_deltalake(str(tmp_path / "orders"), table, partition_by=["day"])
    assert run(["add-filter", str(tmp_path / "orders"), "-c", "id", "--in-place"]) == 0
    page = tmp_path / "page.html"
    report = sbbf_tool.write_report(tmp_path / "orders", page, queries="id = 7")
    assert (report.files, report.filters) == (2, 2)
    content = parse_page(page.read_text())
    assert {row[0] for row in content.table("Filters by partition and column").rows} == {"day=a", "day=b"}
    assert run(["report", str(tmp_path / "orders"), "-o", str(page), "--query", "nothing = 7"]) == 2


def test_a_column_that_only_some_files_have(lake, tmp_path, capsys):
    pq.write_table(pa.table({"other": [1]}), lake / "day=2026-01-01" / "other.parquet")
    page = tmp_path / "page.html"
    assert run(["report", str(lake), "-o", str(page), "--query", "id = 7"]) == 0
    assert "1 file without a column of it: there is no column 'id'" in " ".join(parse_page(page.read_text()).texts)
    assert run(["report", str(lake), "-o", str(page), "--query", "nothing = 7"]) == 2
    assert "no file has the column" in capsys.readouterr().err


def synthetic_files(numbers: range) -> Iterator[FileContents]:
    """Yield the contents of files in partitions of 20, with 300 columns whose filters have rates from 1e-9 to 1."""
    contents = Gather(detailed=False, quick=True)(str(FIXTURES / "pyarrow-types-filters.parquet"))
    details = contents.filters[:2]
    for at in numbers:
        name = f"/lake/day={at // 20:05d}/part-{at:06d}-{'x' * 60}.parquet"
        rate, bits = min(1.0, 1e-9 * 1.0015**at), 1 + at % 997 * 0.7
        names = [f"column_{(at + place) % 300}" for place in range(len(details))]
        filters = tuple(
            replace(each, column=column, estimated_fpp=rate, bits_per_value=bits)
            for each, column in zip(contents.inspect.filters, names, strict=False)
        )
        columns = tuple(replace(detail, column=column) for detail, column in zip(details, names, strict=True))
        yield replace(contents, inspect=replace(contents.inspect, file=name, filters=filters), filters=columns)


@pytest.mark.heavy
@pytest.mark.slow
def test_a_page_about_20_000_files_is_below_a_megabyte():
    page = Page(["/lake"], is_single=False)
    for contents in synthetic_files(range(18_000)):
        page.add(contents)
    tracemalloc.start()
    for contents in synthetic_files(range(18_000, 20_000)):
        page.add(contents)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 400_000  # 20 bytes for each of the files would be that
    for at in range(5000):
        page.add_unreadable(f"/lake/broken-{at}.parquet", "the file is torn " * 10)
    text = page.render("0")
    assert len(text) < 1_000_000
    content = parse_page(text)
    assert page.totals.files == 20_000
    for figure in page.figures():
        assert figure.svg.count("<title>") <= MOST_MARKS
    assert sum(content.table("Filters by rate").column("filters")) == 40_000
    assert any("and 4,900 more rows" in each for each in content.texts)


@pytest.mark.heavy
def test_a_file_of_many_row_groups_is_shown_in_bins(tmp_path):
    path, page = tmp_path / "many.parquet", tmp_path / "page.html"
    pq.write_table(pa.table({name: range(2400) for name in "ab"}), path, row_group_size=2, use_dictionary=False)
    sbbf_tool.add_filters(path, ["a", "b"], in_place=True)
    sbbf_tool.write_report(path, page, queries=["a = 5"], quick=True)
    content = parse_page(page.read_text())
    assert content.marks <= 7 * MOST_MARKS
    assert "".join(page.read_text().split("<figure")[1:2]).count("<rect") <= MOST_MARKS
    assert any("Each cell is the fullest filter of 2 row groups" in each for each in content.texts)
    assert any("and 2,200 more rows" in each for each in content.texts)
    assert page.stat().st_size < 1_000_000
