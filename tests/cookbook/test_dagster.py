"""The recipe for Dagster: an asset with a check that blocks, run by Dagster itself."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.recipes import DAYS, Lake, install, run, write_recipe

pytestmark = [pytest.mark.heavy(minutes=1), pytest.mark.environment(minutes=2), pytest.mark.timeout(900)]

PROGRAM = """
import json, sys
import dagster as dg
from definitions import defs

result = defs.resolve_implicit_global_asset_job_def().execute_in_process(partition_key=sys.argv[1], raise_on_error=False)
checks = {check.check_name: [check.passed, check.metadata["problems"].value] for check in result.get_asset_check_evaluations()}
print("result:", json.dumps([result.success, checks]))
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    return install("dagster", "1.13.29", with_package=True)


def start(programs: Path, folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    variables = {"LAKE": str(folder / "lake"), "DAGSTER_HOME": str(home), "DAGSTER_DISABLE_TELEMETRY": "1"}
    return run([*command], folder, variables, programs=programs)


def materialize(programs: Path, folder: Path) -> tuple[bool, bool, str]:
    """Run the job for the first day; return whether it succeeded, whether the check passed, and the problems that it found."""
    done = start(programs, folder, "python", "-c", PROGRAM, DAYS[0])
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("result: ")] or [pytest.fail(done.stdout)]
    success, checks = json.loads(line.removeprefix("result: "))
    return success, *checks["filters_are_sound"]


def test_the_asset_adds_filters_and_the_check_passes(programs, tmp_path):
    lake = Lake(tmp_path / "lake", days=(DAYS[1],))
    write_recipe("dagster", tmp_path)
    assert lake.count_filters(DAYS[0]) == 0
    assert materialize(programs, tmp_path) == (True, True, "")
    assert lake.count_filters(DAYS[0]) == 3


@pytest.mark.parametrize(("defect", "rule"), [("remove_filters", "missing-filter"), ("break_filter", "false-negatives")])
def test_the_check_fails(programs, tmp_path, defect, rule):
    lake = Lake(tmp_path / "lake")
    write_recipe("dagster", tmp_path)
    getattr(lake, defect)(DAYS[1])
    success, passed, problems = materialize(programs, tmp_path)
    assert not success
    assert not passed
    assert f"{lake.path(DAYS[1])}: {rule} (user_id)" in problems.splitlines()
    assert str(lake.path(DAYS[0])) not in problems


def test_a_file_that_cannot_be_read_fails_the_asset(programs, tmp_path):
    lake = Lake(tmp_path / "lake")
    lake.damage(DAYS[0])
    write_recipe("dagster", tmp_path)
    done = start(programs, tmp_path, "python", "-c", PROGRAM, DAYS[0])
    assert "result: [false, {}]" in done.stdout
    assert "not a Parquet file" in done.stdout


def test_the_command_line_runs_the_asset(programs, tmp_path):
    lake = Lake(tmp_path / "lake", days=(DAYS[1],))
    write_recipe("dagster", tmp_path)
    done = start(programs, tmp_path, "sh", "materialize.sh", DAYS[0])
    assert done.returncode == 0, done.stdout
    assert lake.count_filters(DAYS[0]) == 3
    lake.break_filter(DAYS[1])
    done = start(programs, tmp_path, "sh", "materialize.sh", DAYS[0])
    assert done.returncode == 1, done.stdout
    assert "filters_are_sound" in done.stdout
