"""The README says what is so: its commands run, and print what it shows. `pytest tests/test_readme.py --bless` writes what they print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(?P<kind>console|python)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, fixtures):
    """A folder that has the fixtures, for commands that run one after the other."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(fixtures, folder / "fixtures")
    return folder


def environment() -> dict[str, str]:
    # The `sbbf` of the environment that runs the tests, whatever else the machine has.
    commands = os.path.dirname(sys.executable)
    return {**os.environ, "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "100", "LC_ALL": "C.UTF-8"}


def printed(body: str, folder: Path) -> str:
    """The block again, with what its commands print now."""
    lines = []
    for line in body.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line[2:]], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            lines += [line, *done.stdout.rstrip("\n").splitlines()]
    return "".join(f"{line}\n" for line in lines)


def test_commands_print_what_is_shown(workplace, request):
    text = README.read_text()
    blocks = [match for match in BLOCK.finditer(text) if match["kind"] == "console"]
    assert blocks
    found = [printed(match["body"], workplace) for match in blocks]
    if request.config.getoption("--bless"):
        for match, body in reversed(list(zip(blocks, found, strict=True))):
            text = text[: match.start("body")] + body + text[match.end("body") :]
        README.write_text(text)
    assert found == [match["body"] for match in BLOCK.finditer(README.read_text()) if match["kind"] == "console"]


def test_python_runs(workplace):
    programs = [match["body"] for match in BLOCK.finditer(README.read_text()) if match["kind"] == "python"]
    assert programs
    surroundings = environment() | {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # half the time for a Spark of seconds
    for program in programs:
        subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=workplace, env=surroundings, check=True, capture_output=True)
