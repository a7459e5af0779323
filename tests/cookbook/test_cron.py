"""The recipe for cron: sh runs its jobs with the few variables that cron sets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from support.recipes import DAYS, Lake, write_recipe

pytestmark = [
    pytest.mark.nightly(minutes=1),
    pytest.mark.environment(minutes=0),
    pytest.mark.timeout(600),
]

VARIABLE = re.compile(r"(?P<name>\w+)=(?P<value>.*)")
JOB = re.compile(r"(?P<times>(?:[\d*/,-]+ +){5})(?P<command>\S.*)")
LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Crontab:
    """The crontab of the page, for a lake in a folder."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("flock", path="/usr/bin:/bin"):
            pytest.skip("flock is not installed")
        self.states = folder / "states"
        self.states.mkdir()
        here = {"LAKE": str(folder / "lake"), "STATES": str(self.states)}
        self._variables = {
            "HOME": str(folder),
            "LOGNAME": "lake",
            "SHELL": "/bin/sh",
            "PATH": "/usr/bin:/bin",
        }
        self.jobs: list[str] = []
        for line in write_recipe("cron", folder)["sbbf.crontab"].read_text().splitlines():
            if match := VARIABLE.fullmatch(line):
                self._variables[match["name"]] = here.get(match["name"], match["value"])
            elif match := JOB.fullmatch(line):
                assert all(
                    in_limits(field, *limits)
                    for field, limits in zip(match["times"].split(), LIMITS, strict=True)
                ), line
                # cron takes a line up to the first % that has no backslash; the rest would be
                # standard input.
                command = re.split(r"(?<!\\)%", match["command"])
                assert len(command) == 1, line
                self.jobs.append(command[0].replace(r"\%", "%"))
            else:
                assert line == "" or line.startswith("#"), line
        assert "/opt/sbbf/bin" in self._variables["PATH"]
        self._variables["PATH"] = self._variables["PATH"].replace(
            "/opt/sbbf/bin", os.path.dirname(sys.executable)
        )

    def run(self, number: int) -> subprocess.CompletedProcess[str]:
        """Run a job as cron does; what it prints is the mail."""
        command = [self._variables["SHELL"], "-c", self.jobs[number]]
        return subprocess.run(
            command,
            cwd=self._variables["HOME"],
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
        )


def in_limits(field: str, low: int, high: int) -> bool:
    return all(low <= int(number) <= high for number in re.findall(r"(?<!/)\d+", field))


def write_today(lake: Lake) -> str:
    """Write a file of today, without filters."""
    today = date.today().isoformat()
    lake.path(today).parent.mkdir()
    lake.remove_filters(today)
    return today


def test_the_jobs_add_filters_and_mail_nothing(tmp_path):
    lake, crontab = Lake(tmp_path / "lake"), Crontab(tmp_path)
    today = write_today(lake)
    assert len(crontab.jobs) == 2
    for _ in range(2):
        for number in range(2):
            done = crontab.run(number)
            assert (done.returncode, done.stdout) == (0, "")
    assert lake.count_filters(today) == 3
    assert "files: 3 done" in (crontab.states / "check.txt").read_text()


def test_broken_filters_are_mailed(tmp_path):
    lake, crontab = Lake(tmp_path / "lake"), Crontab(tmp_path)
    lake.break_filter(DAYS[1])
    for _ in range(2):
        assert (
            f"false-negatives: 1 finding in 1 file ({lake.path(DAYS[1])})" in crontab.run(1).stdout
        )


def test_a_second_run_does_not_start_while_one_works(tmp_path):
    lake, crontab = Lake(tmp_path / "lake"), Crontab(tmp_path)
    today = write_today(lake)
    with subprocess.Popen(
        ["flock", crontab.states / "lock", "sh", "-c", "echo; read line"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as first:
        first.stdout.read(1)
        assert (crontab.run(0).returncode, lake.count_filters(today)) == (1, 0)
        first.communicate(b"\n")
    assert (crontab.run(0).returncode, lake.count_filters(today)) == (0, 3)
