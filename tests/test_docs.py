"""README and docs: every `console` block prints what it shows, every `python` block runs, and links lead somewhere.

`pytest tests/test_docs.py --bless` writes what the commands print now. A block may use what the blocks above it on its page made: they
run before it, each once, in a folder of the page that has the fixtures and the docs; those in Python in one interpreter.

In a tutorial the reader makes the files, whose sizes depend on the version of pyarrow: there the words and the form of numbers are
compared, not the numbers.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import sbbf_tool
from support.every_command import commands

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parent.parent
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)(?P<path>[^)#]*)#?(?P<anchor>[^)]*)\)")
NUMBER = re.compile(r"\d[\d,.]*(e-?\d+)?")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Block(NamedTuple):
    page: Path
    number: int
    line: int
    kind: str
    body: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(page, number, text.count("\n", 0, match.start()) + 1, match["kind"], match["body"])
        for number, match in enumerate(BLOCK.finditer(text))
    ]


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def parameters(kind: str) -> list[object]:
    """Return the blocks of a kind as parameters of a test, named by page and line."""
    return [
        pytest.param(
            block,
            id=f"{block.page.relative_to(REPOSITORY)}:{block.line}",
            marks=[pytest.mark.engines] if kind == "python" and "spark" in block.body else [],
        )
        for block in BLOCKS
        if block.kind == kind
    ]


def environment() -> dict[str, str]:
    # The `sbbf` of the environment that runs the tests, whatever else the machine has.
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the time for a Spark of seconds
    return {**os.environ, "PATH": path, "COLUMNS": "100", "LC_ALL": "C.UTF-8", "JDK_JAVA_OPTIONS": java}


def run_console(body: str, folder: Path) -> str:
    """Run each command of a block; return the block with what they print."""
    lines = []
    for line in body.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line[2:]], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            lines += [line, *done.stdout.rstrip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


class Interpreter:
    """A Python process of one page, in which warnings are errors. Its blocks share names, as cells of a notebook do."""

    PROGRAM = """
def main():
    import json, os, sys, traceback
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            exec(json.loads(line), globals())
            result = ""
        except BaseException:
            result = traceback.format_exc()
        print(json.dumps(result), file=results, flush=True)
main()
"""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", self.PROGRAM],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, body: str) -> str:
        """Run a block; return its traceback, or nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(body), file=self._process.stdin, flush=True)
        result = self._process.stdout.readline()
        return str(json.loads(result)) if result else "the interpreter ended"

    def end(self) -> None:
        self._process.communicate(timeout=60)


class Place:
    """The folder in which the blocks of a page run, and what they printed so far."""

    def __init__(self, folder: Path, fixtures: Path) -> None:
        self.folder = folder
        shutil.copytree(fixtures, folder / "fixtures")
        (folder / "docs").symlink_to(REPOSITORY / "docs")
        self._printed: list[str] = []
        self._interpreter: Interpreter | None = None

    def run(self, block: Block) -> str:
        """Run a block after those above it on its page that have not run; return what it prints."""
        for above in blocks_of(block.page)[len(self._printed) : block.number + 1]:
            self._printed.append(self._run(above))
        return self._printed[block.number]

    def _run(self, block: Block) -> str:
        if block.kind == "console":
            return run_console(block.body, self.folder)
        if block.kind != "python":
            return ""
        self._interpreter = self._interpreter or Interpreter(self.folder)
        return self._interpreter.run(block.body)

    def end(self) -> None:
        if self._interpreter is not None:
            self._interpreter.end()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, fixtures: Path) -> Iterator[Callable[[Block], str]]:
    """Run a block in the folder of its page; return its output."""
    places: dict[Path, Place] = {}

    def run_block(block: Block) -> str:
        if block.page not in places:
            places[block.page] = Place(tmp_path_factory.mktemp(block.page.stem), fixtures)
        return places[block.page].run(block)

    yield run_block
    for place in places.values():
        place.end()


def write_output(block: Block, printed: str) -> None:
    """Put what a block prints now into its page."""
    text = block.page.read_text()
    match = list(BLOCK.finditer(text))[block.number]
    block.page.write_text(text[: match.start("body")] + printed + text[match.end("body") :])


def without_numbers(text: str) -> str:
    """Return the text with one mark for each number, and one space or dash for many."""
    return re.sub(r"([ -])+", r"\1", NUMBER.sub("0", text))


@pytest.mark.parametrize("block", parameters("console"))
def test_commands_print_what_is_shown(block, run, request):
    printed, expected = run(block), block.body
    if block.page.parent.name == "tutorial" and without_numbers(printed) == without_numbers(expected):
        return
    if request.config.getoption("--bless"):
        write_output(block, printed)
    else:
        assert printed == expected


@pytest.mark.parametrize("block", parameters("python"))
def test_programs_run(block, run):
    assert run(block) == ""


@pytest.mark.parametrize("page", [*PAGES, REPOSITORY / "fixtures" / "README.md"], ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_named_files_exist(page):
    names = re.findall(r"`((?:docs|fixtures|pyspark_sbbf|sbbf_tool|tests|thrift)/[\w./-]+)`", page.read_text())
    assert [path for path in names if not (REPOSITORY / path).exists()] == []


def test_the_commands_page_shows_the_help_of_every_command():
    page = (REPOSITORY / "docs" / "reference" / "commands.md").read_text()
    assert {name for name in commands() if f"$ sbbf {name} --help" not in page} == set()


def test_the_python_page_names_every_public_name():
    page = (REPOSITORY / "docs" / "reference" / "python.md").read_text()
    assert [name for name in sbbf_tool.__all__ if f"`{name}`" not in page and f"sbbf_tool.{name}" not in page] == []


def test_the_readme_can_be_read_in_one_go():
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_blocks_say_what_they_are(page):
    """A misspelt kind would not be tested."""
    assert {block.kind for block in blocks_of(page)} <= {"console", "python", "sh", "text", "toml", "yaml", "json"}
    assert page.read_text().count("\n```") == 2 * len(blocks_of(page))


def anchor_of(heading: str) -> str:
    """Return the anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page):
    for link in LINK.finditer(BLOCK.sub("", page.read_text())):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.is_relative_to(REPOSITORY), link[0]
        assert target.exists(), link[0]
        if link["anchor"]:
            assert link["anchor"] in map(anchor_of, HEADING.findall(BLOCK.sub("", target.read_text()))), link[0]
