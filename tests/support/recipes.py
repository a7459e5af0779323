"""The recipes of `docs/cookbook.md`: their files, the environments of their programs, and lakes to
run them on.

Each block begins with a comment that names its file. The tests write the blocks to these files and
run them as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import sbbf_tool
from support.environments import NotInstallableError, install_python
from support.pages import FIXTURES, REPOSITORY, blocks_of, environment

COOKBOOK = REPOSITORY / "docs" / "cookbook.md"
FILE_NAME = re.compile(r"(?:#|--) (?P<path>[\w./-]+)$", re.MULTILINE)
DAYS = ("2026-01-01", "2026-01-02")


def files_of(test: str) -> dict[str, str]:
    """Return the text of each file of the recipe that this test runs, by its path."""
    bodies = [
        block.body
        for block in blocks_of(COOKBOOK)
        if block.reason == f"tests/cookbook/test_{test}.py runs it"
    ]
    return {match["path"]: body for body in bodies if (match := FILE_NAME.match(body))}


def write_recipe(test: str, folder: Path) -> dict[str, Path]:
    """Write the files of a recipe into a folder; return the path of each by its name on the
    page."""
    paths = {name: folder / name for name in files_of(test)}
    for name, text in files_of(test).items():
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        paths[name].write_text(text)
    return paths


def install(name: str, version: str, *requirements: str, with_package: bool = False) -> Path:
    """Return the folder of the programs of an environment; if `with_package`, one that has what
    this package needs, see `run`."""
    packages = requirements or (f"{name}=={version}",)
    if with_package:
        packages += tuple(
            tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
        )
    try:
        return install_python(f"{name}-{version}", *packages).parent
    except NotInstallableError as error:
        pytest.skip(str(error))


def run(
    command: list[str | Path],
    folder: Path,
    variables: dict[str, str] | None = None,
    *,
    programs: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command with `programs` and the `sbbf` of these tests on the path; return its exit code
    and what it prints.

    An interpreter among the programs finds the package of this repository if it has what the
    package needs.
    """
    base = {**environment(), "PYTHONPATH": str(REPOSITORY)}
    path = base["PATH"] if programs is None else f"{programs}{os.pathsep}{base['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**base, "PATH": path, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


class Lake:
    """A folder with a file per day, of which those in `days` have filters on `user_id`."""

    def __init__(self, folder: Path, days: tuple[str, ...] = DAYS) -> None:
        self.folder = folder
        for day in DAYS:
            self.path(day).parent.mkdir(parents=True)
            self.remove_filters(day)
        for day in days:
            sbbf_tool.add_filters(self.path(day), ["user_id"], in_place=True)

    def path(self, day: str) -> Path:
        return self.folder / f"dt={day}" / "part-0.parquet"

    def count_filters(self, day: str) -> int:
        return len(sbbf_tool.inspect(self.path(day)).filters)

    def remove_filters(self, day: str) -> None:
        """Let a writer that adds no filters write the file of a day again."""
        shutil.copy(FIXTURES / "events.parquet", self.path(day))

    def damage(self, day: str) -> None:
        self.path(day).write_bytes(b"PAR1")

    def break_filter(self, day: str) -> None:
        break_filter(self.path(day))


def break_filter(path: Path) -> None:
    """Clear the bits of half of the blocks of the first filter: it excludes values that the file
    has."""
    first, *_ = sbbf_tool.inspect(path).filters
    start, length = first.offset + first.header_bytes, first.bitset_bytes // 2
    data = bytearray(path.read_bytes())
    data[start : start + length] = bytes(length)
    path.write_bytes(data)
    assert not sbbf_tool.verify(path).is_sound
