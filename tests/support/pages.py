"""The pages of the documentation, their blocks of code, and the folder in which the blocks of a
page run.

A block may use what the blocks above it on its page made: they run before it, each once, in a
folder of the page that has the fixtures and the docs; those in Python in one process. A block that
does not run has a comment above it that says why: `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
HOME = "/home/you"
"""Stands for the folder of a page in what its commands print."""
BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A block of code. `reason` says why it does not run."""

    page: Path
    number: int
    line: int
    kind: str
    body: str
    reason: str | None


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(
            page,
            number,
            text.count("\n", 0, match.start("kind")) + 1,
            match["kind"],
            match["body"],
            match["reason"],
        )
        for number, match in enumerate(BLOCK.finditer(text))
    ]


def example(guide: str, text: str) -> Block:
    """Return the block of a how-to guide that has this text and is not run as it is."""
    (block,) = (
        block
        for block in blocks_of(REPOSITORY / "docs" / "how-to" / guide)
        if block.reason and text in block.body
    )
    return block


def write_output(block: Block, printed: str) -> None:
    """Put what a block prints now into its page."""
    text = block.page.read_text()
    match = list(BLOCK.finditer(text))[block.number]
    block.page.write_text(text[: match.start("body")] + printed + text[match.end("body") :])


def environment() -> dict[str, str]:
    # The `sbbf` of the environment that runs the tests, whatever else the machine has.
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    java = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the time for a Spark of seconds
    return {
        **os.environ,
        "PATH": path,
        "COLUMNS": "100",
        "LC_ALL": "C.UTF-8",
        "JDK_JAVA_OPTIONS": java,
    }


def run_console(body: str, folder: Path) -> str:
    """Run each command of a block; return the block with what they print."""
    lines = []
    for line in body.splitlines():
        if line.startswith("$ "):
            command = line.removeprefix("$ ")
            needs_shell = not command.startswith("sbbf ") or re.search(
                r"[*?\[|<>&;$`~{]|--run|--jobs|--on spark", command
            )
            output = (
                run_in_shell(command, folder)
                if needs_shell
                else run_in_process(shlex.split(command)[1:], folder)[1]
            )
            lines += [line, *output.rstrip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


def run_in_shell(command: str, folder: Path) -> str:
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return str(
        subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), **options).stdout
    )  # type: ignore[call-overload]


def run_in_process(arguments: list[str], folder: Path) -> tuple[int, str]:
    """Run `sbbf` here, which saves the start of Python; return its exit code and what it prints."""
    from sbbf_tool.cli import run

    with (
        pytest.MonkeyPatch.context() as patch,
        tempfile.TemporaryFile("w+") as output,
        redirect_stdout(output),
        redirect_stderr(output),
    ):
        patch.chdir(folder)
        for name, value in environment().items():
            patch.setenv(name, value)
        code = run(arguments)
        output.seek(0)
        return code, output.read()


class Interpreter:
    """A process in which Sybil runs the Python blocks of a page, with warnings as errors. They
    share names, as cells of a notebook do."""

    PROGRAM = """
def main():
    import json, os, sys, traceback
    from sybil.document import Document
    from sybil.parsers.markdown import PythonCodeBlockParser
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    examples = list(Document.parse(sys.argv[1], PythonCodeBlockParser()))
    for number in sys.stdin:
        try:
            examples[int(number)].evaluate()
            result = ""
        except BaseException:
            result = traceback.format_exc()
        print(json.dumps(result), file=results, flush=True)
main()
"""

    def __init__(self, page: Path, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", self.PROGRAM, page],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(self, number: int) -> str:
        """Run a Python block by its number among those of the page; return its traceback, or
        nothing."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(number, file=self._process.stdin, flush=True)
        result = self._process.stdout.readline()
        return str(json.loads(result)) if result else "the interpreter ended"

    def end(self) -> None:
        self._process.communicate(timeout=60)


class Place:
    """The folder in which the blocks of a page run, and what they printed so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(FIXTURES, folder / "fixtures")
        (folder / "docs").symlink_to(REPOSITORY / "docs")
        self._printed: list[str] = []
        self._num_python = 0
        self._interpreter: Interpreter | None = None

    def run(self, block: Block) -> str:
        """Run a block after those above it on its page that have not run; return what it prints."""
        for above in blocks_of(block.page)[len(self._printed) : block.number + 1]:
            self._printed.append(self._run(above))
        return self._printed[block.number]

    def _run(self, block: Block) -> str:
        if block.kind == "python":
            self._num_python += 1
        if block.reason is not None:
            return ""
        match block.kind:
            case "console":
                return run_console(block.body, self._folder).replace(str(self._folder), HOME)
            case "python":
                self._interpreter = self._interpreter or Interpreter(block.page, self._folder)
                return self._interpreter.run(self._num_python - 1)
            case "toml":
                return run_settings(block.body, self._folder)
        return ""

    def end(self) -> None:
        if self._interpreter is not None:
            self._interpreter.end()


def run_settings(body: str, folder: Path) -> str:
    """Check a file with the settings of a block; return what is wrong with them."""
    path = folder / "settings" / ("pyproject.toml" if "[tool.sbbf" in body else "sbbf.toml")
    path.parent.mkdir(exist_ok=True)
    path.write_text(body)
    code, output = run_in_process(
        ["check", "fixtures/events.parquet", "--config", str(path)], folder
    )
    return "" if code in (0, 1) else output
