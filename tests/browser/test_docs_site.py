"""The documentation as a site: it is built without a warning, has every page, and requests nothing
of another server."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest

from browser.chromium import Browser
from support.tables import each

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(
        not all(map(find_spec, ("sphinx", "furo", "myst_parser"))),
        reason="Sphinx, furo and MyST (the extra `docs`) are not installed",
    ),
]
DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FOREIGN = re.compile(r"(?:https?:)?//")
IN_STYLES = re.compile(r"(?:@import\s+|url\(\s*)[\"']?((?:https?:)?//[^\"')]*)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            "-d",
            folder / "doctrees",
            DOCS,
            folder / "html",
        ],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder / "html"


class Requests(HTMLParser):
    """The URLs that a browser requests when it opens a page, without a click."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        names = {
            "link": ["href"],
            "use": ["href", "xlink:href"],
            "image": ["href", "xlink:href"],
            "object": ["data"],
        }.get(tag, [])
        self.urls += [
            attributes[name] for name in (*names, "src", "srcset", "poster") if name in attributes
        ]
        self.urls += IN_STYLES.findall(attributes.get("style", ""))

    def handle_data(self, data: str) -> None:
        self.urls += IN_STYLES.findall(data)


def urls_of(page: str) -> list[str]:
    parser = Requests()
    parser.feed(page)
    return parser.urls


def test_every_page_is_in_the_site(site):
    assert [
        page for page in PAGES if not (site / page.relative_to(DOCS)).with_suffix(".html").exists()
    ] == []


def test_no_page_requests_anything_of_another_server(site):
    pages = {page: urls_of(page.read_text()) for page in site.rglob("*.html")}
    assert all(pages.values())
    assert {
        (page.name, url) for page, urls in pages.items() for url in urls if FOREIGN.match(url)
    } == set()
    assert [path.name for path in site.rglob("*.css") if IN_STYLES.search(path.read_text())] == []


@pytest.mark.nightly(1)
@pytest.mark.environment(minutes=1)
def test_a_browser_shows_every_page_without_a_message_or_a_foreign_request(site, browser: Browser):
    for page in sorted(site.rglob("*.html")):
        browser.open(page)
        assert browser.messages() == [], page
        requests = [url for url in browser.requests() if url.startswith(("http", "file", "ws"))]
        assert requests[0] == page.as_uri()
        assert [url for url in requests if not url.startswith(f"{site.as_uri()}/")] == [], page


@pytest.mark.nightly(1)
@pytest.mark.environment(minutes=1)
@each("page", ["index", "how-to/one-file", "explanation/filters", "reference/rules"])
def test_pages_are_accessible_and_fit_a_narrow_window(page, site, browser: Browser):
    problems = browser.check_page(site / f"{page}.html")
    # The sidebars of the theme wait outside a narrow window.
    assert [
        problem for problem in problems if problem.startswith("axe") or "the page is" in problem
    ] == []
