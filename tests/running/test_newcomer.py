"""The newcomer's commands, from a checkout and nothing else: the first of the README, and the audit
of a lake."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
README_BLOCK = re.compile(
    r"^Python 3.11 or newer, .*?^```sh\n(?P<command>.*?)^```$", re.MULTILINE | re.DOTALL
)
BLOCK = re.compile(
    r"Two commands, run in a checkout.*?^```sh\n(?P<commands>.*?)^```$", re.MULTILINE | re.DOTALL
)


@pytest.mark.heavy
def test_from_nothing_to_an_audited_lake(tmp_path):
    block = BLOCK.search((REPOSITORY / "docs" / "how-to" / "many-files.md").read_text())
    assert block is not None
    install, audit = block["commands"].splitlines()
    first = README_BLOCK.search((REPOSITORY / "README.md").read_text())
    assert first is not None
    assert first["command"].startswith(f"{install} &&\n")
    main_job = first["command"].replace("/tmp/", f"{tmp_path}/")
    unwanted = shutil.ignore_patterns(".*", "build", "*.egg-info", "*.so", "__pycache__", "tests")
    checkout = shutil.copytree(REPOSITORY, tmp_path / "checkout", ignore=unwanted)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        ["bash", "-c", main_job],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert "All values verified." in done.stdout
    assert "filtered.parquet: 107919: row groups 0, 2\n" in done.stdout
    done = subprocess.run(
        ["bash", "-c", audit],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 4, (
        done.stderr
    )  # the highest: some fixtures are as they should not be, and the footers of two are encrypted
    assert "files: " in done.stdout.splitlines()[-1]
    assert re.search(r"^error: [a-z-]+: \d+ findings? in ", done.stdout, re.MULTILINE)
