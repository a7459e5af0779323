"""The cookbook: complete files, each with a test that runs it."""

from __future__ import annotations

import re
from pathlib import Path

from support.pages import blocks_of
from support.recipes import COOKBOOK, FILE_NAME

MARKS = (
    r"^pytestmark = \[\s*pytest.mark.nightly\(minutes=\d\),\s*pytest.mark.environment\(minutes=\d\)"
)


def test_each_block_names_its_file_and_the_test_that_runs_it():
    blocks = blocks_of(COOKBOOK)
    assert [block.line for block in blocks if not FILE_NAME.match(block.body)] == []
    tests = {
        block.reason.removeprefix("tests/cookbook/").removesuffix(" runs it") for block in blocks
    }
    assert tests == {path.name for path in Path(__file__).parent.glob("test_*.py")} - {
        Path(__file__).name
    }
    for name in tests:
        text = (Path(__file__).parent / name).read_text()
        assert re.findall(MARKS, text, re.MULTILINE)
        assert f'write_recipe("{name.removeprefix("test_").removesuffix(".py")}"' in text
