"""The recipe for GitLab: its schema accepts the file, and the script of the job runs in a merge request."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from support.ci_runner import Runner
from support.environments import require_program
from support.recipes import DAYS, run, write_recipe

pytestmark = [pytest.mark.heavy(minutes=1), pytest.mark.environment(minutes=1), pytest.mark.timeout(600)]

REPORT = "gl-code-quality-report.json"


def check(runner: Runner) -> tuple[int, list[dict[str, Any]], str]:
    """Run the script of the job; return its exit code, the entries of its report, and what it prints."""
    job = yaml.safe_load((runner.repository / ".gitlab-ci.yml").read_text())["bloom-filters"]
    assert job["artifacts"] == {"when": "always", "reports": {"codequality": REPORT}}
    report = runner.repository / REPORT
    report.unlink(missing_ok=True)
    done = runner.run("\n".join(job["script"]), {"CI_MERGE_REQUEST_DIFF_BASE_SHA": runner.base})
    (runner.repository / "changed-files").unlink()
    entries = json.loads(report.read_text()) if report.exists() else []
    report.unlink(missing_ok=True)
    return done.returncode, [entry for entry in entries if entry["severity"] not in ("info", "minor")], done.stdout


def test_a_merge_request_is_checked(runner):
    write_recipe("gitlab", runner.repository)
    runner.lake.remove_filters(DAYS[0])  # before the merge request, which does not change this file
    runner.base = runner.commit("Check filters")
    sound = runner.lake.path(DAYS[1]).read_bytes()

    runner.lake.path(DAYS[1]).with_name("part 1.parquet").write_bytes(sound)
    runner.commit("Add a sound file")
    code, entries, output = check(runner)
    assert (code, entries) == (0, []), output
    assert runner.program.exists()

    for change, rule in ((runner.lake.break_filter, "false-negatives"), (runner.lake.remove_filters, "missing-filter")):
        change(DAYS[1])
        runner.commit("Change a file")
        code, entries, output = check(runner)
        assert code == 1, output
        assert [(entry["check_name"], entry["location"]["path"]) for entry in entries] == [(rule, f"lake/dt={DAYS[1]}/part-0.parquet")]


def test_a_merge_request_that_only_deletes_files_passes(runner):
    write_recipe("gitlab", runner.repository)
    runner.lake.path(DAYS[0]).unlink()
    runner.commit("Delete a file")
    code, entries, output = check(runner)
    assert (code, entries) == (0, []), output


def test_gitlab_accepts_the_file(tmp_path):
    path = write_recipe("gitlab", tmp_path)[".gitlab-ci.yml"]
    program = require_program("check-jsonschema", "0.39.0")
    command = [program, "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]
    done = run([*command, path], tmp_path)
    assert done.returncode == 0, done.stdout
    path.write_text(path.read_text().replace("codequality:", "code_quality:"))
    assert run([*command, path], tmp_path).returncode == 1
