"""PyInstaller, pex and shiv make one program of the wheel, which runs every command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from support.environments import NotInstallableError, install_python, run
from support.every_command import COLUMN, DATA_FILE, FILE, TABLE, WORKING, commands
from support.wheels import REPOSITORY, build_wheel

pytestmark = [pytest.mark.heavy(3), pytest.mark.environment(minutes=2), pytest.mark.timeout(900)]

TOOLS = ("pyinstaller==6.22.3", "pex==2.105.2", "shiv==1.0.8")
MORE = {
    "version": ["--version"],
    "processes": ["verify", FILE, DATA_FILE, "--jobs", "2"],
    "a file of Arrow": ["inspect", FILE, "--report", "rows.arrow"],
}
CASES = {name: [*name.split(), *words] for name, words in WORKING.items()} | MORE


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder of an environment with the tools and what the package needs, but without the package.

    `conformance make` needs the extra `encryption`.
    """
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    needs = [*project["dependencies"], *project["optional-dependencies"]["encryption"]]
    try:
        return install_python("programs-encryption", *TOOLS, *needs).parent
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def make_with_pyinstaller(tools: Path, wheel: Path, folder: Path) -> Path:
    """PyInstaller finds the hook in the wheel by itself."""
    run("the wheel", str(tools / "python"), "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder / "package"), str(wheel))
    (folder / "sbbf.py").write_text("from sbbf_tool.__main__ import main\n\nmain()\n")
    options = ["--onedir", "--noconfirm", "--log-level", "ERROR", "--paths", str(folder / "package")]
    environment = {**os.environ, "PYTHONPATH": str(folder / "package"), "PYINSTALLER_CONFIG_DIR": str(folder / "cache")}
    subprocess.run([tools / "pyinstaller", *options, "sbbf.py"], cwd=folder, env=environment, check=True, timeout=600)
    return folder / "dist" / "sbbf" / "sbbf"


def make_with_pex(tools: Path, wheel: Path, folder: Path) -> Path:
    command = [tools / "pex", f"{wheel}[encryption]", "--venv", "--console-script", "sbbf", "--output-file", str(folder / "sbbf.pex")]
    subprocess.run(command, cwd=folder, env={**os.environ, "PEX_ROOT": str(folder / "cache")}, check=True, timeout=600)
    return folder / "sbbf.pex"


def make_with_shiv(tools: Path, wheel: Path, folder: Path) -> Path:
    command = [tools / "shiv", "--console-script", "sbbf", "--output-file", str(folder / "sbbf.pyz"), "-q", f"{wheel}[encryption]"]
    subprocess.run(command, cwd=folder, check=True, timeout=600)
    return folder / "sbbf.pyz"


def fill(folder: Path, fixtures: Path) -> None:
    folder.mkdir()
    shutil.copy(fixtures / "pyarrow-filters.parquet", folder / "file.parquet")
    shutil.copy(fixtures / "pyarrow-plain.parquet", folder / "data.parquet")
    shutil.copytree(fixtures / "paimon" / "orders", folder / "orders")


def outcomes(program: list[str | Path], folder: Path, fixtures: Path) -> dict[str, tuple[int, int]]:
    """Return the exit code and the number of printed lines of each command, on fresh files."""
    words = {FILE: "file.parquet", DATA_FILE: "data.parquet", TABLE: "orders", COLUMN: "id"}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PEX_ROOT": str(folder / ".pex"), "SHIV_ROOT": str(folder / ".shiv")}
    answers = {}
    folder.mkdir()
    for name, arguments in CASES.items():
        work = folder / name.replace(" ", "-")
        fill(work, fixtures)
        command = [*program, *(words.get(word, word) for word in arguments)]
        done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), f"{name}: {done.returncode}\n{done.stderr}"
        answers[name] = (done.returncode, done.stdout.count("\n"))
    return answers


def test_every_command_is_run() -> None:
    assert commands().keys() == WORKING.keys()


@pytest.mark.parametrize("make", [make_with_pyinstaller, make_with_pex, make_with_shiv], ids=["PyInstaller", "pex", "shiv"])
def test_the_program_does_what_the_command_does(
    make: Callable[[Path, Path, Path], Path], tools: Path, wheel: Path, fixtures: Path, tmp_path: Path
) -> None:
    program = make(tools, wheel, tmp_path)
    assert outcomes([program], tmp_path / "program", fixtures) == outcomes([sys.executable, "-m", "sbbf_tool"], tmp_path / "ours", fixtures)
