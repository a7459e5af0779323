"""Progress on standard error: in a real terminal, of slow work on many files, on one file, and on
files in other processes."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import islice

import pytest

from sbbf_tool.cli import progress, run
from sbbf_tool.cli.output import StatusLine
from sbbf_tool.cli.progress import measure
from sbbf_tool.file.parquet_file import ParquetFile
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running.progress import RunProgress
from support.lakes import small_files
from support.tables import each

SLOW_PROGRAM = """
import sys, time
from sbbf_tool.cli import main
from sbbf_tool.file.parquet_file import ParquetFile
seconds, fast_open = float(sys.argv[1]), ParquetFile.open
def open_slowly(*arguments):
    time.sleep(seconds)
    return fast_open(*arguments)
ParquetFile.open = open_slowly
sys.exit(main(sys.argv[2:]))
"""
COLOUR = re.compile(r"\x1b\[[\d;]*m")
STATUS = re.compile(r"\r\x1b\[K([^\r\n]+)")


def start_in_terminal(
    arguments: list[str], seconds: float, **settings: object
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a command whose work on each file takes this long, on a terminal that is all of its
    streams but those of `settings`."""
    ours, terminal = pty.openpty()
    streams = {"stdin": terminal, "stdout": terminal, "stderr": terminal} | settings
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100"} | streams.pop("environment", {})  # type: ignore[operator]
    command = [sys.executable, "-c", SLOW_PROGRAM, str(seconds), *arguments]
    process = subprocess.Popen(command, env=environment, start_new_session=True, **streams)  # type: ignore[call-overload]
    os.close(terminal)
    return process, ours


def output_of(process: subprocess.Popen[bytes], ours: int) -> str:
    """Return everything that the terminal received until the process ended."""
    received = b""
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:
            break
        if not data:
            break
        received += data
    process.wait(timeout=60)
    os.close(ours)
    return received.decode()


def screen_of(received: str) -> list[str]:
    """Return the lines that a terminal shows after what it received."""
    lines, column = [""], 0
    for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|.|\n", received, re.DOTALL):
        if token == "\n":
            lines, column = [*lines, ""], 0
        elif token == "\r":
            column = 0
        elif token == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif not token.startswith("\x1b"):
            lines[-1] = lines[-1][:column].ljust(column) + token + lines[-1][column + 1 :]
            column += 1
    return lines


def run_in_terminal(arguments: list[str], seconds: float, **settings: object) -> str:
    return output_of(*start_in_terminal(arguments, seconds, **settings))


COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "inspect": lambda folder: ["inspect", folder, "--format", "json"],
    "check": lambda folder: ["check", folder, "--all", "--max-fpp", "1e-9"],
    "add-filter": lambda folder: ["add-filter", folder, "-c", "id", "--in-place"],
}


@pytest.mark.slow
@each("name", list(COMMANDS), every=3)
def test_slow_work_on_many_files_is_shown_and_leaves_no_trace(tmp_path, name):
    folder = str(small_files(tmp_path / "lake", 5))
    received = run_in_terminal([*COMMANDS[name](folder), "--jobs", "1"], 0.4)
    status_lines = STATUS.findall(COLOUR.sub("", received))
    assert any(re.match(r"[1-4] of 5 files", line) for line in status_lines), status_lines
    assert any(re.search(r"\d left", line) for line in status_lines), status_lines
    expected = run_in_terminal([*COMMANDS[name](folder), "--jobs", "1"], 0)
    if name != "add-filter":  # the first run has added the filters
        assert screen_of(received) == screen_of(expected)
    assert not any("of 5 files" in line for line in screen_of(received))


@each(
    "command, said",
    [
        (["verify"], "sbbf: interrupted$"),
        (
            ["remove-filter", "--in-place"],
            r"sbbf: interrupted; (so far \d+ files?: |no file is done yet)",
        ),
    ],
)
def test_ctrl_c_leaves_a_clean_line(tmp_path, command, said):
    folder = str(small_files(tmp_path / "lake", 20))
    process, ours = start_in_terminal([*command, folder, "--jobs", "1"], 0.3)
    received = b""
    while b" of 20 files" not in received:
        received += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    received += output_of(process, ours).encode()
    assert process.returncode == 130
    lines = screen_of(received.decode())
    assert re.match(said, lines[0])
    assert lines[-1] == ""
    assert not any(" of 20 files" in line for line in lines)


def test_a_line_now_and_then_in_a_log(tmp_path, monkeypatch, capsys):
    folder = str(small_files(tmp_path / "lake", 4))
    monkeypatch.setattr(progress, "DELAY", 0.1)
    monkeypatch.setattr(progress, "PERIOD_OF_LINES", 0.3)
    fast_open = ParquetFile.open
    monkeypatch.setattr(
        ParquetFile, "open", lambda *arguments: time.sleep(0.25) or fast_open(*arguments)
    )
    assert run(["inspect", folder, "--jobs", "1", "--verbose"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if " of 4 files" in line]
    assert 1 <= len(lines) <= 3
    assert all(re.match(r"sbbf: \d of 4 files", line) for line in lines)
    assert run(["inspect", folder, "--jobs", "1"]) == 0
    assert capsys.readouterr().err == ""


READING = RunProgress(total=(1, 5))
READING.advance("verifying id", 10**6, 4 * 10**6)


@each("numbers, line", [
        (RunProgress(), ("", 0, None, True)),
        (RunProgress(step="verifying indexes"), ("verifying indexes", 0, None, True)),
        (READING, ("verifying id: 1.0 MB of 4.0 MB", 10**6, 4 * 10**6, True)),
        (RunProgress(files_done=1), ("1 file", 1, None, False)),
        (RunProgress(files_done=100, total=(100_000, 0)),
            ("100 of 100,000 files", 100, 100_000, False)),
        (RunProgress(True, (30, 3 * 10**9), 10, 10**9),
            ("10 of 30 files, 1.0 GB of 3.0 GB", 10**9, 3 * 10**9, True)),
        (RunProgress(True, None, 10, 10**9), ("10 files, 1.0 GB", 10**9, None, True)),
        (RunProgress(True, (30, 3 * 10**6), 29, 4 * 10**6),
            ("29 of 30 files, 4.0 MB of 4.0 MB", 4 * 10**6, 4 * 10**6, True)),
        (RunProgress(step="verifying \x1b[31m"), (r"verifying \x1b[31m", 0, None, True)),
    ])  # fmt: skip
def test_what_is_done(numbers, line):
    assert measure(numbers) == line


def test_files_are_counted_ahead_with_the_sizes_that_the_run_saw():
    files = [
        ListedFile("a", 10),
        ListedFile("b", None),
        ListedFile("c", 3),
        ListedFile("linked", 5, skipped="a link"),
    ]
    numbers = RunProgress()
    list(islice(numbers.count(files), 1))
    numbers.count_ahead([ListedFile("a", 99), *files[1:]], lambda: False)
    assert numbers.total == (3, 13)
    for total, stopped in (((9, 9), False), (None, True)):
        numbers.total = total
        numbers.count_ahead(files, lambda stopped=stopped: stopped)
        assert numbers.total == total


def test_a_line_of_other_output_is_not_overwritten(tmp_path):
    path = tmp_path / "terminal"
    with open(path, "w") as stream:
        status_line = StatusLine(stream)
        with status_line.hidden("begun"):
            stream.write("begun")
            stream.flush()
        status_line.draw("10 s")
        with status_line.hidden(" and ended\n"):
            stream.write(" and ended\n")
            stream.flush()
        status_line.draw("11 s")
    assert path.read_bytes() == b"begun and ended\n\r\x1b[K11 s"
