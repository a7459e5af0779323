"""The recipe for pre-commit: it installs the hook of this repository, and runs it on commits."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from cookbook.ci_runner import NO_SETTINGS, PEOPLE, run_git
from support.environments import copy_source, require_program
from support.pages import REPOSITORY
from support.recipes import DAYS, Lake, write_recipe

pytestmark = [
    pytest.mark.nightly(minutes=3),
    pytest.mark.environment(minutes=1),
    pytest.mark.timeout(900),
]

URL = "https://git.example.com/sbbf"


def make_hooks(folder: Path) -> None:
    """Make the repository of the hook, with the tag that the page names."""
    folder.mkdir()
    copy_source(folder)
    shutil.copy(REPOSITORY / ".pre-commit-hooks.yaml", folder)
    for command in (
        ["init", "-q", "-b", "main"],
        ["add", "-A"],
        ["commit", "-q", "-m", "Release"],
        ["tag", "v0.1.0"],
    ):
        run_git(folder, *command)


class Repository:
    """A repository with the configuration of the page. Git finds the URL in a folder beside it."""

    def __init__(self, folder: Path) -> None:
        self._pre_commit = require_program("pre-commit", "4.7.0")
        make_hooks(folder / "hooks")
        self.folder = folder / "repository"
        self._variables = {"PRE_COMMIT_HOME": str(folder / "cache"), "GIT_CONFIG_COUNT": "1"}
        self._variables |= {
            "GIT_CONFIG_KEY_0": f"url.{folder}/hooks.insteadOf",
            "GIT_CONFIG_VALUE_0": URL,
        }
        self.folder.mkdir()
        for command in (["git", "init", "-q", "-b", "main"], [self._pre_commit, "install"]):
            done = self.run(*command)
            assert done.returncode == 0, done.stdout
        assert URL in write_recipe("pre_commit", self.folder)[".pre-commit-config.yaml"].read_text()

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, **NO_SETTINGS, **PEOPLE, **self._variables}
        return subprocess.run(
            command,
            cwd=self.folder,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )

    def commit(self) -> tuple[int, str]:
        assert self.run("git", "add", "-A").returncode == 0
        done = self.run("git", "commit", "-q", "-m", "Change the lake")
        return done.returncode, done.stdout


def test_a_commit_with_a_missing_or_broken_filter_is_stopped(tmp_path):
    repository = Repository(tmp_path)
    lake = Lake(repository.folder / "lake")
    code, output = repository.commit()
    assert code == 0, output
    assert "Passed" in output

    lake.remove_filters(DAYS[1])
    code, output = repository.commit()
    assert code == 1, output
    assert "missing-filter" in output
    assert DAYS[0] not in output

    sound = lake.path(DAYS[0]).read_bytes()
    lake.path(DAYS[1]).write_bytes(sound)
    lake.break_filter(DAYS[1])
    code, output = repository.commit()
    assert code == 1, output
    assert "false-negatives" in output

    excluded = repository.folder / "tests" / "data" / "broken"
    excluded.mkdir(parents=True)
    shutil.move(lake.path(DAYS[1]), excluded)
    code, output = repository.commit()
    assert code == 0, output
