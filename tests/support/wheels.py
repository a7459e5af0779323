"""The wheel of this repository, as a release has it but for the platform in its name."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


def copy_source(folder: Path) -> None:
    """Copy what a wheel is built from."""
    for name in ("sbbf_tool", "pyspark_sbbf"):
        shutil.copytree(REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in FILES:
        shutil.copy(REPOSITORY / name, folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel in a folder; return its path."""
    copy_source(folder / "source")
    program = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=folder / "source", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = folder.glob("*.whl")
    return path
