"""What contributors use beside the tests: the justfile, the hooks of pre-commit, and the forms for
issues."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from parts.commands import read_commands
from support.environments import require_program
from support.tables import each

pytestmark = [pytest.mark.slow, pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]

REPOSITORY = Path(__file__).parent.parent
HOOKS = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())
FORMS = REPOSITORY / ".github" / "ISSUE_TEMPLATE"


@pytest.fixture(scope="module")
def just() -> Path:
    return require_program("just", "1.59.0", "rust-just")


@pytest.fixture(scope="module")
def recipes(just: Path) -> dict[str, dict[str, Any]]:
    """The public recipes of the justfile."""
    done = subprocess.run(
        [just, "--dump", "--dump-format", "json"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    return {
        name: recipe
        for name, recipe in json.loads(done.stdout)["recipes"].items()
        if not recipe["private"]
    }


def commands_of(just: Path, recipe: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the words of each command that a recipe runs, for an existing file as its argument."""
    arguments = ["tests/test_contributing.py"] if recipe["parameters"] else []
    done = subprocess.run(
        [just, "--dry-run", recipe["name"], *arguments],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    yield from map(shlex.split, done.stderr.splitlines())


def find_mistakes(words: list[str], pytest_help: str) -> list[str]:
    """Return the words of a command that do not exist: its program, paths, and options of
    pytest."""
    program, *rest = words
    folder, _, name = program.rpartition("/")
    # An environment that uv made has no pip; `just setup` makes one that has.
    exists = (
        (Path(sys.executable).parent / name).exists() or name == "pip"
        if folder == ".venv/bin"
        else bool(_which(program))
    )
    mistakes = [] if exists else [program]
    mistakes += [word for word in rest if "/" in word and not (REPOSITORY / word).exists()]
    if rest[:2] == ["-m", "pytest"]:
        mistakes += [
            word
            for word in rest
            if word.startswith("--") and word.partition("=")[0] not in pytest_help
        ]
    return mistakes


def _which(program: str) -> str | None:
    return shutil.which(REPOSITORY / program if "/" in program else program)


def test_the_commands_of_the_justfile_exist(just: Path, recipes: dict[str, dict[str, Any]]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"],
        cwd=REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [words for recipe in recipes.values() for words in commands_of(just, recipe)]
    assert len(recipes) == 10
    assert len(lines) >= len(recipes)
    assert [mistake for words in lines for mistake in find_mistakes(words, done.stdout)] == []


def test_contributing_lists_the_commands_of_the_justfile(
    recipes: dict[str, dict[str, Any]],
) -> None:
    rows = re.findall(
        r"^\| `just (\w+)[^`]*` \| (.*) \|$",
        (REPOSITORY / "CONTRIBUTING.md").read_text(),
        re.MULTILINE,
    )
    assert dict(rows) == {name: recipe["doc"] for name, recipe in recipes.items()}


def test_all_hooks_are_local() -> None:
    hooks = [hook for repository in HOOKS["repos"] for hook in repository["hooks"]]
    assert {repository["repo"] for repository in HOOKS["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks} == {"system"}
    assert [
        mistake for hook in hooks for mistake in find_mistakes(shlex.split(hook["entry"]), "")
    ] == []


@each("path", sorted(FORMS.iterdir()))
def test_github_accepts_the_forms(path: Path) -> None:
    program = require_program("check-jsonschema", "0.39.0")
    schema = (
        "vendor.github-issue-config" if path.name == "config.yml" else "vendor.github-issue-forms"
    )
    done = subprocess.run(
        [program, "--builtin-schema", schema, path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_the_forms_name_commands_and_files_that_exist() -> None:
    text = "\n".join(path.read_text() for path in FORMS.iterdir())
    names = set(re.findall(r"`sbbf ([a-z][\w-]*)", text))
    assert names
    assert names <= set(read_commands())
    pages = set(re.findall(r"[\w/]+\.md", text))
    assert pages >= {"SECURITY.md"}
    assert [page for page in pages if not (REPOSITORY / page).exists()] == []
