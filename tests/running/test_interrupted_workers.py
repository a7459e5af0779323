"""SIGTERM to the whole process group: a worker that has just started prints no traceback. And a
signal whose exception Python drops, because it arrives inside a callback, ends the run too."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from sbbf_tool.running.processes import Processes, Task
from support.tables import each

PROGRAM = """
import os, signal, sys
from sbbf_tool.running import processes

def terminate(number, frame):
    raise SystemExit(143)

signal.signal(signal.SIGTERM, terminate)
begin = processes._begin

def begin_late(*given):
    # The signal arrives before the worker has its own handlers.
    os.kill(os.getpid(), signal.SIGTERM)
    begin(*given)

processes._begin = begin_late
with processes.Processes(1) as pool:
    task = pool.submit(processes.Task([1], list))
    os.kill(os.getpid(), signal.SIGTERM)
    pool.rows(task, str, str)
"""


def test_a_worker_that_starts_while_the_group_is_terminated_prints_nothing():
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert process.stderr == ""
    assert process.returncode == 128 + signal.SIGTERM


LOST = """
import os, signal, sys, weakref

class Lost:
    pass

class AtImport:
    # Python drops what a callback raises, such as that of a lock of the import system.
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[2]:
            sys.meta_path.remove(self)
            lost = Lost()
            reference = weakref.ref(lost, lambda _: os.kill(os.getpid(), int(sys.argv[1])))
            del lost
        return None

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, AtImport())
from sbbf_tool.cli import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("module", "files"),
    [
        ("sbbf_tool.editing.build", 1),
        ("sbbf_tool.file.chunk_hashes", 3),
        ("sbbf_tool.running.processes", 150),
    ],
)
def test_a_signal_that_arrives_inside_a_callback_ends_the_run(
    tmp_path: Path, number: signal.Signals, module: str, files: int
) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for position in range(files):
        pq.write_table(pa.table({"id": range(1000)}), folder / f"{position:03}.parquet")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    target = str(folder) if files > 1 else str(folder / "000.parquet")
    words = ["add-filter", target, "-c", "id", "--in-place", "--jobs", "2"]
    process = subprocess.run(
        [sys.executable, "-c", LOST, str(number.value), module, *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert process.returncode == 128 + number, process.stderr
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert after == before


VERIFY = ["verify"]
ADD_FILTER = ["add-filter", "-c", "id", "--in-place"]


def children_of(process: int) -> list[int]:
    children: list[int] = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread ended meanwhile
            children += map(int, (thread / "children").read_text().split())
    return children


def square(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


@pytest.mark.heavy(1)
@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@each("place", [0, 1])
@each("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_pool_goes_on_when_a_worker_ends_that_waits_for_a_task(
    place: int, number: signal.Signals
) -> None:
    """One of two such workers has the lock of the queue, and the other one waits for it."""
    before = children_of(os.getpid())
    with Processes(2) as pool:
        first = pool.submit(Task([1], square))
        assert pool.rows(first, int, int) == [1]
        workers = [each for each in children_of(os.getpid()) if each not in before]
        time.sleep(0.5)
        os.kill(workers[place], number)
        time.sleep(0.3)  # the pool sees it
        for unit in range(2, 6):
            task = pool.submit(Task([unit], square))
            assert pool.rows(task, int, int) == [unit * unit]
            time.sleep(0.2)


@pytest.mark.skipif(sys.platform != "linux", reason="children are found in /proc")
@each(
    "words, number",
    [(VERIFY, signal.SIGTERM), (ADD_FILTER, signal.SIGKILL)],
    heavy=[(VERIFY, signal.SIGKILL), (ADD_FILTER, signal.SIGTERM)],
)
def test_files_of_a_worker_that_another_program_ends_are_worked_on(
    tmp_path: Path, number: signal.Signals, words: list[str]
) -> None:
    """As an administrator or a guard of memory does: no file is left out, and what a worker had
    changed before it ended is counted."""
    folder = tmp_path / "lake"
    folder.mkdir()
    ids = pa.table({"id": [f"id-{number}" for number in range(20_000)]})
    files = 300
    filters = {"id": {"ndv": 20_000, "fpp": 0.01}} if words == ["verify"] else None
    first = folder / "000.parquet"
    pq.write_table(ids, first, bloom_filter_options=filters)
    for position in range(1, files):
        shutil.copy(first, folder / f"{position:03}.parquet")
    size = first.stat().st_size
    process = subprocess.Popen(
        [sys.executable, "-m", "sbbf_tool", *words, str(folder), "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while len(workers := children_of(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    if words[0] == "add-filter":
        # Each of the two workers has changed some files.
        while sum(path.stat().st_size > size for path in folder.glob("[0-9]*")) < 20:
            assert time.monotonic() < deadline
    else:
        time.sleep(0.05)
    os.kill(workers[0], number)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    done = "done; 300 filters added" if "add-filter" in words else ""
    assert f"{files} files: {files} {done}" in output
    assert run(["check", str(folder), "--require", "id", "-q"]) == 0
