"""The page of `sbbf report` in a real browser: nothing foreign, nothing cut, both colour schemes, titles on marks, tables that sort."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sbbf_tool
from browser.chromium import Browser, read_json
from sbbf_tool.cli import run
from sbbf_tool.extensions.report import write_report
from support.defects import DEFECTS
from support.tables import each

pytestmark = [pytest.mark.nightly(1), pytest.mark.environment(minutes=1), pytest.mark.timeout(300)]

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@each("name", ["duckdb-filters.parquet", "spark-1000-bytes.parquet", "pyarrow-plain.parquet", "drafts", "."])
def test_the_page_has_no_problems(browser: Browser, page: Path, name: str) -> None:
    queries = ["id = 5", "id = 1000 AND k IN (1, 2)"] if name.startswith("duckdb") else []
    write_report(FIXTURES / name, page, queries=queries)
    assert browser.check_page(page) == []
    assert read_json(browser, "document.querySelectorAll('svg .mark').length") > 1
    assert read_json(browser, "[...document.querySelectorAll('figure')].filter(figure => !figure.querySelector('table')).length") == 0


def test_the_numbers_are_those_of_the_json(browser: Browser, page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = FIXTURES / "duckdb-filters.parquet"
    assert run(["inspect", str(path), "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    rows = [row for row in document["filters"] if row["estimated_fpp"] is not None]
    write_report(path, page)
    browser.open(page)
    numbers = "[...document.querySelectorAll('#%s table')].map(table => [...table.tBodies[0].rows].map(row => [...row.cells].map("
    numbers += "cell => cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v))))"
    (rates,) = read_json(browser, numbers % "rates")
    names = ("column", "row_group", "bits_per_value", "estimated_fpp", "estimated_ndv", "bitset_bytes")
    assert rates == [[row[name] for name in names] for row in rows]
    (fill,) = read_json(browser, numbers % "fill")
    assert [row[:4] for row in fill] == [[row[name] for name in ("column", "row_group", "fill_ratio", "blocks")] for row in rows]
    by_content, _ = read_json(browser, numbers % "bytes")
    assert sum(row[2] for row in by_content) == document["file_bytes"]


def test_before_and_now(browser: Browser, tmp_path: Path, page: Path) -> None:
    earlier = tmp_path / "earlier.json"
    assert run(["inspect", str(FIXTURES / "pyarrow-plain.parquet"), "--report", str(earlier), "-q"]) == 0
    write_report(FIXTURES / "pyarrow-filters.parquet", page, against=earlier)
    assert browser.check_page(page) == []


@each("defect", ["saturated", "identical-blocks", "unreadable-filter"])
def test_the_page_names_the_defect(browser: Browser, tmp_path: Path, page: Path, defect: str) -> None:
    DEFECTS[defect].make(tmp_path / "defect.parquet")
    write_report(tmp_path / "defect.parquet", page)
    assert browser.check_page(page) == []
    assert defect in browser.text().replace("\n", " ")


def test_names_of_rules_are_on_one_line(browser: Browser, tmp_path: Path, page: Path) -> None:
    DEFECTS["false-negatives"].make(tmp_path / "defect.parquet")
    write_report(tmp_path / "defect.parquet", page)
    browser.open(page)
    lines = "[...document.querySelectorAll('#findings td:nth-child(2)')].map(cell => { const range = document.createRange(); "
    lines += "range.selectNodeContents(cell); return range.getClientRects().length })"
    cells = "[...document.querySelectorAll('#findings td')].map(cell => cell.getBoundingClientRect())"
    for width in (400, 1280):
        browser.set_width(width)
        assert set(read_json(browser, lines)) == {1}
        # Also the fix, in the last cell, is in sight.
        assert max(read_json(browser, f"{cells}.map(cell => cell.right)")) <= width
        assert max(read_json(browser, f"{cells}.map(cell => cell.height)")) < 200


def test_a_heading_sorts_its_table(browser: Browser, page: Path) -> None:
    write_report(FIXTURES / "duckdb-filters.parquet", page)
    browser.open(page)
    sizes = "[...document.querySelectorAll('#columns tbody tr')].map(row => Number(row.cells[3].dataset.v))"
    before = read_json(browser, sizes)
    click = "document.querySelectorAll('#columns th')[3].querySelector('button').click()"
    browser.driver.execute_script(click)
    assert read_json(browser, sizes) == sorted(before, reverse=True)
    browser.driver.execute_script(click)
    assert read_json(browser, sizes) == sorted(before)
    assert browser.messages() == []


def test_a_report_in_a_notebook(browser: Browser, page: Path) -> None:
    report = sbbf_tool.inspect(FIXTURES / "duckdb-filters.parquet")
    explanation = sbbf_tool.explain(FIXTURES / "duckdb-filters.parquet", "id", "5")
    body = f"<main><h1>Notebook</h1><h2>Reports</h2>{report._repr_html_()}{explanation._repr_html_()}</main>"
    head = '<meta charset="utf-8"><title>Notebook</title><link rel="icon" href="data:,">'
    page.write_text(f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>')
    problems = [line for line in browser.check_page(page) if "overflow" not in line]
    assert problems == []
