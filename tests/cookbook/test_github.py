"""The recipe for GitHub Actions: its steps run in a pull request. `tests/release/test_workflows.py`
runs actionlint on it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cookbook.ci_runner import Runner
from support.recipes import DAYS, write_recipe

pytestmark = [
    pytest.mark.nightly(minutes=1),
    pytest.mark.environment(minutes=1),
    pytest.mark.timeout(600),
]

WORKFLOW = ".github/workflows/bloom-filters.yml"
BASE = "${{ github.event.pull_request.base.sha }}"


def check(runner: Runner, folder: Path) -> tuple[bool, str, str]:
    """Run the steps of the job; return whether it succeeded, what the steps print, and the summary
    of the job."""
    steps = yaml.safe_load((runner.repository / WORKFLOW).read_text())["jobs"]["check"]["steps"]
    temporary, summary = folder / "temporary", folder / "summary.md"
    temporary.mkdir(exist_ok=True)
    summary.write_text("")
    has_failed, output = False, ""
    for step in steps:
        if "run" not in step or (step.get("if") == "failure()") != has_failed:
            continue
        assert "${{" not in step["run"]
        variables = {
            name: value.replace(BASE, runner.base) for name, value in step.get("env", {}).items()
        }
        done = runner.run(
            step["run"],
            {"RUNNER_TEMP": str(temporary), "GITHUB_STEP_SUMMARY": str(summary), **variables},
        )
        output += done.stdout
        has_failed = has_failed or done.returncode != 0
    return not has_failed, output, summary.read_text()


def test_a_pull_request_is_checked(runner, tmp_path):
    write_recipe("github", runner.repository)
    runner.lake.remove_filters(DAYS[0])  # before the pull request, which does not change this file
    runner.base = runner.commit("Check filters")
    sound = runner.lake.path(DAYS[1]).read_bytes()

    runner.lake.path(DAYS[1]).with_name("part 1.parquet").write_bytes(sound)
    runner.commit("Add a sound file")
    success, output, summary = check(runner, tmp_path)
    assert (success, "::error" in output, summary) == (True, False, ""), output
    assert runner.program.exists()

    runner.lake.break_filter(DAYS[1])
    runner.commit("Break a filter")
    success, output, summary = check(runner, tmp_path)
    assert not success
    assert f"::error file=lake/dt={DAYS[1]}/part-0.parquet,title=false-negatives::" in output, (
        output
    )
    assert "false-negatives" in summary

    runner.lake.remove_filters(DAYS[1])
    runner.commit("Write a file again, without filters")
    success, output, summary = check(runner, tmp_path)
    assert not success
    assert f"::error file=lake/dt={DAYS[1]}/part-0.parquet,title=missing-filter::" in output, output
    assert DAYS[0] not in output
    assert "missing-filter" in summary
