"""The script that builds a release: sdist and wheels, twice and equal, checked by auditwheel, abi3audit and twine."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from support.environments import NotInstallableError, install_python

REPOSITORY = Path(__file__).parents[2]

pytestmark = [pytest.mark.heavy(4), pytest.mark.environment(minutes=1), pytest.mark.timeout(900)]


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs wheels of Linux")
def test_the_script_builds_a_release(tmp_path: Path) -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("the checkout has no history")
    tools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]["release"]
    try:
        python = install_python("release", *tools)
    except NotInstallableError as error:
        pytest.skip(str(error))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [python, REPOSITORY / "release" / "build.py", tmp_path / "dist"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (tmp_path / "dist").iterdir()}
    assert {tuple(line.split()) for line in done.stdout.splitlines() if line.endswith((".whl", ".tar.gz"))} >= {
        (digest, name) for name, digest in files.items()
    }
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    endings = [name.removeprefix(f"sbbf_tool-{version}") for name in sorted(files)]
    assert endings[1:] == ["-py3-none-any.whl", ".tar.gz"]
    assert endings[0].startswith("-cp311-abi3-")
    assert platform.machine() != "x86_64" or "manylinux_2_17_x86_64" in endings[0]
