"""What uv does with the package: `uvx sbbf-tool` runs it, and the groups of dependencies can be
resolved."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.environments import build_wheel, require_program
from support.tables import each

REPOSITORY = Path(__file__).parents[2]
FIXTURES = REPOSITORY / "fixtures"
GROUPS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]
EXPECTED = {
    "test": {"pytest", "pyspark", "furo"},
    "fuzz": {"atheris", "hypothesis"},
    "release": {"auditwheel", "twine"},
}

pytestmark = [pytest.mark.nightly(1), pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, in place of the index that has it after a release."""
    return build_wheel(tmp_path_factory.mktemp("wheel")).parent


def call(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    uv = require_program("uv", "0.13.9")
    options = ("--quiet", "--no-config", "--find-links", folder, "--python", sys.executable)
    return subprocess.run(
        [uv, *arguments[:2], *options, *arguments[2:]], capture_output=True, text=True
    )


def test_uvx_runs_the_package_by_its_name(folder: Path) -> None:
    done = call(
        folder,
        "tool",
        "run",
        "sbbf-tool",
        "probe",
        FIXTURES / "pyarrow-filters.parquet",
        "id",
        "-1",
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "Queried 1 value in 1 file: all of them are excluded"


@each("group", list(GROUPS))
def test_a_group_of_dependencies_can_be_resolved(folder: Path, group: str) -> None:
    done = call(folder, "pip", "compile", "--group", f"{REPOSITORY / 'pyproject.toml'}:{group}")
    assert done.returncode == 0, done.stderr
    assert {line.partition("==")[0] for line in done.stdout.splitlines()} > EXPECTED[group]
