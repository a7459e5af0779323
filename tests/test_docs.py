"""README and docs: every `console` block prints what it shows, every `python` block runs, and links
lead somewhere.

`pytest tests/test_docs.py --bless` writes what the commands print now. `support.pages` runs the
blocks.

In a tutorial the reader makes the files, whose sizes depend on the version of pyarrow: there the
words and the form of numbers are compared, not the numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from parts.functions import public_names
from sbbf_tool.rules.catalog import RULES
from support.pages import BLOCK, PAGES, REPOSITORY, Block, Place, blocks_of, name_of, write_output
from support.tables import each

pytestmark = pytest.mark.slow

LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)#?(?P<anchor>[^)]*)\)")
NUMBER = re.compile(r"\d[\d,.]*(e-?\d+)?")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
RUN = ("console", "python", "toml")
NO_EXAMPLES = ("text", "pyi")
"""Kinds of formulas, pictures of bytes, names and signatures."""


def marks_of(block: Block) -> list[pytest.MarkDecorator]:
    if block.kind == "python" and (block.page.name == "spark.md" or "spark" in block.body):
        return [pytest.mark.engines, pytest.mark.heavy]
    return [pytest.mark.heavy] if block.page.name == "iceberg.md" else []


def parameters(kind: str) -> list[object]:
    """Return the blocks of a kind as parameters of a test, named by page and line."""
    return [
        pytest.param(block, id=f"{name_of(block.page)}:{block.line}", marks=marks_of(block))
        for block in BLOCKS
        if block.kind == kind and block.reason is None
    ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Block], str]]:
    """Run a block in the folder of its page; return its output."""
    places: dict[Path, Place] = {}

    def run_block(block: Block) -> str:
        if block.page not in places:
            places[block.page] = Place(tmp_path_factory.mktemp(block.page.stem))
        return places[block.page].run(block)

    yield run_block
    for place in places.values():
        place.end()


def without_numbers(text: str) -> str:
    """Return the text with one mark for each number, and one space or dash for many."""
    return re.sub(r"([ -])+", r"\1", NUMBER.sub("0", text))


@pytest.mark.parametrize("block", parameters("console"))
def test_commands_print_what_is_shown(block, run, request):
    printed, expected = run(block), block.body
    if request.config.getoption("--bless"):
        write_output(block, printed)
    elif block.page.parent.name == "tutorial":
        assert without_numbers(printed) == without_numbers(expected)
    else:
        assert printed == expected


@pytest.mark.parametrize("block", [*parameters("python"), *parameters("toml")])
def test_programs_run_and_settings_are_accepted(block, run):
    assert run(block) == ""


@each("page", {name_of(page): page for page in PAGES if page.name != "CONTRIBUTING.md"})
def test_every_example_is_run_or_says_why_not(page):
    """But for CONTRIBUTING.md: its commands start the tests themselves."""
    blocks = blocks_of(page)
    assert page.read_text().count("\n```") == 2 * len(blocks)
    assert [
        block.line
        for block in blocks
        if block.kind not in (*RUN, *NO_EXAMPLES) and block.reason is None
    ] == []
    assert [
        block.line
        for block in blocks
        if block.kind in NO_EXAMPLES
        and (block.reason or re.search(r"^(\$ )?sbbf ", block.body, re.M))
    ] == []
    assert page.read_text().count("<!-- not run") == sum(
        block.reason is not None for block in blocks
    )


@each("page", {name_of(page): page for page in (*PAGES, REPOSITORY / "fixtures" / "README.md")})
def test_named_files_exist(page):
    names = re.findall(
        r"`((?:docs|fixtures|pyspark_sbbf|sbbf_tool|tests|thrift)/[\w./-]+)`", page.read_text()
    )
    assert [path for path in names if not (REPOSITORY / path).exists()] == []


def test_the_python_page_names_every_public_name():
    page = (REPOSITORY / "docs" / "reference" / "python.md").read_text()
    assert [
        name
        for name in public_names()
        if f"`{name}`" not in page and f"sbbf_tool.{name}" not in page
    ] == []


def test_the_exit_codes_are_all_on_their_page():
    text = (REPOSITORY / "docs" / "reference" / "exit-codes.md").read_text()
    assert set(re.findall(r"^\| ([0-5]) \|", text, re.MULTILINE)) == set("012345")


def test_the_readme_can_be_read_in_one_go():
    text = (REPOSITORY / "README.md").read_text()
    assert len(text.splitlines()) <= 120
    assert len(re.findall(r"^!\[.+\]\(docs/pictures/", text, re.MULTILINE)) == 1


def test_the_changelog_counts_the_rules():
    assert f"has {len(RULES)} [rules]" in (REPOSITORY / "CHANGELOG.md").read_text()


@cache
def anchors_of(page: Path) -> list[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = HEADING.findall(BLOCK.sub("", page.read_text()))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@each("page", {name_of(page): page for page in PAGES})
def test_links_lead_somewhere(page):
    for link in LINK.finditer(BLOCK.sub("", page.read_text())):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.is_relative_to(REPOSITORY), link[0]
        assert target.exists(), link[0]
        if link["anchor"]:
            assert link["anchor"] in anchors_of(target), link[0]


def test_the_figures_of_the_readme_are_those_of_the_measurements():
    readme = " ".join((REPOSITORY / "README.md").read_text().split())
    time = r"([\d.]+ s)"
    sentence = f"two columns of 421 MB take {time}, where DuckDB rewrites the file in {time}"
    ((sbbf, duckdb),) = re.findall(sentence, readme)
    measured = (REPOSITORY / "docs/reference/performance.md").read_text()
    what = "add-filter, 2 of 20 columns, 421 MB, atomic copy"
    assert f"| {what} | {sbbf} | DuckDB rewriting, {duckdb} |" in measured
