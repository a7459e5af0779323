"""A machine of a CI system: a repository with a branch that changes Parquet files, and a Python
that lacks `sbbf`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.recipes import Lake, install

PEOPLE = {f"GIT_{role}_{key}": "x" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
NO_SETTINGS = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def run_git(folder: Path, *arguments: str) -> str:
    """Run git without the settings of this machine; return what it prints."""
    variables = {**os.environ, **PEOPLE, **NO_SETTINGS}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class Runner:
    """A repository with the wheel and a lake of sound filters on `main`, checked out at the branch
    `change`."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self._programs = folder / "python" / "bin"
        self.program = self._programs / "sbbf"
        self.repository = folder / "repository"
        (self.repository / "wheels").mkdir(parents=True)
        shutil.copy(wheel, self.repository / "wheels")
        self.lake = Lake(self.repository / "lake")
        # The packages that `sbbf` needs are there already; the step of the recipe installs the
        # wheel itself.
        packages = install("sbbf-dependencies", "1", "click", with_package=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True)
        (shared,) = (packages.parent / "lib").glob("python*/site-packages")
        (own,) = (folder / "python" / "lib").glob("python*/site-packages")
        (own / "shared.pth").write_text(f"{shared}\n")
        run_git(self.repository, "init", "-q", "-b", "main")
        self.base = self.commit("Add the lake")
        run_git(self.repository, "checkout", "-q", "-b", "change")

    def commit(self, message: str) -> str:
        run_git(self.repository, "add", "-A")
        run_git(self.repository, "commit", "-q", "-m", message)
        return run_git(self.repository, "rev-parse", "HEAD")

    def run(self, script: str, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """Run a script as the CI systems do: bash stops at the first command that fails."""
        path = f"{self._programs}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.repository,
            env={
                **os.environ,
                **NO_SETTINGS,
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PATH": path,
                "PYTHONPATH": "",
                **variables,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )
