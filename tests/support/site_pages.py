"""The pages of `site/` in a browser: open a file, read the table, query a column for values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.browser import Browser, read_json

_IS_DONE = "['done', 'failed'].includes(document.getElementById('status').dataset.state)"

# Sets the column and the value as a user does, submits the form, and waits for the answer.
_PROBE = """
const [questions, done] = [arguments[0], arguments[arguments.length - 1]]
const [column, value, form, box] = ['column', 'value', 'probe', 'answer'].map(id => document.getElementById(id))
const answers = []
const queryAll = async () => {
  for (const [index, text] of questions) {
    column.value = String(index)
    column.dispatchEvent(new Event('change'))
    value.value = text
    value.dispatchEvent(new Event('input'))
    const finished = new Promise(resolve => {
      const observer = new MutationObserver(() => {
        if (box.dataset.state !== 'busy') resolve(observer.disconnect())
      })
      observer.observe(box, { attributes: true, attributeFilter: ['data-state'] })
    })
    form.requestSubmit()
    await finished
    answers.push({
      state: box.dataset.state,
      summary: box.querySelector('p').textContent,
      rows: [...box.querySelectorAll('tbody tr')].map(row => [row.dataset.answer, row.querySelector('.reason').textContent]),
    })
  }
}
queryAll().then(() => done(answers), error => done(String(error)))
"""

_ROWS = """[...document.querySelectorAll('#rows tr')].map(row => [...row.children].map(cell => {
  const data = cell.querySelector('data')
  return data ? Number(data.value) : cell.textContent
}))"""


class Row(NamedTuple):
    """A row of the table of filters; an empty text where the page has no number."""

    row_group: int
    column: str
    type: str
    offset: int
    bytes: int | str
    fill_ratio: float | str
    estimated_fpp: float | str
    reason: str


class Answer(NamedTuple):
    """What the page shows after a query: `done` or `failed`, its sentence, and the answer and the reason for each row group."""

    state: str
    summary: str
    rows: tuple[tuple[str, str], ...]


def choose_file(browser: Browser, path: Path) -> str:
    """Choose a file on the page that is open, and return the message that the page shows then."""
    browser.driver.execute_script("document.getElementById('status').dataset.state = 'busy'")
    browser.driver.find_element("id", "file").send_keys(str(path.resolve()))
    return wait_for_file(browser)


def choose_url(browser: Browser, url: str) -> str:
    """Read a URL on the page that is open, and return the message that the page shows then."""
    browser.driver.execute_script("document.getElementById('url').value = arguments[0]", url)
    browser.driver.execute_script("document.getElementById('status').dataset.state = 'busy'")
    browser.driver.execute_script("document.getElementById('url-form').requestSubmit()")
    return wait_for_file(browser)


def wait_for_file(browser: Browser) -> str:
    browser.wait_for(_IS_DONE)
    return str(read_json(browser, "document.getElementById('status').textContent"))


def list_rows(browser: Browser) -> list[Row]:
    """Return the table of filters, with the numbers unrounded."""
    return [Row(*cells) for cells in read_json(browser, _ROWS)]


def probe_values(browser: Browser, questions: Sequence[tuple[int, str]]) -> list[Answer]:
    """Query the file for values: the position of a column, and a text, each."""
    answers: list[dict[str, Any]] | str = browser.driver.execute_async_script(_PROBE, questions)
    assert not isinstance(answers, str), answers
    return [
        Answer(answer["state"], answer["summary"], tuple((str(name), str(reason)) for name, reason in answer["rows"])) for answer in answers
    ]
