"""What installers do with the package: pip, uv and pipx install the wheel from a file, `uvx
sbbf-tool` runs it, and the groups of dependencies can be resolved."""

from __future__ import annotations

import os
import shutil
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

PIPX = "1.8.0"
UV = "0.13.9"

pytestmark = [pytest.mark.nightly(4), pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel, in place of the index that has it after a release."""
    return build_wheel(tmp_path_factory.mktemp("wheel")).parent


def call(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    uv = require_program("uv", UV)
    options = ("--quiet", "--no-config", "--find-links", folder, "--python", sys.executable)
    return subprocess.run(
        [uv, *arguments[:2], *options, *arguments[2:]], capture_output=True, text=True
    )


def find_python(version: str) -> str:
    """Return an interpreter of a version, on the path or of pyenv; skip the row without one."""
    name = f"python{version}"
    installed = Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}")
    for python in filter(None, [shutil.which(name), *map(str, installed)]):
        if subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
            return python
    pytest.skip(f"there is no Python {version}")


def install_wheel(installer: str, wheel: Path, python: str, folder: Path) -> Path:
    """Install a wheel into an environment in a folder; return the program."""
    programs = folder / "bin"
    environment = {
        **os.environ,
        "UV_TOOL_BIN_DIR": str(programs),
        "UV_TOOL_DIR": str(folder / "tools"),
        "PIPX_BIN_DIR": str(programs),
        "PIPX_HOME": str(folder / "pipx"),
    }
    environment.pop("PYTHONPATH", None)
    pip = ("install", "-q", wheel)
    if installer == "pip":
        subprocess.run([python, "-m", "venv", folder], check=True)
        command = [programs / "python", "-m", "pip", *pip]
    elif installer == "uv":
        command = [require_program("uv", UV), "tool", *pip, "--python", python]
    else:
        command = [require_program("pipx", PIPX), "install", "--quiet", wheel, "--python", python]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return programs / "sbbf"


@each("version", ["3.11", "3.13"])
@each("installer", ["pip", "uv", "pipx"])
def test_an_installed_wheel_probes(folder: Path, tmp_path: Path, installer, version) -> None:
    (wheel,) = folder.glob("*.whl")
    place = tmp_path / f"{installer}-{version}"
    program = install_wheel(installer, wheel, find_python(version), place)
    environment = {key: text for key, text in os.environ.items() if key != "PYTHONPATH"}
    command = [program, "probe", FIXTURES / "pyarrow-filters.parquet", "id", "1000"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "may hold 1 of the values" in done.stdout
    kernels = list(place.rglob("sbbf_tool/parquet/_scan.abi3.so"))
    assert kernels, "the wheel has the compiled code"
    shutil.rmtree(place)


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
