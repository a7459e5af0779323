"""The wheel: what it contains, and what type checkers know of it in a user's script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from support.environments import NotInstallableError, build_wheel, install_npm

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).parent.parent
USER = Path(__file__).parent / "typing_user"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Path) -> Path:
    """An interpreter with the wheel and nothing else."""
    folder = wheel.parent / "user"
    venv.create(folder, with_pip=True)
    interpreter = folder / "bin" / "python"
    command = [
        str(interpreter),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return interpreter


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    folders = (REPOSITORY / "sbbf_tool", REPOSITORY / "pyspark_sbbf")
    paths = (
        path
        for folder in folders
        for path in folder.rglob("*.*")
        if "__pycache__" not in path.parts
    )
    expected = {
        path.relative_to(REPOSITORY).as_posix()
        for path in paths
        if path.suffix in (".py", ".pyi", ".typed", ".toml", ".json")
    }
    assert expected - names == set()
    assert {
        "sbbf_tool/py.typed",
        "sbbf_tool/query_engines/engines.toml",
        "sbbf_tool/query_engines/runs.toml",
    } <= names
    assert not any(name.startswith(("tests", "fixtures")) for name in names)
    if shutil.which(os.environ.get("CC", "cc")):
        for name in ("bloom/_kernel", "parquet/_compact", "parquet/_pages", "parquet/_scan"):
            assert f"sbbf_tool/{name}.abi3.so" in names


def test_the_package_states_its_version(wheel: Path, python: Path) -> None:
    program = "import sbbf_tool; print(sbbf_tool.__version__, '__version__' in dir(sbbf_tool))"
    done = subprocess.run(
        [python, "-c", program], cwd=wheel.parent, capture_output=True, text=True, check=True
    )
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    assert done.stdout.split() == [version, "True"]
    assert wheel.name.startswith(f"sbbf_tool-{version}-")


@pytest.mark.environment(minutes=1)
def test_pyright_knows_the_types(python: Path, tmp_path: Path) -> None:
    try:
        folder = install_npm("pyright", (USER / "package.json").read_text())
    except NotInstallableError as error:
        pytest.skip(str(error))
    shutil.copy(USER / "script.py", tmp_path)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict"}))
    pyright = [
        str(folder / "node_modules" / ".bin" / "pyright"),
        "--project",
        str(tmp_path),
        "--pythonpath",
        str(python),
        "--outputjson",
    ]
    done = subprocess.run(pyright, cwd=tmp_path, capture_output=True, text=True)
    answer = json.loads(done.stdout)
    assert [
        f"{each['range']['start']['line'] + 1}: {each['message']}"
        for each in answer["generalDiagnostics"]
    ] == []
    assert answer["summary"]["filesAnalyzed"] == 1
