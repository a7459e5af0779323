"""`sbbf report`, about one file and about many: its numbers are those of `inspect` and `check`, and
the page stays small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from extensions.report.html_pages import ParsedPage, parse_page
from sbbf_tool.cli import run
from sbbf_tool.errors import RefusedError, UnreadableError
from sbbf_tool.extensions.report import write_report
from sbbf_tool.extensions.report.contents import FileContents
from sbbf_tool.extensions.report.gather import Gather
from sbbf_tool.extensions.report.page import ReportPage
from sbbf_tool.extensions.report.pictures.figure import MOST_MARKS
from support.defects import DEFECTS
from support.tables import each

FIXTURES = Path(__file__).parents[3] / "fixtures"
FILES = sorted(path for path in FIXTURES.rglob("*.parquet"))


def read_page(path: Path) -> ParsedPage:
    return parse_page(path.read_text())


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.html"


@pytest.mark.slow
@each("path", FILES, every=3)
def test_the_tables_have_the_numbers_of_inspect_and_check(path, page, capsys):
    code = run(["report", str(path), "-o", str(page), "--allow", "overwrite"])
    out, err = capsys.readouterr()
    if code:
        assert (code, err.count("\n")) == (4, 1), err
        assert not page.exists()
        return
    report, checks = sbbf_tool.inspect(path), sbbf_tool.check(path)
    content = read_page(page)
    assert out == (
        f"{page}: 1 file, {count(report.filters, 'filter')}, {count(checks.findings, 'finding')}\n"
    )
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
    assert rates.column("bits per value") == [
        number(row.bits_per_value) for row in measured_filters
    ]
    assert rates.column("distinct values (estimated)") == [
        number(row.estimated_ndv) for row in measured_filters
    ]
    fill = content.table("Fill of each filter")
    assert fill.column("bits set") == [
        number(row.fill_ratio) for row in report.filters if row.has_filter
    ]
    columns = content.table("Columns with filters")
    assert columns.column("bytes of filters") == [total.filter_bytes for total in report.columns]
    assert columns.column("mean false-positive rate") == [
        number(total.mean_fpp) for total in report.columns
    ]
    if checks.findings:
        findings = content.table("Findings")
        assert findings.column("rule") == [finding.rule for finding in checks.findings]
        assert findings.column("severity") == [finding.severity for finding in checks.findings]
        assert findings.column("what is wrong") == [finding.message for finding in checks.findings]


def number(value: float | None) -> float | str:
    return "" if value is None else value


def count(items: tuple[object, ...], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


@each("defect", ["false-negatives", "empty-filter", "hashed-as-text"])
def test_a_filter_with_false_negatives_is_marked_in_the_pictures(defect, tmp_path, page):
    path = tmp_path / "defect.parquet"
    DEFECTS[defect].make(path)
    report = sbbf_tool.check(path)
    (finding,) = (finding for finding in report.findings if finding.rule == defect)
    places = {(finding.column, evidence.row_group) for evidence in finding.evidence}
    write_report(path, page, queries=[f"{finding.column} = 1"])
    content, text = read_page(page), page.read_text()
    fill = content.table("Fill of each filter")
    rows = zip(fill.column("column"), fill.column("row group"), fill.column("problem"), strict=True)
    assert {
        (column, row_group) for column, row_group, problem in rows if defect in problem
    } == places
    assert text.count('class="mark heat alarm"') == len(places)
    assert "a row group that they exclude may still hold the value" in text
    assert ("it is empty, and excludes every value" in text) == (defect == "empty-filter")


@each("defect", ["wrong-null-count", "nan-forms-missing"])
def test_only_errors_cast_doubt_on_the_pictures_of_queries(defect, tmp_path, page):
    path = tmp_path / "defect.parquet"
    DEFECTS[defect].make(path)
    (finding, *_) = (each for each in sbbf_tool.check(path).findings if each.rule == defect)
    write_report(path, page, queries=[f"{finding.column} = 1"])
    text = page.read_text()
    assert defect in text
    assert "may still hold the value" not in text


def test_the_page_is_the_same_again_and_replaces_the_old_one(page):
    path = FIXTURES / "pyarrow-filters.parquet"
    first = write_report(path, page, queries=["id = 5", "k = 7 AND id IN (1, 2)"])
    text = page.read_bytes()
    assert write_report(path, page, queries=["id = 5", "k = 7 AND id IN (1, 2)"]) == first
    assert page.read_bytes() == text
    assert first.bytes == len(text)
    assert [*page.parent.iterdir()] == [page]


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone(page):
    write_report(FIXTURES / "events.parquet", page)
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
        assert run(["report", str(path), "-o", str(page), "--allow", "overwrite"]) == 0
        capsys.readouterr()
        text = page.read_text()
        content = parse_page(text)
        assert not {tag for tag, _ in content.elements} & {"img", "b", "a:b"}
        assert sum(tag == "script" for tag, _ in content.elements) == 1
        assert not {character for character in text if not character.isprintable()} - {"\n"}
        assert any("<script>alert(1)</script>" in each for each in content.texts)


def test_what_a_page_never_replaces(tmp_path):
    """Nor any other of the files in cli/mistakes.txt."""
    data, earlier = FIXTURES / "pyarrow-filters.parquet", tmp_path / "earlier.json"
    assert run(["inspect", str(data), "--report", str(earlier), "--quiet"]) == 0
    before = earlier.read_bytes()
    with pytest.raises(RefusedError, match="not an HTML page"):
        write_report(data, earlier, against=earlier)
    assert earlier.read_bytes() == before
    empty = tmp_path / "made-by-mktemp"
    empty.touch()
    write_report(FIXTURES / "events.parquet", empty)
    assert empty.stat().st_size


def test_a_file_that_cannot_be_read_has_no_page(tmp_path, page):
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1")
    with pytest.raises(UnreadableError):
        write_report(torn, page)
    page.write_text("<!DOCTYPE html>old")
    with pytest.raises(UnreadableError):
        write_report(torn, page)
    assert page.read_text() == "<!DOCTYPE html>old"


def test_encrypted_files(page, capsys):
    folder = FIXTURES / "encrypted"
    locked = str(folder / "java-columns.parquet.encrypted")
    assert run(["report", locked, "-o", str(page), "--allow", "overwrite"]) == 4
    assert capsys.readouterr().err.count("\n") == 1
    assert not page.exists()
    assert (
        run(
            [
                "report",
                locked,
                "-o",
                str(page),
                "--allow",
                "overwrite",
                "--keys",
                str(folder / "keys.json"),
            ]
        )
        == 0
    )
    assert (
        sum(read_page(page).table("Bytes by content").column("bytes"))
        == Path(locked).stat().st_size
    )
    signed = folder / "java-signed.parquet.encrypted"
    assert write_report(signed, page).filters == 0
    assert sum(read_page(page).table("Bytes by content").column("bytes")) == signed.stat().st_size


class TestQueries:
    def test_the_steps_are_those_of_explain(self, page):
        path = FIXTURES / "pyarrow-filters.parquet"
        write_report(path, page, queries=["id = 5"])
        table = read_page(page).table("Row groups by engine")
        report = sbbf_tool.explain(path, "id", "5")
        for engine in report.engines:
            (row,) = [row for row in table.rows if engine.name in str(row[0]).split(", ")]
            assert row[1:] == [
                engine.steps.count(step)
                for step in ("statistics", "dictionary", "filter", "read", "harm")
            ]


class TestComparison:
    def test_before_and_now(self, tmp_path, page, capsys):
        path, earlier = tmp_path / "a.parquet", tmp_path / "earlier.json"
        shutil.copy(FIXTURES / "pyarrow-plain.parquet", path)
        assert run(["inspect", str(path), "--report", str(earlier)]) == 0
        before = sbbf_tool.inspect(path)
        sbbf_tool.add_filters(path, ["id", "name"], in_place=True)
        assert (
            run(
                [
                    "report",
                    str(path),
                    "-o",
                    str(page),
                    "--allow",
                    "overwrite",
                    "--baseline",
                    str(earlier),
                ]
            )
            == 0
        )
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
        assert [row[2] for row in columns.rows] == [
            total.row_groups_with_filter for total in now.columns
        ]
        # The bar of the earlier file is above that of the file now.
        assert f"before: {before.file_bytes / 1000:.1f} kB" in "".join(content.texts)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    for day in (1, 2, 3):
        (folder / f"day=2026-01-0{day}").mkdir(parents=True)
        for at in range(2):
            path = folder / f"day=2026-01-0{day}" / f"{at}.parquet"
            values = range(day * 1000 + at, day * 1000 + at + 500)
            pq.write_table(
                pa.table({"id": values, "k": [f"k{value % 50}" for value in values]}),
                path,
                row_group_size=250,
            )
            if (day, at) != (2, 1):
                sbbf_tool.add_filters(path, ["id", "k"] if day == 1 else "id", in_place=True)
    return folder


def test_the_sums_are_those_of_inspect(lake, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert (
        run(
            [
                "report",
                str(lake),
                "-o",
                str(page),
                "--allow",
                "overwrite",
                "--query",
                "id = 1700",
                "--format",
                "json",
            ]
        )
        == 0
    )
    document = json.loads(capsys.readouterr().out)
    reports = [sbbf_tool.inspect(path) for path in sorted(lake.rglob("*.parquet"))]
    filters = [row for report in reports for row in report.filters]
    assert {
        name: document[name]
        for name in ("schema", "output", "bytes", "files", "row_groups", "filters", "exit_code")
    } == {
        "schema": "sbbf.report",
        "output": str(page),
        "bytes": page.stat().st_size,
        "files": 6,
        "row_groups": 12,
        "filters": len(filters),
        "exit_code": 0,
    }
    content = parse_page(page.read_text())
    assert content.figures == [
        "bytes",
        "rates",
        "folds",
        "fill",
        "partitions",
        "distribution",
        "query_1",
    ]
    columns = {row[0]: row[1:] for row in content.table("Columns with filters").rows}
    for name in ("id", "k"):
        of_column = [row for row in filters if row.column == name]
        rates = [row.estimated_fpp for row in of_column]
        size = sum(row.header_bytes + row.bitset_bytes for row in of_column)
        assert columns[name] == [
            len(of_column),
            12,
            size,
            pytest.approx(sum(rates) / len(rates)),
            max(rates),
        ]
    partitions = {
        (row[0], row[1]): row[2:5] for row in content.table("Filters by partition and column").rows
    }
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


def test_the_worst_file_is_the_first(tmp_path, page):
    names = [
        "wrong-length",
        "int96-form-missing",
        "not-power-of-two",
        "missing-length",
        "identical-blocks",
    ]
    for name in names:
        DEFECTS[name].make(tmp_path / f"{name}.parquet")
    assert run(["report", str(tmp_path), "-o", str(page), "--allow", "overwrite"]) == 0
    assert [
        Path(file).stem for file in read_page(page).table("The worst files").column("file")
    ] == names


def test_files_that_cannot_be_read_are_listed(lake, tmp_path, capsys):
    (lake / "day=2026-01-01" / "torn.parquet").write_bytes(b"PAR1")
    page = tmp_path / "page.html"
    assert run(["report", str(lake), "-o", str(page), "--allow", "overwrite"]) == 3
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
    report = write_report(tmp_path / "orders", page, queries="id = 7")
    assert (report.files, report.filters) == (2, 2)
    content = parse_page(page.read_text())
    assert {row[0] for row in content.table("Filters by partition and column").rows} == {
        "day=a",
        "day=b",
    }
    assert (
        run(
            [
                "report",
                str(tmp_path / "orders"),
                "-o",
                str(page),
                "--allow",
                "overwrite",
                "--query",
                "nothing = 7",
            ]
        )
        == 2
    )


def test_a_column_that_only_some_files_have(lake, tmp_path, capsys):
    pq.write_table(pa.table({"other": [1]}), lake / "day=2026-01-01" / "other.parquet")
    page = tmp_path / "page.html"
    assert (
        run(["report", str(lake), "-o", str(page), "--allow", "overwrite", "--query", "id = 7"])
        == 0
    )
    assert "1 file without a column of it: there is no column 'id'" in " ".join(
        parse_page(page.read_text()).texts
    )
    assert (
        run(
            ["report", str(lake), "-o", str(page), "--allow", "overwrite", "--query", "nothing = 7"]
        )
        == 2
    )
    assert "no file has the column" in capsys.readouterr().err


def synthetic_files(numbers: range) -> Iterator[FileContents]:
    """Yield the contents of files in partitions of 20, with 300 columns whose filters have rates
    from 1e-9 to 1."""
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
        columns = tuple(
            replace(detail, column=column) for detail, column in zip(details, names, strict=True)
        )
        yield replace(
            contents, inspect=replace(contents.inspect, file=name, filters=filters), filters=columns
        )


@pytest.mark.heavy
@pytest.mark.slow
def test_a_page_about_20_000_files_is_below_a_megabyte():
    page = ReportPage(["/lake"], is_single=False)
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
    pq.write_table(
        pa.table({name: range(2400) for name in "ab"}), path, row_group_size=2, use_dictionary=False
    )
    sbbf_tool.add_filters(path, ["a", "b"], in_place=True)
    write_report(path, page, queries=["a = 5"], quick=True)
    content = parse_page(page.read_text())
    assert content.marks <= 7 * MOST_MARKS
    assert "".join(page.read_text().split("<figure")[1:2]).count("<rect") <= MOST_MARKS
    assert any("Each cell is the fullest filter of 2 row groups" in each for each in content.texts)
    assert any("and 2,200 more rows" in each for each in content.texts)
    assert page.stat().st_size < 1_000_000
