"""Environments of the matrix: one per release of an engine, made with uv or npm for one run and
deleted after it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PYARROW = "pyarrow==21.0.0"
"""Reads the types of columns and builds values; any release that works with all engines does."""
_NUMPY = "numpy"
_SECONDS = 900


class Package(NamedTuple):
    """The package that has an engine, in the registry of Python or npm, and its releases to run."""

    name: str
    releases: str
    """With spaces between them, from the oldest on."""
    extras: Sequence[str] = (_PYARROW,)
    registry: str = "pypi"


PACKAGES = {
    "duckdb": Package(
        "duckdb", "1.1.3 1.2.0 1.2.2 1.3.0 1.3.2 1.4.0 1.4.5 1.5.0 1.5.3 1.5.5 1.5.6 2.0.0"
    ),
    "datafusion": Package(
        "datafusion",
        "32.0.0 33.0.0 36.0.0 41.0.0 42.0.0 43.1.0 46.0.0 48.0.0 50.1.0 52.3.0 53.0.0 54.0.0 "
        "54.1.0 55.0.0",
    ),
    "polars": Package("polars", "1.0.0 1.20.0 1.44.2 2.0.0 2.1.0", (_PYARROW, _NUMPY)),
    "pyarrow": Package("pyarrow", "16.1.0 18.1.0 21.0.0 24.0.0 25.0.1 26.0.1", (_NUMPY,)),
    "fastparquet": Package("fastparquet", "2024.11.0 2026.9.0"),
    "clickhouse": Package("chdb", "3.1.2 3.6.0 3.7.2 4.4.0", (_PYARROW, "pandas")),
    "hyparquet": Package(
        "hyparquet",
        "1.25.8 1.26.0 1.26.2 1.27.1 1.28.2 1.29.2 1.30.1 1.31.5",
        ("hyparquet-compressors@1.1.1",),
        "npm",
    ),
    "spark": Package("pyspark", "3.5.9 4.0.5 4.1.4 4.2.1 4.3.0"),
}
"""The engines of the matrix, by the id that they have in the table of engines."""


class InstallationError(Exception):
    """A release cannot be installed."""


def install(package: Package, release: str, folder: Path) -> Path:
    """Install a release into a new folder, and return the interpreter that has it. Raises
    InstallationError."""
    folder.mkdir(parents=True)
    if package.registry == "npm":
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        _run(
            "npm",
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            f"{package.name}@{release}",
            *package.extras,
            cwd=folder,
        )
        return Path(sys.executable)
    python = folder / "bin" / "python"
    _run("uv", "venv", "-q", "--allow-existing", "--python", sys.executable, str(folder))
    _run(
        "uv",
        "pip",
        "install",
        "-q",
        "--python",
        str(python),
        f"{package.name}=={release}",
        *package.extras,
    )
    return python


def delete(folder: Path) -> None:
    """Delete the folder of an environment."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def _run(*command: str, cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallationError(str(error)) from error
    if done.returncode:
        raise InstallationError((done.stderr or done.stdout).strip()[-500:])
