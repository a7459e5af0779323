"""The script that builds a release: sdist and wheels, twice and equal, checked by auditwheel,
abi3audit and twine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from support.environments import NotInstallableError, install_python
from support.tables import each

REPOSITORY = Path(__file__).parents[2]

pytestmark = [pytest.mark.nightly(4), pytest.mark.environment(minutes=1), pytest.mark.timeout(900)]


@pytest.fixture
def python() -> Path:
    """An interpreter with the tools of a release."""
    tools = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"][
        "release"
    ]
    try:
        return install_python("release", *tools)
    except NotInstallableError as error:
        pytest.skip(str(error))


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs wheels of Linux")
def test_the_script_builds_a_release(tmp_path: Path, python: Path) -> None:
    if not (REPOSITORY / ".git").exists():
        pytest.skip("the checkout has no history")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [python, REPOSITORY / "release" / "build.py", tmp_path / "dist"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    files = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "dist").iterdir()
    }
    assert {
        tuple(line.split())
        for line in done.stdout.splitlines()
        if line.endswith((".whl", ".tar.gz"))
    } >= {(digest, name) for name, digest in files.items()}
    version = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["version"]
    endings = [name.removeprefix(f"sbbf_tool-{version}") for name in sorted(files)]
    assert endings[1:] == ["-py3-none-any.whl", ".tar.gz"]
    assert endings[0].startswith("-cp311-abi3-")
    assert platform.machine() != "x86_64" or "manylinux_2_17_x86_64" in endings[0]


@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs wheels of Linux")
@each(
    "options, message",
    [
        (
            "-g -Wl,--enable-new-dtags,-rpath,/opt/python/lib",
            r"is not stripped: it has \.debug_aranges, .*\.symtab",
        ),
        ("-s -Wl,--enable-new-dtags,-rpath,/opt/python/lib", "has DT_RUNPATH"),
        ("-s -Wl,--disable-new-dtags,-rpath,/opt/python/lib", "has DT_RPATH"),
        ("-s", ""),
    ],
)
def test_the_script_refuses_what_a_compiler_left_in_extensions(
    tmp_path: Path, python: Path, options: str, message: str
) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "empty.c").write_text("int number(void) { return 1; }\n")
    subprocess.run(
        [compiler, "-shared", "-fPIC", *options.split(), "-o", "empty.so", "empty.c"],
        cwd=tmp_path,
        check=True,
    )
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        for name in ("bloom/_kernel", "parquet/_compact", "parquet/_pages", "parquet/_scan"):
            archive.write(tmp_path / "empty.so", f"sbbf_tool/{name}.abi3.so")
    program = (
        "import sys; from pathlib import Path; from build import check_extensions; "
        "check_extensions(Path(sys.argv[1]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "release")}
    done = subprocess.run(
        [python, "-c", program, "a.whl"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == (1 if message else 0), done.stderr
    assert re.search(message, done.stderr)
    assert bool(done.stderr) == bool(message)
