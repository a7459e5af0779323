"""SARIF links each rule on the page of the rules once [project.urls] has the address of the
documentation; before, it links nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def rules(fixtures: Path, *folders: Path) -> list[dict[str, Any]]:
    """Return the rules of a SARIF document, by a program whose metadata may be in one of the
    folders."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [
        sys.executable,
        "-P",
        "-m",
        "sbbf_tool",
        "check",
        str(fixtures / "pyarrow-filters.parquet"),
        "--format",
        "sarif",
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (run,) = json.loads(done.stdout)["runs"]
    return list(run["tool"]["driver"]["rules"])


def write_metadata(folder: Path, *addresses: str) -> Path:
    info = folder / "sbbf_tool-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", "Name: sbbf-tool", "Version: 0.1.0", *addresses, ""])
    )
    return folder


def test_there_is_no_address_before_the_first_release(fixtures: Path) -> None:
    assert tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["urls"] == {}
    assert [rule["id"] for rule in rules(fixtures) if "helpUri" in rule] == []


def test_each_rule_has_its_address(fixtures: Path, tmp_path: Path) -> None:
    folder = write_metadata(
        tmp_path,
        "Project-URL: Source, https://example.org/source",
        "Project-URL: Documentation, https://example.org/docs/",
    )
    addresses = {rule["id"]: rule["helpUri"] for rule in rules(fixtures, folder)}
    assert addresses == {
        name: f"https://example.org/docs/reference/rules.html#{name}" for name in addresses
    }
