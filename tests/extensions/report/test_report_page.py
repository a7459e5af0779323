"""`sbbf report`: the page about one file, whose numbers are those of `inspect` and `check`."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, SbbfError, UnreadableError, UsageError
from support.defects import DEFECTS
from support.html_pages import ParsedPage, parse_page
from support.tables import each

FIXTURES = Path(__file__).parents[3] / "fixtures"
FILES = sorted(path for path in FIXTURES.rglob("*.parquet"))


def read_page(path: Path) -> ParsedPage:
    return parse_page(path.read_text())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@pytest.mark.slow
@each("path", FILES)
def test_the_tables_have_the_numbers_of_inspect_and_check(path, page, capsys):
    code = run(["report", str(path), "-o", str(page)])
    out, err = capsys.readouterr()
    if code:
        assert (code, err.count("\n")) == (4, 1), err
        assert not page.exists()
        return
    report, checks = sbbf_tool.inspect(path), sbbf_tool.check(path)
    content = read_page(page)
    assert out == (f"{page}: 1 file, {count(report.filters, 'filter')}, {count(checks.findings, 'finding')}\n")
    by_content = content.table("Bytes by content")
    assert sum(by_content.column("bytes")) == report.file_bytes
    sizes = dict(zip(by_content.column("content"), by_content.column("bytes"), strict=True))
    assert sizes["footer"] == report.footer_bytes
    assert sizes.get("unreferenced", 0) == sum(each.length for each in report.unreferenced)
    assert sizes.get("Bloom filters", 0) == sum(each.filter_bytes for each in report.columns)
    if not report.filters:
        assert content.figures == ["bytes"]
        return
    measured_filters = [row for row in report.filters if row.estimated_fpp is not None]
    rates = content.table("Filters")
    assert rates.column("false-positive rate") == [row.estimated_fpp for row in measured_filters]
    assert rates.column("bits per value") == [number(row.bits_per_value) for row in measured_filters]
    assert rates.column("distinct values (estimated)") == [number(row.estimated_ndv) for row in measured_filters]
    fill = content.table("Fill of each filter")
    assert fill.column("bits set") == [number(row.fill_ratio) for row in report.filters if row.has_filter]
    columns = content.table("Columns with filters")
    assert columns.column("bytes of filters") == [total.filter_bytes for total in report.columns]
    assert columns.column("mean false-positive rate") == [number(total.mean_fpp) for total in report.columns]
    if checks.findings:
        findings = content.table("Findings")
        assert findings.column("rule") == [finding.rule for finding in checks.findings]
        assert findings.column("severity") == [finding.severity for finding in checks.findings]
        assert findings.column("what is wrong") == [finding.message for finding in checks.findings]


def number(value: float | None) -> float | str:
    return "" if value is None else value


def count(items: tuple[object, ...], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


@pytest.mark.slow
@each("defect", list(DEFECTS), every=3)
def test_the_page_of_a_defect_has_the_rule_that_finds_it(defect, tmp_path, page):
    path = tmp_path / "defect.parquet"
    DEFECTS[defect].make(path)
    try:
        report = sbbf_tool.check(path)
    except SbbfError as error:
        with pytest.raises(type(error)):
            sbbf_tool.write_report(path, page)
        assert not page.exists()
        return
    sbbf_tool.write_report(path, page)
    rules = [table.column("rule") for table in read_page(page).tables if table.caption == "Findings"]
    assert rules == ([[finding.rule for finding in report.findings]] if report.findings else [])


@each("defect", ["false-negatives", "empty-filter", "hashed-as-text"])
def test_a_filter_with_false_negatives_is_marked_in_the_pictures(defect, tmp_path, page):
    path = tmp_path / "defect.parquet"
    DEFECTS[defect].make(path)
    report = sbbf_tool.check(path)
    (finding,) = (finding for finding in report.findings if finding.rule == defect)
    places = {(finding.column, evidence.row_group) for evidence in finding.evidence}
    sbbf_tool.write_report(path, page, queries=[f"{finding.column} = 1"])
    content, text = read_page(page), page.read_text()
    fill = content.table("Fill of each filter")
    rows = zip(fill.column("column"), fill.column("row group"), fill.column("problem"), strict=True)
    assert {(column, row_group) for column, row_group, problem in rows if defect in problem} == places
    assert text.count('class="mark heat alarm"') == len(places)
    assert "a row group that they exclude may still hold the value" in text
    assert ("it is empty, and excludes every value" in text) == (defect == "empty-filter")


def test_the_page_is_the_same_again_and_replaces_the_old_one(page):
    path = FIXTURES / "pyarrow-filters.parquet"
    first = sbbf_tool.write_report(path, page, queries=["id = 5", "k = 7 AND id IN (1, 2)"])
    text = page.read_bytes()
    assert sbbf_tool.write_report(path, page, queries=["id = 5", "k = 7 AND id IN (1, 2)"]) == first
    assert page.read_bytes() == text
    assert first.bytes == len(text)
    assert [*page.parent.iterdir()] == [page]


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone(page):
    sbbf_tool.write_report(FIXTURES / "events.parquet", page)
    text = page.read_text()
    for element in ("style", "script"):
        content = re.search(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert content is not None
        digest = base64.b64encode(hashlib.sha256(content[1].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in text
        assert text.count(f"<{element}") == 1
    # Colours of both schemes are in the style; a URL of any kind is nowhere.
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text
    assert "://" not in text
    assert "url(" not in text
    assert "@import" not in text


HOSTILE = "<script>alert(1)</script>&\"'\x1b[31m\u202e\n]]>--><b>"


def test_hostile_names_are_text(tmp_path, capsys):
    name = tmp_path / "a<img src=x onerror=alert(1)>&\x1b[31m.parquet"
    pq.write_table(pa.table({HOSTILE: range(100)}), tmp_path / "plain.parquet")
    (column,) = sbbf_tool.inspect(tmp_path / "plain.parquet", all_chunks=True).columns
    sbbf_tool.add_filters(tmp_path / "plain.parquet", column.column, output=name)
    (tmp_path / "lake").mkdir()
    for at in range(2):
        shutil.copy(name, tmp_path / "lake" / f"{at}{name.name}")
    for path in (name, tmp_path / "lake"):
        page = tmp_path / "page.html"
        assert run(["report", str(path), "-o", str(page)]) == 0
        capsys.readouterr()
        text = page.read_text()
        content = parse_page(text)
        assert not {tag for tag, _ in content.elements} & {"img", "b", "a:b"}
        assert sum(tag == "script" for tag, _ in content.elements) == 1
        assert not {character for character in text if not character.isprintable()} - {"\n"}
        assert any("<script>alert(1)</script>" in each for each in content.texts)


def test_what_a_page_never_replaces(tmp_path):
    data, program, earlier, broken = (tmp_path / name for name in ("data.parquet", "make.py", "earlier.json", "lake/text.parquet"))
    shutil.copy(FIXTURES / "pyarrow-filters.parquet", data)
    program.write_text("print('<!doctype html>')")
    broken.parent.mkdir()
    broken.write_text("<!DOCTYPE html>")
    shutil.copy(data, broken.parent)
    assert run(["inspect", str(data), "--report", str(earlier), "--quiet"]) == 0
    before = {path: path.read_bytes() for path in (data, program, earlier, broken)}
    for source, page, options, message in (
        (FIXTURES / "events.parquet", data, {}, "not an HTML page"),
        (FIXTURES / "events.parquet", program, {}, "not an HTML page"),
        (data, earlier, {"against": earlier}, "not an HTML page"),
        (broken.parent, broken, {}, "would replace one of the files"),
    ):
        with pytest.raises(RefusedError, match=message):
            sbbf_tool.write_report(source, page, **options)
    assert {path: path.read_bytes() for path in before} == before
    empty = tmp_path / "made-by-mktemp"
    empty.touch()
    sbbf_tool.write_report(FIXTURES / "events.parquet", empty)
    assert empty.stat().st_size


def test_a_file_that_cannot_be_read_has_no_page(tmp_path, page):
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1")
    with pytest.raises(UnreadableError):
        sbbf_tool.write_report(torn, page)
    page.write_text("<!DOCTYPE html>old")
    with pytest.raises(UnreadableError):
        sbbf_tool.write_report(torn, page)
    assert page.read_text() == "<!DOCTYPE html>old"


def test_encrypted_files(page, capsys):
    folder = FIXTURES / "encrypted"
    locked = str(folder / "java-columns.parquet.encrypted")
    assert run(["report", locked, "-o", str(page)]) == 4
    assert capsys.readouterr().err.count("\n") == 1
    assert not page.exists()
    assert run(["report", locked, "-o", str(page), "--keys", str(folder / "keys.json")]) == 0
    assert sum(read_page(page).table("Bytes by content").column("bytes")) == Path(locked).stat().st_size
    signed = folder / "java-signed.parquet.encrypted"
    assert sbbf_tool.write_report(signed, page).filters == 0
    assert sum(read_page(page).table("Bytes by content").column("bytes")) == signed.stat().st_size


class TestQueries:
    def test_the_steps_are_those_of_explain(self, page):
        path = FIXTURES / "pyarrow-filters.parquet"
        sbbf_tool.write_report(path, page, queries=["id = 5"])
        table = read_page(page).table("Row groups by engine")
        report = sbbf_tool.explain(path, "id", "5")
        for engine in report.engines:
            (row,) = [row for row in table.rows if engine.name in str(row[0]).split(", ")]
            assert row[1:] == [engine.steps.count(step) for step in ("statistics", "dictionary", "filter", "read", "harm")]

    def test_a_filter_excludes_what_statistics_cannot(self, tmp_path, page):
        path = tmp_path / "a.parquet"
        ids = list(range(0, 20_000, 2))
        pq.write_table(pa.table({"id": ids, "k": [str(i) for i in ids]}), path, row_group_size=2500, use_dictionary=False)
        before = page.with_name("before.html")
        query = "k IN ('17', '19') AND id IN (2, 4)"
        sbbf_tool.write_report(path, before, queries=[query])
        sbbf_tool.add_filters(path, "k", in_place=True)
        sbbf_tool.write_report(path, page, queries=[query])
        rows = {str(row[0]): row[1:] for row in read_page(page).table("Row groups by engine").rows}
        assert rows["without filters"] == [3, 0, 0, 1, 0]
        assert next(row for name, row in rows.items() if "DuckDB" in name) == [3, 0, 1, 0, 0]
        rows_before = read_page(before).table("Row groups by engine").rows
        assert {tuple(row[1:]) for row in rows_before} == {(3, 0, 0, 1, 0)}
        letters = re.findall(r'<text class="c"[^>]*>([SDFR!])</text>', page.read_text())
        assert set(letters) == {"S", "F", "R"}

    @each("query, message", [("id >", "id >"), ("nothing = 5", "nothing"), ("id = 'five'", "five"), ("id = NULL", "null|NULL")])
    def test_queries_without_an_answer(self, page, query, message):
        with pytest.raises(UsageError, match=message):
            sbbf_tool.write_report(FIXTURES / "pyarrow-filters.parquet", page, queries=[query])
        assert not page.exists()


class TestComparison:
    def test_before_and_now(self, tmp_path, page, capsys):
        path, earlier = tmp_path / "a.parquet", tmp_path / "earlier.json"
        shutil.copy(FIXTURES / "pyarrow-plain.parquet", path)
        assert run(["inspect", str(path), "--report", str(earlier)]) == 0
        before = sbbf_tool.inspect(path)
        sbbf_tool.add_filters(path, ["id", "name"], in_place=True)
        assert run(["report", str(path), "-o", str(page), "--against", str(earlier)]) == 0
        now = sbbf_tool.inspect(path)
        content = read_page(page)
        rows = {row[0]: row[1:] for row in content.table("All files").rows}
        assert rows == {
            "files": [1, 1],
            "bytes of files": [before.file_bytes, now.file_bytes],
            "filters": [0, len(now.filters)],
            "bytes of filters": [0, sum(total.filter_bytes for total in now.columns)],
        }
        columns = content.table("Filters by column")
        assert columns.column("column") == ["id", "name"]
        assert [row[2] for row in columns.rows] == [total.row_groups_with_filter for total in now.columns]
        # The bar of the earlier file is above that of the file now.
        assert f"before: {before.file_bytes / 1000:.1f} kB" in "".join(content.texts)

    @each("text", ["", "{}", "[]", "no json", '{"schema": "sbbf.check"}', '{"schema": "sbbf.inspect", "file_bytes": -1}'])
    def test_what_is_no_report_of_inspect(self, tmp_path, page, text):
        earlier = tmp_path / "earlier.json"
        earlier.write_text(text)
        with pytest.raises(UsageError, match="not a report of inspect"):
            sbbf_tool.write_report(FIXTURES / "events.parquet", page, against=earlier)
        assert not page.exists()
