"""The checks of `support.browser`: each reports the page that has the problem, and a page without problems passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.browser import Browser
from support.tables import each

pytestmark = [pytest.mark.nightly(1), pytest.mark.environment(minutes=1), pytest.mark.timeout(300)]

GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title><link rel="icon" href="data:,">
<style>body { color: #111; background: #fff } @media (prefers-color-scheme: dark) { body { color: #eee; background: #111 } }</style></head>
<body><main><h1>A page</h1><p>Some words.</p>
<svg role="img" aria-label="Two bars" width="90" height="20"><rect class="mark" width="9" height="9"><title>nine</title></rect></svg>
BODY</main></body></html>"""


def page(tmp_path: Path, body: str = "", style: str = "") -> Path:
    path = tmp_path / "page.html"
    path.write_text(GOOD.replace("BODY", body).replace("</style>", f"{style}</style>"))
    return path


def test_a_good_page_has_no_problems(browser: Browser, tmp_path: Path) -> None:
    assert browser.check_page(page(tmp_path)) == []


@each(
    "body, style, problem",
    [
        ("<script>console.error('oh')</script>", "", "console: SEVERE"),
        ("<script>throw new Error('oh')</script>", "", "console: SEVERE"),
        ("<script src='https://example.com/a.js'></script>", "", "foreign request: https://example.com/a.js"),
        ("<img src='../elsewhere.png' alt='x'>", "", "foreign request: file://"),
        ("<script>new WebSocket('ws://127.0.0.1:9')</script>", "", "foreign request: ws://127.0.0.1:9"),
        ("<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>", "", "axe, light: image-alt"),
        ("<p class='pale'>pale</p>", "@media (prefers-color-scheme: dark) { .pale { color: #222 } }", "axe, dark: color-contrast"),
        ("<div class='wide'>wide</div>", ".wide { width: 500px }", "overflow at 400 px: the page is"),
        ("<div class='wide'>wide</div>", ".wide { width: 1300px }", "overflow at 1280 px: the page is"),
        ("<div class='cut'>words that are cut</div>", ".cut { width: 30px; overflow: hidden; white-space: nowrap }", "cuts its content"),
        ("<svg role='img' aria-label='x'><rect class='mark' width='9' height='9'/></svg>", "", "untitled: a mark has no title"),
        ("<svg role='img'><rect width='9' height='9'/></svg>", "", "untitled: a picture has no name"),
    ],
)
def test_a_problem_is_reported(browser: Browser, tmp_path: Path, body: str, style: str, problem: str) -> None:
    problems = browser.check_page(page(tmp_path, body, style))
    assert any(problem in line for line in problems), problems


def test_what_scrolls_within_the_page_does_not_overflow(browser: Browser, tmp_path: Path) -> None:
    body = "<div class='frame' tabindex='0' role='region' aria-label='wide'><div class='wide'>wide</div></div>"
    assert browser.check_page(page(tmp_path, body, ".frame { overflow-x: auto } .wide { width: 3000px }")) == []
