"""Examples of guides that are for another system, such as cron or GitHub: they run with as much of
it as a test can have.

`tests/objects/test_s3_read.py` runs those for object stores, `tests/release/test_image.py` those
for containers.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from parts.commands import read_commands
from support.pages import FIXTURES, PAGES, blocks_of, environment, example, name_of
from support.recipes import DAYS, Lake, break_filter
from support.tables import each

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PROGRAM = Path(sys.executable).with_name("sbbf")
# Up to what ends a command in a shell, but for quoted text.
CALL = re.compile(
    r"(?:^|[|;&(`] *|run: |- |lock |/bin/)sbbf "
    r"""(?P<words>[a-z](?:"[^"\n]*"|'[^'\n]*'|[^|;&>`\n)"'])*)""",
    re.MULTILINE,
)


def run(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in bash, which stops at the first command that fails; return what it prints on
    both streams."""
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env={**environment(), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )


def calls() -> dict[str, str]:
    """Return each call in a block that is not run as it is, named by its page."""
    return {
        f"{name_of(block.page)}:{block.line}:{match['words'].strip()}": match["words"]
        for page in PAGES
        for block in blocks_of(page)
        if block.reason
        for match in CALL.finditer(block.body.replace("\\\n", " "))
    }


def unknown_options(call: str) -> set[str]:
    """Return what a call has as options and its command has not. Raises ValueError if there is no
    such command."""
    words = shlex.split(call, comments=True)
    names = read_commands()
    name = max((name for name in names if words[: len(name.split())] == name.split()), key=len)
    options = {
        option
        for parameter in names[name].params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    return {word for word in words if re.match(r"--?[a-z]", word)} - options


@each("call", calls())
def test_commands_and_options_exist(call: str) -> None:
    assert unknown_options(call) == set()


def test_the_line_of_a_crontab(tmp_path: Path) -> None:
    lake, state = Lake(tmp_path / "lake", days=()), tmp_path / "state"
    state.mkdir()
    times, command = re.fullmatch(
        r"((?:\S+ +){5})(.*)\n", example("schedule.md", "flock").body
    ).groups()  # type: ignore[union-attr]
    assert times.split() == ["*/10", "*", "*", "*", "*"]
    assert re.search(r"(?<!\\)%", command) is None, (
        "cron takes the rest of the line as standard input"
    )
    command = (
        command.replace(r"\%", "%")
        .replace("/var/lib/sbbf", str(state))
        .replace(" /lake ", f" {lake.folder} ")
    )
    program = ["/bin/sh", "-c", command.replace("/opt/sbbf/bin/sbbf", str(PROGRAM))]
    for day in ("yesterday", "today"):
        done = subprocess.run(
            ["date", "-d", day, "+%F"], capture_output=True, text=True, check=True
        )
        (lake.folder / f"dt={done.stdout.strip()}").mkdir()
        shutil.copy(FIXTURES / "events.parquet", lake.folder / f"dt={done.stdout.strip()}")
    done = subprocess.run(
        program,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "2 files: 2 done" in done.stdout
    assert [lake.count_filters(day) for day in DAYS] == [0, 0]
    assert (state / "state.sqlite").exists()


def test_the_units_of_systemd(tmp_path: Path) -> None:
    lake, state = Lake(tmp_path / "lake", days=()), tmp_path / "state"
    state.mkdir()
    parts = re.split(
        r"^# /etc/systemd/system/(.*)\n",
        example("schedule.md", "[Service]").body,
        flags=re.MULTILINE,
    )[1:]
    units = dict(zip(parts[::2], parts[1::2], strict=True))
    assert set(units) == {"sbbf.service", "sbbf.timer"}
    for name, shown in units.items():
        text = (
            shown.replace("/opt/sbbf/bin/sbbf", str(PROGRAM))
            .replace("/var/lib/sbbf", str(state))
            .replace(" /lake ", f" {lake.folder} ")
        )
        (tmp_path / name).write_text(text)
    command = re.search(r"^ExecStart=(.*)$", (tmp_path / "sbbf.service").read_text(), re.MULTILINE)
    assert command is not None
    done = subprocess.run(shlex.split(command[1]), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [lake.count_filters(day) for day in DAYS] == [3, 3]
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd is not installed")
    verify = [program, "verify", "--man=no", *(str(tmp_path / name) for name in units)]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert (done.returncode, str(tmp_path) in done.stderr) == (0, False), done.stderr
    (tmp_path / "sbbf.timer").write_text(units["sbbf.timer"].replace("*:0/10", "every ten minutes"))
    assert (
        "Failed to parse calendar specification"
        in subprocess.run(verify, capture_output=True, text=True).stderr
    )


def checkout(folder: Path) -> Path:
    """Make a checkout whose folder `data` has a sound and a broken file; return the path of the
    broken one."""
    (folder / "data").mkdir()
    (folder / "pyproject.toml").write_text("[tool.sbbf.check]\n")
    for name in ("sound", "broken"):
        shutil.copy(FIXTURES / "pyarrow-filters.parquet", folder / "data" / f"{name}.parquet")
    break_filter(folder / "data" / "broken.parquet")
    return folder / "data" / "broken.parquet"


def test_the_steps_for_github(tmp_path: Path) -> None:
    broken, summary = checkout(tmp_path), tmp_path / "summary.md"
    (job,) = yaml.safe_load(example("ci.md", "--format github").body)["jobs"].values()
    check, *reports = (step for step in job["steps"] if "sbbf check" in step.get("run", ""))
    done = run(check["run"], tmp_path, GITHUB_STEP_SUMMARY=str(summary))
    assert (
        done.returncode,
        "::error file=data/broken.parquet,title=false-negatives::" in done.stdout,
    ) == (1, True), done.stdout
    for step in reports:
        assert step["if"] == "always()"
        assert run(step["run"], tmp_path, GITHUB_STEP_SUMMARY=str(summary)).returncode == 0
    assert "false-negatives" in summary.read_text()
    assert (
        '"ruleId": "false-negatives"'
        in (tmp_path / job["steps"][-1]["with"]["sarif_file"]).read_text()
    )
    broken.unlink()
    assert run(check["run"], tmp_path).returncode == 0


def test_a_report_of_a_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake" / "events")
    for day in DAYS:
        lake.path(day).parent.rename(lake.folder / f"day={day}")
    command = (
        example("output.md", "lake.html")
        .body.splitlines()[0]
        .replace("/lake/events", str(lake.folder))
        .replace("01-01", "01-02")
    )
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout
    assert f"day={DAYS[1]}" in (tmp_path / "lake.html").read_text()
    assert f"day={DAYS[0]}" not in (tmp_path / "lake.html").read_text()
