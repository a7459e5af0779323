"""The pages of the cookbook: short, complete, and each with a test that runs its files."""

from __future__ import annotations

import re
from pathlib import Path

from support.pages import blocks_of
from support.recipes import COOKBOOK, FILE_NAME, files_of
from support.tables import each

PAGES = sorted(path for path in COOKBOOK.glob("*.md") if path.name != "index.md")
TESTS = Path(__file__).parent


@each("page", PAGES)
def test_each_block_names_its_file_and_the_test_that_runs_it(page):
    blocks = blocks_of(page)
    assert [block.line for block in blocks if not FILE_NAME.match(block.body)] == []
    assert len(files_of(page.stem)) == len(blocks) > 0
    assert {block.reason for block in blocks} == {f"tests/cookbook/test_{page.stem.replace('-', '_')}.py runs it"}


@each("page", PAGES)
def test_the_test_uses_every_file_of_the_page(page):
    text = (TESTS / f"test_{page.stem.replace('-', '_')}.py").read_text()
    assert re.findall(r"^pytestmark = \[pytest.mark.nightly\(minutes=\d\), pytest.mark.environment\(minutes=\d\)", text, re.MULTILINE)
    assert f'write_recipe("{page.stem}"' in text


@each("page", PAGES)
def test_a_page_is_short(page):
    assert len(page.read_text().splitlines()) <= 75
