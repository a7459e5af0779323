"""An interrupted run reports every file that it has changed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sbbf_tool.cli import run
from sbbf_tool.cli.report import interrupts_later
from sbbf_tool.numbers import format_count
from sbbf_tool.running.local import _CHANGES_AHEAD, map_in_order

pytestmark = pytest.mark.slow

FILES = 300


def changed_files(folder: Path, old: bytes) -> set[str]:
    return {path.name for path in folder.glob("*.parquet") if path.read_bytes() != old}


@pytest.mark.parametrize(
    ("jobs", "numbers"),
    [
        (1, [signal.SIGINT]),
        (2, [signal.SIGTERM]),
        (1, [signal.SIGTERM, signal.SIGINT]),
        (2, [signal.SIGTERM, signal.SIGTERM]),
    ],
)
def test_every_changed_file_is_in_the_report(
    fixtures: Path, tmp_path: Path, jobs: int, numbers: list[signal.Signals]
) -> None:
    """One event may send several signals at once: to the process, and to its group."""
    old = (fixtures / "events.parquet").read_bytes()
    folder, report = tmp_path / "lake", tmp_path / "r.json"
    folder.mkdir()
    for position in range(FILES):
        shutil.copy(fixtures / "events.parquet", folder / f"{position:03}.parquet")
    words = [
        "add-filter",
        str(folder),
        "-c",
        "user_id",
        "-c",
        "session",
        "--in-place",
        "--jobs",
        str(jobs),
        "--report",
        str(report),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "sbbf_tool", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not changed_files(folder, old) and time.monotonic() < deadline:
        time.sleep(0.02)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.005)
    _, errors = process.communicate(timeout=60)

    # The second signal may arrive when the interpreter is ending, and takes signals no more.
    codes = {128 + number for number in numbers} | {-number for number in numbers[1:]}
    assert process.returncode in codes, errors
    assert [path.name for path in folder.iterdir() if path.suffix != ".parquet"] == []
    changed_names = changed_files(folder, old)
    rows = [json.loads(line) for line in report.read_text().splitlines()]
    reported_names = {
        os.path.basename(row["file"]) for row in rows if row["schema"] == "sbbf.add-filter"
    }
    assert 0 < len(changed_names) < FILES
    # The signal may hit a worker between the rename of a file and its row: the message says that
    # files in work may be changed too, of which each worker has some.
    assert reported_names <= changed_names
    assert len(changed_names - reported_names) <= jobs * _CHANGES_AHEAD
    done = (
        f"so far {format_count(len(reported_names), 'file')}: {len(reported_names)} done"
        if reported_names
        else "no file is done yet"
    )
    assert done in errors
    assert run(["remove-filter", str(folder), "--ours", "--in-place"]) == 0
    assert changed_files(folder, old) == set()


def test_answers_that_threads_have_are_kept() -> None:
    def answer(unit: int) -> int:
        if unit == 0:
            time.sleep(0.5)
            raise KeyboardInterrupt
        return unit

    rest: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        list(map_in_order(answer, range(5), lambda unit: 1, 5, rest))
    assert rest == [1, 2, 3, 4]


def test_a_signal_waits_until_a_row_is_written() -> None:
    steps, handler = [], signal.getsignal(signal.SIGINT)

    def write_row() -> None:
        with interrupts_later():
            signal.raise_signal(signal.SIGINT)
            steps.append("written")

    with pytest.raises(KeyboardInterrupt):
        write_row()
    assert steps == ["written"]
    assert signal.getsignal(signal.SIGINT) is handler


def test_new_files_that_are_finished_are_named(fixtures: Path, tmp_path: Path) -> None:
    lake, output = tmp_path / "lake", tmp_path / "new"
    lake.mkdir()
    for position in range(FILES):
        shutil.copy(fixtures / "events.parquet", lake / f"{position:03}.parquet")
    words = ["add-filter", "lake", "-c", "user_id", "-o", "new/", "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sbbf_tool", *words],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not list(output.glob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert 0 < len(list(output.iterdir())) < FILES
    assert "new files stay, and the same command refuses them" in errors
    assert run(["verify", str(output), "-q"]) == 0
