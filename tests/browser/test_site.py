"""The pages of `site/` in a browser: what they show, what they request, and that they never answer `absent` for a stored value."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool import add_filters, inspect, probe
from sbbf_tool.errors import SbbfError
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.reports.inspect import FilterReport
from support import http_site
from support.browser import Browser
from support.site_pages import Answer, Row, choose_file, choose_url, list_rows, probe_values, wait_for_file

from .conftest import SITE, build_site

pytestmark = [pytest.mark.slow, pytest.mark.environment(minutes=1), pytest.mark.timeout(300)]

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILES = sorted([*FIXTURES.rglob("*.parquet"), *FIXTURES.rglob("*.parquet.encrypted")])


def open_local(browser: Browser, site: Path, path: Path) -> str:
    browser.open(site / "index.html")
    return choose_file(browser, path)


def many_row_groups(folder: Path) -> Path:
    """Write a file of 2,001 row groups, with filters on one of two columns, and names that are markup."""
    plain, path = folder / "plain.parquet", folder / "many.parquet"
    table = pa.table({"<img src=x onerror=alert(1)>": range(2001), "plain": ["</script><b>bold</b>"] * 2001})
    pq.write_table(table, plain, row_group_size=1)
    add_filters(plain, [table.column_names[0]], output=path)
    return path


# --- The build ---


def test_the_build_is_deterministic(site: Path, site_packages: Path, tmp_path: Path) -> None:
    build_site(tmp_path, site_packages)
    names = ["LICENSES.txt", "index.html", "url.html"]
    assert sorted(path.name for path in site.iterdir()) == names
    assert [(tmp_path / name).read_bytes() for name in names] == [(site / name).read_bytes() for name in names]
    assert "MIT License" in (site / "LICENSES.txt").read_text()


def test_packages_are_pinned_and_name_no_registry() -> None:
    lock = json.loads((SITE / "package-lock.json").read_text())
    package = json.loads((SITE / "package.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") and "resolved" not in entry for entry in packages.values())
    for name, version in {**package["dependencies"], **package["devDependencies"]}.items():
        assert packages[f"node_modules/{name}"]["version"] == version


def test_only_the_page_for_urls_may_connect(site: Path) -> None:
    policies = [re.search(r'Content-Security-Policy" content="([^"]+)"', (site / name).read_text()) for name in ("index.html", "url.html")]
    local, remote = (set(policy[1].split("; ")) for policy in policies if policy)
    assert {rule for rule in local if not rule.startswith(("script-src 'sha256-", "style-src 'sha256-"))} == {
        "default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'",
    }  # fmt: skip
    assert remote - local == {"connect-src https: http:"}


# --- How the pages look ---


@pytest.mark.parametrize("name", ["index.html", "url.html"])
def test_a_page_without_a_file_has_no_problems(browser: Browser, site: Path, name: str) -> None:
    assert browser.check_page(site / name) == []
    assert browser.driver.execute_script("return document.getElementById('contents').hidden")


@pytest.mark.parametrize(
    "path",
    [
        "pyarrow-filters.parquet",
        "duckdb-some-row-groups.parquet",
        "pyarrow-plain.parquet",
        "drafts/draft1-thrift.parquet",
        "encrypted/java-signed.parquet.encrypted",
        "README.md",
    ],
)
def test_a_page_with_a_file_has_no_problems(browser: Browser, site: Path, path: str) -> None:
    def use(browser: Browser) -> None:
        message = choose_file(browser, FIXTURES / path)
        assert message.startswith(path.rpartition("/")[2])
        if path != "README.md":
            (answer,) = probe_values(browser, [(0, "1")])
            assert answer.rows

    assert browser.check_page(site / "index.html", use) == []


def test_many_row_groups_are_binned_and_markup_in_names_is_text(browser: Browser, site: Path, tmp_path: Path) -> None:
    path = many_row_groups(tmp_path)
    assert browser.check_page(site / "index.html", lambda browser: choose_file(browser, path)) == []
    titles = browser.driver.execute_script("return [...document.querySelectorAll('#strips .mark title')].map(title => title.textContent)")
    assert len(titles) == 1001
    assert titles[0].startswith("<img src=x onerror=alert(1)>, row groups 0 to 1: fill ratio ")
    assert browser.driver.execute_script("return document.querySelectorAll('img, b').length") == 0
    assert len(list_rows(browser)) == 200
    browser.driver.execute_script("document.getElementById('more').click()")
    assert len(list_rows(browser)) == 400
    stored, unfiltered = probe_values(browser, [(0, "200"), (1, "</script><b>bold</b>")])
    assert stored.rows[0] == ("maybe", "")
    assert stored.rows[-1] == ("absent", "")
    assert re.fullmatch(r"Not excluded: the value may be in \d+ of 2,001 row groups: .*\b200\b.*", stored.summary)
    assert unfiltered.summary == "Not excluded: the value may be in 2,001 of 2,001 row groups."
    assert set(unfiltered.rows) == {("no filter", "")}


def test_marks_have_the_numbers_of_the_table(browser: Browser, site: Path) -> None:
    open_local(browser, site, FIXTURES / "pyarrow-filters.parquet")
    titles = browser.driver.execute_script("return [...document.querySelectorAll('#strips .mark title')].map(title => title.textContent)")
    report = inspect(FIXTURES / "pyarrow-filters.parquet")
    assert len(titles) == len(report.filters)
    assert "id, row group 0: fill ratio 53.0 %, estimated FPP 1.23 %" in titles
    assert "tag, row group 3: fill ratio 14.8 %, estimated FPP <0.0001 %" in titles


# --- Files ---


def expected_row(report: FilterReport) -> dict[str, Any]:
    size = None if report.header_bytes is None or report.bitset_bytes is None else report.header_bytes + report.bitset_bytes
    return {"offset": report.offset, "bytes": size, "fill_ratio": report.fill_ratio, "estimated_fpp": report.estimated_fpp}


def compare_rows(path: Path, rows: list[Row], differences: list[object]) -> int:
    """Compare the table of the page with the report of `inspect`; return how many filters have the same numbers."""
    reports = {(report.row_group, report.column): report for report in inspect(path).filters}
    if {(row.row_group, row.column) for row in rows} != set(reports):
        differences.append((path.name, "other filters"))
    same = 0
    for row in rows:
        report = reports[row.row_group, row.column]
        expected = expected_row(report)
        numbers = {name: getattr(row, name) for name in expected}
        if row.reason:
            # Drafts, encrypted columns and damaged filters: a reason in place of numbers.
            is_usable = not report.unreadable and not report.dialects and not report.encrypted and report.fill_ratio is not None
            if is_usable or row.fill_ratio != "":
                differences.append((path.name, row, report))
        elif numbers != expected:
            differences.append((path.name, row, report))
        else:
            same += 1
    return same


def test_numbers_are_those_of_inspect(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    differences: list[object] = []
    same = 0
    for path in FILES:
        message = choose_file(browser, path)
        try:
            reports = inspect(path).filters
        except SbbfError:
            reports = ()
        if "footer is encrypted" in message or not reports:
            continue
        if message.startswith(f"{path.name}: ") and len(reports) <= 500:
            same += compare_rows(path, list_rows(browser), differences)
    assert differences == []
    assert same > 300


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x.parquet: not a Parquet file: it is too short."),
        (b"PAR1" + bytes(20), "x.parquet: not a Parquet file, or truncated: it does not end with PAR1."),
        (b"PAR1" + b"\xff" * 30 + b"\x1e\x00\x00\x00PAR1", "x.parquet: its footer cannot be parsed: "),
        (b"PAR1\xff\xff\xff\x7fPAR1", "x.parquet: it states a footer of 2147483647 bytes, which is longer than the file."),
        (b"PAR1" + bytes(30) + b"\x1e\x00\x00\x00PARE", "x.parquet: its footer is encrypted, and this page takes no keys"),
    ],
)
def test_other_files_are_refused_in_a_sentence(browser: Browser, site: Path, tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(data)
    assert open_local(browser, site, path).startswith(message)
    assert browser.driver.execute_script("return document.getElementById('contents').hidden")
    assert browser.messages() == []


def test_a_dropped_file_is_read(browser: Browser, site: Path) -> None:
    browser.open(site / "index.html")
    data = (FIXTURES / "pyarrow-filters.parquet").read_bytes()
    browser.driver.execute_script(
        """
        const transfer = new DataTransfer()
        transfer.items.add(new File([Uint8Array.from(arguments[0], digit => digit)], 'dropped.parquet'))
        document.getElementById('status').dataset.state = 'busy'
        document.getElementById('drop').dispatchEvent(new DragEvent('drop', {bubbles: true, cancelable: true, dataTransfer: transfer}))
        """,
        list(data),
    )
    assert wait_for_file(browser) == "dropped.parquet: 36 filters."


def test_of_large_filters_only_headers_and_blocks_are_read(browser: Browser, site: Path, tmp_path: Path) -> None:
    """A filter of 128 MiB is read as a whole only if the user wants it."""
    from sbbf_tool.operations.conformance import make_corpus

    make_corpus(tmp_path, only=["sizes/*"])
    path = max(tmp_path.glob("sizes/*.parquet"), key=lambda path: path.stat().st_size)
    assert path.stat().st_size > 128 << 20
    message = open_local(browser, site, path)
    assert message == f"{path.name}: the filters have 134.2 MB, which were not read yet."
    (answer,) = probe_values(browser, [(0, "1")])
    assert answer.state == "done"
    read = browser.driver.execute_script("return document.getElementById('bytes-read').textContent")
    assert int(read.partition(" ")[0].replace(",", "")) < 5000


# --- Values ---


def compare_answers(path: Path, questions: list[dict[str, Any]], answers: list[Answer], wrong: list[object]) -> dict[str, int]:
    """Compare answers of the page with those of `probe`, and count them; `cannot say` is always allowed."""
    counts = {"equal": 0, "cannot say": 0}
    for question, answer in zip(questions, answers, strict=True):
        expected = [(each.answer, each.reason) for each in probe(path, question["column"], question["value"]).values[0].row_groups]
        mine = [verdict for verdict, _ in answer.rows]
        is_absent = answer.summary.startswith("Absent")
        if (question["stored"] and is_absent) or is_absent != all(verdict == "absent" for verdict in mine) or len(mine) != len(expected):
            wrong.append((path.name, question, answer))
        for (verdict, reason), (expected_verdict, expected_reason) in zip(answer.rows, expected, strict=False):
            if "is encrypted" in str(expected_reason) and "is encrypted" not in reason:
                wrong.append((path.name, question, answer, expected))
            elif verdict == expected_verdict:
                counts["equal"] += 1
            elif verdict == "cannot say":
                counts["cannot say"] += 1
            else:
                wrong.append((path.name, question, answer, expected))
    return counts


def test_answers_for_the_conformance_corpus_are_those_of_probe(browser: Browser, site: Path, tmp_path: Path) -> None:
    from sbbf_tool.operations.conformance import make_corpus

    make_corpus(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    parquet = [entry["file"] for entry in manifest["files"] if entry["format"] == "parquet"]
    browser.open(site / "index.html")
    wrong: list[object] = []
    counts = {"equal": 0, "cannot say": 0, "refused": 0}
    for name in parquet:
        path = tmp_path / name
        questions = [question for question in manifest["questions"] if question["file"] == name]
        message = choose_file(browser, path)
        try:
            with ParquetFile.open(path) as file:
                indices = [file.find_columns([question["column"]])[0].index for question in questions]
        except SbbfError:
            # An encrypted footer, or a damaged file: the page refuses it too.
            assert browser.driver.execute_script("return document.getElementById('contents').hidden"), message
            counts["refused"] += len(questions)
            continue
        answers = probe_values(browser, [(index, question["value"]) for index, question in zip(indices, questions, strict=True)])
        for kind, count in compare_answers(path, questions, answers, wrong).items():
            counts[kind] += count
    assert wrong == []
    assert browser.messages() == []
    assert counts["equal"] > 1000
    assert counts["cannot say"] < 100
    assert 0 < counts["refused"] < 100


def test_a_value_is_typed_with_the_keyboard(browser: Browser, site: Path) -> None:
    """Enter queries. A changed value removes the answer for the earlier one."""
    open_local(browser, site, FIXTURES / "pyarrow-filters.parquet")
    field, column = (browser.driver.find_element("id", name) for name in ("value", "column"))
    column.send_keys("name")
    field.send_keys("no such name", "\ue007")
    browser.wait_for("document.getElementById('answer').dataset.state === 'done' && document.querySelector('#answer p')")
    lines = browser.driver.find_element("id", "answer").text.splitlines()
    assert lines[:2] == ["Absent: the value is in none of 4 row groups.", "Column name, value no such name."]
    field.send_keys("s")
    assert browser.driver.find_element("id", "answer").text == ""


def test_a_text_that_is_no_value_is_refused(browser: Browser, site: Path) -> None:
    open_local(browser, site, FIXTURES / "pyarrow-filters.parquet")
    (answer,) = probe_values(browser, [(0, "ten")])
    assert (answer.state, answer.rows) == ("failed", ())
    assert answer.summary == "This is not a value of INT64: it takes an integer from -9223372036854775808 to 9223372036854775807."


# --- URLs, and no other connection ---


def test_a_page_for_files_cannot_connect(browser: Browser, site: Path) -> None:
    with http_site.running() as server:
        url = server.put("secret", b"")
        server.headers["Access-Control-Allow-Origin"] = "*"
        browser.open(site / "index.html")
        refusal = browser.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; fetch(arguments[0]).then(() => done('fetched'), error => done(error.name))", url
        )
        assert refusal == "TypeError"
        assert server.requests == []
    assert any("Content Security Policy" in message for message in browser.messages())


@pytest.fixture
def server(site: Path) -> Any:
    """A server of the page for URLs, and another that lets pages of the first read its files."""
    with http_site.running() as pages, http_site.running() as files:
        pages.put("url.html", (site / "url.html").read_bytes())
        files.headers["Access-Control-Allow-Origin"] = "*"
        yield pages, files


def ranges_of(server: http_site.Site) -> list[tuple[int, int]]:
    """Return first and last byte of the requests."""
    headers = [headers.get("range") for method, _, headers in server.requests if method == "GET"]
    assert all(headers)
    return [(int(first), int(last)) for first, _, last in (str(text).removeprefix("bytes=").partition("-") for text in headers)]


def test_of_a_url_only_the_footer_and_the_filters_are_read(browser: Browser, server: Any) -> None:
    pages, files = server
    path = FIXTURES / "pyarrow-filters.parquet"
    url = files.put("a.parquet", path.read_bytes())
    problems = browser.check_page(
        f"{pages.url}/url.html", lambda browser: choose_url(browser, url), allowed_hosts=(files.url.removeprefix("http://"),)
    )
    assert problems == []
    assert len(list_rows(browser)) == 36
    report = inspect(path)
    start = min(each.offset for each in report.filters if each.offset is not None)
    assert all(first >= start for first, _ in ranges_of(files))
    assert len(files.requests) <= 6
    assert compare_rows(path, list_rows(browser), differences := []) == 36
    assert differences == []
    (answer,) = probe_values(browser, [(0, "1")])
    assert [verdict for verdict, _ in answer.rows] == [each.answer for each in probe(path, "id", "1").values[0].row_groups]


def test_what_a_server_does_not_allow_is_explained(browser: Browser, server: Any) -> None:
    pages, files = server
    data = (FIXTURES / "pyarrow-filters.parquet").read_bytes()
    url = files.put("a.parquet", data)
    browser.open(f"{pages.url}/url.html")

    assert choose_url(browser, "ftp://127.0.0.1/a.parquet") == "The URL must begin with https:// or http://."
    assert "The server answered with status 404" in choose_url(browser, f"{files.url}/none.parquet")
    files.knows_ranges = False
    assert "The server ignores range requests" in choose_url(browser, url)
    files.knows_ranges = True
    del files.headers["Access-Control-Allow-Origin"]
    assert "does not allow this page to read the file (CORS" in choose_url(browser, url)
    files.headers["Access-Control-Allow-Origin"] = "*"
    assert choose_url(browser, url) == f"{url}: 36 filters."


def test_a_server_without_head_requests(browser: Browser, server: Any) -> None:
    """The size of the file is in the answer to a range, if the server lets pages see it."""
    pages, files = server
    url = files.put("a.parquet", (FIXTURES / "pyarrow-filters.parquet").read_bytes())
    files.knows_head = False
    browser.open(f"{pages.url}/url.html")
    assert "The server does not state the size of the file" in choose_url(browser, url)
    files.headers["Access-Control-Expose-Headers"] = "Content-Range"
    assert choose_url(browser, url) == f"{url}: 36 filters."


def test_a_file_that_changes_while_it_is_read_is_refused(browser: Browser, server: Any) -> None:
    pages, files = server
    url = files.put("a.parquet", (FIXTURES / "pyarrow-filters.parquet").read_bytes())
    files.modified = 1_000_000_000.0
    browser.open(f"{pages.url}/url.html")
    assert choose_url(browser, url) == f"{url}: 36 filters."
    files.modified = 1_000_000_060.0
    (answer,) = probe_values(browser, [(0, "1")])
    assert answer.state == "failed"
    assert "The file at the URL changed while it was read." in answer.summary
