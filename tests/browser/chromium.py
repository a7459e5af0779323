"""Pages in a real browser: headless Chromium, driven by selenium, without a network.

`browser` is a session fixture; a conftest.py imports it. `Browser.check_page` opens a page at two
widths and in both colour schemes, and lists what is wrong: messages in the console, requests to
others, what axe-core finds, what overflows, and marks of pictures without title. Tests that use it
are marked `slow` and `environment(minutes=1)`, since npm installs axe-core the first time.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from support.environments import NotInstallableError, install_npm

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

WIDTHS = (400, 1280)
SCHEMES = ("light", "dark")
_HEIGHT = 900
_AXE = json.dumps({"private": True, "dependencies": {"axe-core": "4.14.1"}})
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-proxy-server",
    "--force-color-profile=srgb",
    # No name is resolved but that of this machine, so that a page depends on nothing else.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_LOCAL = {"about", "blob", "chrome", "chrome-extension", "data", "devtools"}

_RUN_AXE = """
const done = arguments[arguments.length - 1]
axe.run(document, {resultTypes: ['violations']}).then(
  result => done(result.violations.flatMap(rule =>
    rule.nodes.map(node => `${rule.id}: ${node.html.slice(0, 160)}: ${node.failureSummary}`))),
  error => done([String(error)]))
"""

# What is wider than the page, unless an element around it scrolls; and text that is cut without a
# mark.
_FIND_OVERFLOW = """
const found = [], root = document.documentElement
if (root.scrollWidth > root.clientWidth)
  found.push(`the page is ${root.scrollWidth} px wide, the window ${root.clientWidth} px`)
const scrolls = element => {
  for (let at = element.parentElement; at && at !== document.body; at = at.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(at).overflowX)) return true
  return false
}
for (const element of document.body.querySelectorAll('*')) {
  const box = element.getBoundingClientRect(), style = getComputedStyle(element)
  if (!box.width || !box.height || style.visibility === 'hidden') continue
  if (element.closest('[hidden]')) continue
  if (box.width <= 1 && box.height <= 1) continue  // for screen readers only
  const name = `<${element.tagName.toLowerCase()} class="${element.getAttribute('class') ?? ''}">`
  if ((box.right > root.clientWidth + 1 || box.left < -1) && !scrolls(element))
    found.push(`${name} is outside the window: ${Math.round(box.left)} to ` +
      `${Math.round(box.right)} px of ${root.clientWidth}`)
  const isCut = style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis'
  if (isCut && element.scrollWidth > element.clientWidth + 1)
    found.push(`${name} cuts its content: ${element.scrollWidth} px in ${element.clientWidth}`)
}
return found.slice(0, 20)
"""

# A mark is a shape inside an SVG picture; its title, or that of a group around it, is what a
# pointer shows and a screen reader reads.
_FIND_UNTITLED = """
const found = []
for (const picture of document.querySelectorAll('svg')) {
  if (picture.closest('[hidden]') || picture.getAttribute('aria-hidden') === 'true') continue
  const label = picture.getAttribute('aria-label') || picture.getAttribute('aria-labelledby')
  if (!label && !picture.querySelector(':scope > title'))
    found.push(`a picture has no name: ${picture.outerHTML.slice(0, 120)}`)
  for (const mark of picture.querySelectorAll('.mark, [data-mark]')) {
    const titled = mark.closest('svg :is(g, rect, circle, path, polyline, line, a):has(> title)')
    if (!titled?.querySelector(':scope > title').textContent.trim())
      found.push(`a mark has no title: ${mark.outerHTML.slice(0, 120)}`)
  }
}
return found.slice(0, 20)
"""


class Browser:
    """One headless Chromium. `driver` is selenium's; the log of the network is read by `requests`,
    that of the console by `messages`."""

    def __init__(self, driver: Chrome, axe: str) -> None:
        self.driver = driver
        self._axe = axe

    def open(self, page: Path | str) -> None:
        """Open a file or URL, and forget the logs of earlier pages."""
        self.driver.get("about:blank")
        self.messages()
        self.requests()
        self.driver.get(url_of(page))

    def messages(self) -> list[str]:
        """Return what the console has shown since the last call: errors, warnings and refusals by a
        Content-Security-Policy."""
        return [
            f"console: {entry['level']}: {entry['message']}"
            for entry in self.driver.get_log("browser")
        ]

    def requests(self) -> list[str]:
        """Return the URLs that pages have requested since the last call, those of the page itself
        among them."""
        urls = []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.requestWillBeSent":
                urls.append(event["params"]["request"]["url"])
            elif event["method"] == "Network.webSocketCreated":
                urls.append(event["params"]["url"])
        return urls

    def set_width(self, pixels: int, height: int = _HEIGHT) -> None:
        metrics = {"width": pixels, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def set_scheme(self, scheme: str) -> None:
        """Prefer the colour scheme `light` or `dark`."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def text(self) -> str:
        """Return the visible text of the page."""
        return str(self.driver.execute_script("return document.body.innerText"))

    def check_page(self, page: Path | str) -> list[str]:
        """Open a page, and list what is wrong with it at each width and in each colour scheme:
        empty for a good page."""
        self.open(page)
        problems = [f"untitled: {line}" for line in self._run(_FIND_UNTITLED)]
        for scheme in SCHEMES:
            self.set_scheme(scheme)
            for width in WIDTHS:
                self.set_width(width)
                if scheme == SCHEMES[0]:
                    problems += [
                        f"overflow at {width} px: {line}" for line in self._run(_FIND_OVERFLOW)
                    ]
            self.driver.execute_script(self._axe)
            problems += [
                f"axe, {scheme}: {line}" for line in self.driver.execute_async_script(_RUN_AXE)
            ]
        problems += [
            f"foreign request: {url}" for url in self.requests() if _is_foreign(url, url_of(page))
        ]
        return problems + self.messages()

    def _run(self, script: str) -> list[str]:
        lines: list[str] = self.driver.execute_script(script)
        return lines


def url_of(page: Path | str) -> str:
    return page.resolve().as_uri() if isinstance(page, Path) else page


def _is_foreign(url: str, page: str) -> bool:
    parts, own = urlsplit(url), urlsplit(page)
    if parts.scheme in _LOCAL:
        return False
    if parts.scheme == "file":
        # A page that is a file has its own folder.
        return own.scheme != "file" or Path(own.path).parent not in Path(parts.path).parents
    return parts.netloc != (own.netloc or None)


def start_browser(folder: Path) -> Browser:
    """Start Chromium with its profile in `folder`. Raises NotInstallableError with the reason if
    this machine has none, or no axe-core."""
    try:
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        raise NotInstallableError("the Python package selenium is not installed") from None
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        raise NotInstallableError("Chromium and its driver are not installed")
    axe = install_npm("axe-core-4.14", _AXE) / "node_modules" / "axe-core" / "axe.min.js"
    options = ChromeOptions()
    options.binary_location = chromium
    for argument in (*_ARGUMENTS, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(chromedriver))
    driver.set_script_timeout(60)
    return Browser(driver, axe.read_text())


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for the whole run; the tests that need it are skipped with the reason if it
    cannot be started."""
    try:
        started_browser = start_browser(tmp_path_factory.mktemp("chromium"))
    except NotInstallableError as error:
        pytest.skip(str(error))
    yield started_browser
    started_browser.driver.quit()


def read_json(browser: Browser, expression: str) -> Any:
    """Return the value of a JavaScript expression in the page."""
    return browser.driver.execute_script(f"return {expression}")
