"""The recipe for pandera: a schema for the table of filters."""

from __future__ import annotations

import subprocess

import pytest

import sbbf_tool
from support.recipes import DAYS, Lake, install, run, write_recipe

pytestmark = [pytest.mark.heavy(minutes=1), pytest.mark.environment(minutes=2), pytest.mark.timeout(900)]


def check(lake: Lake) -> subprocess.CompletedProcess[str]:
    programs = install("pandera", "0.35.0", "pandera[pandas]==0.35.0", with_package=True)
    script = write_recipe("pandera", lake.folder.parent)["check_filters.py"]
    return run(["python", script], lake.folder.parent, {"LAKE": str(lake.folder)}, programs=programs)


def test_a_sound_lake_passes(tmp_path):
    done = check(Lake(tmp_path / "lake"))
    assert (done.returncode, done.stdout) == (0, "")


def weaken(lake: Lake, day: str) -> None:
    sbbf_tool.add_filters(lake.path(day), ["user_id"], fpp=0.1, replace=True, in_place=True)


@pytest.mark.parametrize(
    ("defect", "failure", "count"),
    [
        (Lake.remove_filters, "equal_to(True)", 3),
        (Lake.break_filter, "equal_to(0)", 1),
        (weaken, "less_than_or_equal_to(0.02)", 3),
    ],
    ids=["missing", "broken", "weak"],
)
def test_the_failure_is_shown_by_file_and_row_group(tmp_path, defect, failure, count):
    lake = Lake(tmp_path / "lake")
    defect(lake, DAYS[1])
    done = check(lake)
    assert done.returncode == 1, done.stdout
    _, *lines = done.stdout.splitlines()
    assert len([line for line in lines if failure in line]) == count, done.stdout
    assert all(line.split()[0] == str(lake.path(DAYS[1])) for line in lines), done.stdout


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    lake = Lake(tmp_path / "lake")
    lake.damage(DAYS[1])
    done = check(lake)
    assert done.returncode == 1
    assert "not a Parquet file" in done.stdout
