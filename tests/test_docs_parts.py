"""The parts of pages that exist in the site alone: every command, rule and function is on its page,
and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parts import PARTS, fill
from parts.commands import read_commands
from parts.functions import public_names
from sbbf_tool.cli.schema import documents
from sbbf_tool.rules.catalog import all_rules

PACKAGE = Path(__file__).parent.parent / "sbbf_tool"
REFERENCE = Path(__file__).parent.parent / "docs" / "reference"


@pytest.mark.parametrize(
    ("page", "headings"),
    [
        ("commands", [f"sbbf {name}" for name in read_commands()]),
        ("rules", [rule.name for rule in all_rules()]),
        ("functions", list(public_names())),
    ],
)
def test_each_has_its_heading(page, headings):
    text = fill((REFERENCE / f"{page}.md").read_text())
    assert sorted(re.findall(r"^### (.*)$", text, re.MULTILINE)) == sorted(headings)
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= set(headings)


def test_modules_that_the_pages_of_extensions_name_exist():
    for page in PACKAGE.glob("extensions/*/README.md"):
        for name in re.findall(r"[\w*/]+\.py\b", page.read_text()):
            assert [*page.parent.glob(name), *PACKAGE.glob(name)], f"{page}: {name}"


@pytest.mark.slow
def test_every_part_is_on_a_page():
    text = "".join(path.read_text() for path in REFERENCE.rglob("*.md"))
    assert set(re.findall(r"^<!-- site: (\w+)", text, re.MULTILINE)) == PARTS.keys()
    assert "<!-- site:" not in fill(text)
    assert all(f"schemas/sbbf.{name}.json" in fill(text) for name in documents())
