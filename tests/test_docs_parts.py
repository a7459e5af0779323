"""The generated parts of the pages are current, and every command and rule has a page.

`pytest -n 0 tests/test_docs_parts.py --bless` writes them. `docs/parts` has the functions that the markers call.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from cogapp import Cog

from parts import PARTS, commands, rules
from support.every_command import commands as every_command

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
GENERATED = [path for path in sorted(DOCS.rglob("*.*")) if path.suffix in (".md", ".svg") and "[[[cog" in path.read_text()]
PROLOGUE = "from parts import PARTS; globals().update({name: lambda *a, part=part: cog.out(part(*a)) for name, part in PARTS.items()})"


def new_pages() -> dict[Path, str]:
    """Return the pages of commands and rules as they begin."""
    of_commands = {DOCS / commands.FOLDER / commands.page_of(name): commands.begin_page(name) for name in commands.read_commands()}
    return of_commands | {DOCS / rules.FOLDER / f"{name}.md": rules.begin_page(name) for name in rules.read_rules()}


def run_cog(path: Path, *options: str) -> int:
    return int(Cog().main(["cog", "-p", PROLOGUE, "-I", str(DOCS), *options, str(path)]) or 0)


def test_every_command_and_rule_has_a_page_and_no_page_is_left_over(request):
    pages = new_pages()
    if request.config.getoption("--bless"):
        for path, text in pages.items():
            if not path.exists():
                path.write_text(text)
                run_cog(path, "-r")
    folders = (DOCS / commands.FOLDER, DOCS / rules.FOLDER)
    assert {path for folder in folders for path in folder.iterdir() if path.name != "index.md"} == pages.keys()
    assert commands.read_commands().keys() == every_command().keys()


@pytest.mark.parametrize("path", GENERATED, ids=lambda path: str(path.relative_to(DOCS)))
def test_generated_parts_are_current(path, request, capsys):
    if request.config.getoption("--bless"):
        run_cog(path, "-r")
    assert run_cog(path, "--check", "--diff") == 0, capsys.readouterr().out


@pytest.mark.parametrize("path", new_pages(), ids=lambda path: str(path.relative_to(DOCS)))
def test_the_page_has_its_marker(path):
    """A page may have more text than its generated part, but not less."""
    title, _, marker, _ = new_pages()[path].splitlines()
    assert {title, marker} <= set(path.read_text().splitlines())


def test_every_part_is_on_a_page():
    text = "".join(path.read_text() for path in GENERATED)
    assert {name for name in PARTS if f"[[[cog {name}(" not in text} == set()
