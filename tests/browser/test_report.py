"""The page of `sbbf report` in a real browser: nothing foreign, nothing cut, both colour schemes,
titles on marks, tables that sort."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sbbf_tool
from browser.chromium import Browser, read_json
from sbbf_tool.extensions.report import write_report
from support.defects import DEFECTS
from support.tables import each

pytestmark = [pytest.mark.nightly(1), pytest.mark.environment(minutes=1), pytest.mark.timeout(300)]

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@each(
    "name",
    ["duckdb-filters.parquet", "spark-1000-bytes.parquet", "pyarrow-plain.parquet", "drafts", "."],
)
def test_the_page_has_no_problems(browser: Browser, page: Path, name: str) -> None:
    queries = ["id = 5", "id = 1000 AND k IN (1, 2)"] if name.startswith("duckdb") else []
    write_report(FIXTURES / name, page, queries=queries)
    assert browser.check_page(page) == []
    assert read_json(browser, "document.querySelectorAll('svg .mark').length") > 1
    assert (
        read_json(
            browser,
            "[...document.querySelectorAll('figure')].filter(figure => "
            "!figure.querySelector('table')).length",
        )
        == 0
    )


def test_names_of_rules_are_on_one_line(browser: Browser, tmp_path: Path, page: Path) -> None:
    DEFECTS["false-negatives"].make(tmp_path / "defect.parquet")
    write_report(tmp_path / "defect.parquet", page)
    browser.open(page)
    lines = (
        "[...document.querySelectorAll('#findings td:nth-child(2)')].map(cell => { const "
        "range = document.createRange(); "
    )
    lines += "range.selectNodeContents(cell); return range.getClientRects().length })"
    cells = (
        "[...document.querySelectorAll('#findings td')].map(cell => cell.getBoundingClientRect())"
    )
    for width in (400, 1280):
        browser.set_width(width)
        assert set(read_json(browser, lines)) == {1}
        # Also the fix, in the last cell, is in sight.
        assert max(read_json(browser, f"{cells}.map(cell => cell.right)")) <= width
        assert max(read_json(browser, f"{cells}.map(cell => cell.height)")) < 200


def test_long_names_on_a_narrow_page(browser: Browser, tmp_path: Path, page: Path) -> None:
    folder = tmp_path / "country=DE" / "day=2026-11-01"
    folder.mkdir(parents=True)
    for name in ("part-00000-c000.snappy.parquet", "part-00001-c000.snappy.parquet"):
        shutil.copy(FIXTURES / "duckdb-filters.parquet", folder / name)
    write_report(tmp_path, page)
    assert browser.check_page(page) == []
    browser.set_width(420)
    names = "[...document.querySelectorAll('#columns tbody td:first-child')]"
    widths = f"{names}.map(cell => cell.getBoundingClientRect().width)"
    assert min(read_json(browser, widths)) > 150


def test_a_heading_sorts_its_table(browser: Browser, page: Path) -> None:
    write_report(FIXTURES / "duckdb-filters.parquet", page)
    browser.open(page)
    sizes = (
        "[...document.querySelectorAll('#columns tbody tr')].map(row => "
        "Number(row.cells[3].dataset.v))"
    )
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
    reports = report._repr_html_() + explanation._repr_html_()
    body = f"<main><h1>Notebook</h1><h2>Reports</h2>{reports}</main>"
    head = '<meta charset="utf-8"><title>Notebook</title><link rel="icon" href="data:,">'
    page.write_text(f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>')
    problems = [line for line in browser.check_page(page) if "overflow" not in line]
    assert problems == []
