"""The recipe for conda says what pyproject.toml says, and rattler-build can render it."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.environments import NotInstallableError, install_python

REPOSITORY = Path(__file__).parents[2]
PATH = REPOSITORY / "release" / "conda" / "recipe.yaml"
RECIPE = yaml.safe_load(PATH.read_text())
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
# The names of PyPI's packages in conda-forge, where they differ.
NAMES = {"xxhash": "python-xxhash"}
RENDER = """
import json, sys
from rattler_build import PlatformConfig, RenderConfig, VariantConfig
from rattler_build.stage0 import Stage0Recipe

variants = VariantConfig({"python": ["3.11.*", "3.13.*"], "c_compiler": ["gcc"], "c_stdlib": ["sysroot"]})
recipe = Stage0Recipe.from_file(sys.argv[1])
rendered = recipe.render(variants, RenderConfig(PlatformConfig(target_platform=sys.argv[2])))
print(json.dumps([each.recipe.to_dict() for each in rendered]))
"""


def split(requirements: list[str]) -> dict[str, str]:
    """Return the lower bound of each requirement."""
    pairs = (re.fullmatch(r"([\w-]+) ?>=([\d.]+)", each) for each in requirements)
    return {NAMES.get(pair[1], pair[1]): pair[2] for pair in pairs if pair}


def test_the_dependencies_are_those_of_the_package():
    run = split(RECIPE["requirements"]["run"])
    assert run == {"python": PROJECT["requires-python"].removeprefix(">="), **split(PROJECT["dependencies"])}
    assert len(run) == len(RECIPE["requirements"]["run"])


def test_the_constraints_are_those_of_the_extras():
    extras = PROJECT["optional-dependencies"]
    bounds = split(RECIPE["requirements"]["run_constraints"])
    assert bounds == {name: bound for name, bound in split([*extras["encryption"], *extras["objects"]]).items() if name != "urllib3"}


def test_name_version_and_scripts_are_those_of_the_package():
    assert RECIPE["package"]["name"] == PROJECT["name"]
    assert RECIPE["context"]["version"] == PROJECT["version"]
    assert RECIPE["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


def test_the_files_of_its_tests_exist():
    files = [path for test in RECIPE["tests"] for path in test.get("files", {}).get("source", [])]
    assert files
    assert [path for path in [*files, RECIPE["about"]["license_file"]] if not (REPOSITORY / path).exists()] == []


@pytest.mark.slow
@pytest.mark.environment(minutes=1)
@pytest.mark.parametrize("platform", ["linux-64", "linux-aarch64", "osx-arm64"])
def test_rattler_build_renders_it(platform: str) -> None:
    try:
        python = install_python("py-rattler-build-0.73.0", "py-rattler-build==0.73.0")
    except NotInstallableError as error:
        pytest.skip(str(error))
    done = subprocess.run([python, "-c", RENDER, PATH, platform], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    recipes: list[dict[str, Any]] = json.loads(done.stdout)
    assert recipes
    for recipe in recipes:
        assert recipe["package"] == {"name": "sbbf-tool", "version": PROJECT["version"]}
        assert f"gcc_{platform}" in recipe["requirements"]["build"]
