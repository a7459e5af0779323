"""Many files by workers of this machine: in order, in bounded memory, whatever becomes of a file or
of a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from running.calls import Call
from sbbf_tool import add_filters, verify
from sbbf_tool.editing.edit import Edit
from sbbf_tool.errors import UnreadableError
from sbbf_tool.file.context import Context
from sbbf_tool.reports.rows import ListedFile, Row
from sbbf_tool.rules.filter_spec import FilterSpec
from sbbf_tool.running import discover as listing
from sbbf_tool.running import local
from sbbf_tool.running.discover import discover
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.work import Work
from sbbf_tool.storage.leftovers import sweep
from sbbf_tool.verbs.add_filter import AddFilter, AddReport
from support.lakes import assert_has_filters, digests, small_files
from support.tables import each

pytestmark = pytest.mark.slow

EDIT = Edit(in_place=True, jobs=1)
SPEC = FilterSpec(("id", "name"))

needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/task"), reason="asks /proc for the children of a process"
)


def outcomes(
    folder: Path, spec: FilterSpec = SPEC, jobs: int | None = 2
) -> dict[str, Row[AddReport]]:
    rows = list(
        LocalRunner(jobs).run(
            Selection(str(folder)), Work(AddFilter(spec), Context(strict=False), EDIT)
        )
    )
    assert [row.path for row in rows] == [row.path for row in discover([str(folder)])]
    return {row.path.removeprefix(f"{folder}/").removesuffix(".parquet"): row for row in rows}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes work on two files already."""
    monkeypatch.setattr(local, "_FILES_WITHOUT_PROCESSES", 1)


class CountingFiles:
    """A selection of files as a listing has them, which need not be there."""

    table = index = None

    def __init__(self, files: Iterable[ListedFile]) -> None:
        self.listing = files

    def files(self, *, links: bool = False) -> Iterator[ListedFile]:
        yield from self.listing

    def other_rows(self, needs: object) -> tuple[()]:
        return ()


def run(files: Iterable[ListedFile | str], work: Work[Row], jobs: int | None = 2) -> Iterator[Row]:
    counting = (ListedFile(file) if isinstance(file, str) else file for file in files)
    return LocalRunner(jobs).run(CountingFiles(counting), work)  # type: ignore[arg-type]


# --- rows ---

COUNT = 731


def square(path: str) -> str:
    number = int(path)
    if number % 100 == 42:
        raise UnreadableError("no such number", file=path, place="here", hint="count on")
    time.sleep(0.002 if number % 50 == 0 else 0)  # so that a later task is ready first
    return str(number * number)


@each("jobs", [1, 3, None])
@each("scheme", ["", "s3://bucket/"])
def test_rows_come_in_order(jobs, scheme):
    names = [f"{scheme}{number}" for number in range(COUNT)]
    rows = list(run(names, Work(Call(partial(last_part, square)), Context()), jobs))
    assert [row.path for row in rows] == names
    for number, row in enumerate(rows):
        if number % 100 == 42:
            assert (row.status, row.exit_code, row.reason) == (
                "failed",
                3,
                f"{scheme and f'{number}: '}here: no such number; count on",
            )
        else:
            assert (row.status, row.exit_code, row.report) == ("ok", 0, str(number * number))


def last_part(work: Callable[[str], str], path: str) -> str:
    return work(path.rpartition("/")[2])


def tell_worker(path: str) -> str:
    return str(os.getpid())


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(local, "_FILES_PER_TASK", 2)
    lake = small_files(tmp_path / "lake", 30)
    with closing(
        LocalRunner(2).run(Selection(lake), Work(AddFilter(SPEC), Context(strict=False), EDIT))
    ) as rows:
        begun = [next(rows).status for _ in range(3)]
    assert begun == ["ok"] * 3
    done = sum(len(verify(path).filters) > 0 for path in lake.iterdir())
    assert 3 <= done < 30
    assert Counter(row.status for row in outcomes(lake).values()) == {
        "skipped": done,
        "ok": 30 - done,
    }
    assert_has_filters(lake, ("id", "name"))


# --- who works ---


def log_worker(folder: str, together: int, path: str, jobs: int) -> str:
    """Leave a file for as long as the work takes; return the names of all such files. The first
    wait until `together` have begun."""
    mine = Path(folder, f"{Path(path).name} {jobs}")
    mine.touch()
    begun = Path(f"{folder}, begun")
    Path(begun, mine.name).touch()
    time.sleep(0.05)
    end = time.monotonic() + 60
    while len(os.listdir(begun)) < together and time.monotonic() < end:
        time.sleep(0.01)
    names = sorted(os.listdir(folder))
    mine.unlink()
    return json.dumps(
        {"process": os.getpid(), "thread": threading.get_ident(), "jobs": jobs, "beside": names}
    )


@pytest.fixture
def logging_work(tmp_path: Path) -> Work[Row]:
    """Work whose rows contain process, thread, jobs, and the names and jobs of all files that were
    processed concurrently."""
    return watch(tmp_path)


def watch(tmp_path: Path, together: int = 1) -> Work[Row]:
    """Return such work, the first files of which wait until `together` have begun: a slow start of
    a process changes nothing."""
    folder = tmp_path / "under way"
    folder.mkdir()
    Path(f"{folder}, begun").mkdir()
    return Work(
        Call(partial(log_worker, str(folder), together), data=True, threads=True), Context()
    )


def workers(rows: Iterable[Row]) -> list[dict[str, object]]:
    return [json.loads(row.report) for row in rows]


def jobs_together(worker: Mapping[str, object]) -> int:
    """The jobs of all files that were worked on together."""
    beside = worker["beside"]
    assert isinstance(beside, list)
    return sum(int(name.split()[1]) for name in beside)


def test_several_processes_work_on_local_files(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "_FILES_PER_TASK", 5)
    records = workers(run([f"{number}" for number in range(60)], watch(tmp_path, 3), 3))
    assert len({worker["process"] for worker in records} - {os.getpid()}) == 3
    assert {worker["jobs"] for worker in records} == {1}
    assert max(map(jobs_together, records)) <= 3


@each("files, jobs, threads", [(2, 4, 2), (3, 4, 1), (2, 8, 4), (4, 4, 1), (1, 4, 4)])
def test_where_files_are_fewer_than_workers_each_gets_several(tmp_path, files, jobs, threads):
    names = [ListedFile(str(number), listing.TASK_COST) for number in range(files)]
    records = workers(run(names, watch(tmp_path, files), jobs))
    assert [worker["jobs"] for worker in records] == [threads] * files
    assert len({worker["process"] for worker in records}) == files
    assert max(map(jobs_together, records)) <= jobs


def test_a_large_file_is_worked_on_alone_by_all(logging_work, monkeypatch):
    monkeypatch.setattr(local, "TASK_COST", 1 << 20)
    small, large = 1 << 19, (3 << 20) + 1
    sizes = [small, small, small, large, small, large, large, small, small, small, small]
    records = workers(
        run([ListedFile(str(number), size) for number, size in enumerate(sizes)], logging_work, 3)
    )
    assert [worker["jobs"] for worker in records] == [3 if size == large else 1 for size in sizes]
    assert [
        worker["beside"] for worker, size in zip(records, sizes, strict=True) if size == large
    ] == [["3 3"], ["5 3"], ["6 3"]]
    assert max(map(jobs_together, records)) <= 3
    assert os.getpid() not in {worker["process"] for worker in records}


def test_threads_wait_for_files_of_stores(logging_work):
    records = workers(run([f"s3://bucket/{number}" for number in range(40)], logging_work, 4))
    assert {worker["process"] for worker in records} == {os.getpid()}
    assert threading.get_ident() not in {worker["thread"] for worker in records}
    assert max(map(jobs_together, records)) <= 4
    (alone,) = workers(run(["s3://bucket/0"], logging_work, 4))
    assert (alone["thread"], alone["jobs"]) == (threading.get_ident(), 4)
    assert [
        worker["jobs"]
        for worker in workers(run(["s3://bucket/0", "s3://bucket/1"], logging_work, 4))
    ] == [2, 2]


# --- what goes wrong ---


def kill_at(number: int, path: str) -> None:
    if path.endswith(f"{number:05d}.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_file_that_kills_its_process_is_the_only_one_that_fails():
    names = [f"part-{number:05d}.parquet" for number in range(1500)]
    rows = list(run(names, Work(Call(partial(kill_at, 123)), Context())))
    assert [row.path for row in rows] == names
    assert [(row.path, row.exit_code) for row in rows if row.status != "ok"] == [
        ("part-00123.parquet", 70)
    ]
    assert "was killed" in rows[123].reason


def defective(path: str) -> str:
    return {}[path]


@each("path", ["a", "s3://bucket/a"])
def test_an_internal_error_names_its_file(path):
    row = next(run([path], Work(Call(defective), Context())))
    assert (row.status, row.exit_code) == ("failed", 70)
    assert row.reason == f"internal error: KeyError: {path!r}; please report it"


# --- what is held ---


@each("scheme", ["", "s3://bucket/"])
def test_the_listing_does_not_run_ahead_of_the_work(tmp_path, scheme):
    count = 0

    def files():
        nonlocal count
        for number in range(100_000):
            count += 1
            yield ListedFile(f"{scheme}{number}", 1)

    with closing(run(files(), Work(Call(tell_worker), Context()))) as rows:
        for _ in range(500):
            next(rows)
        assert count < 2000
    count = 0
    with closing(run(files(), Work(Call(tell_worker, data=True), Context()))) as rows:
        for _ in range(500):
            next(rows)
        assert count * listing.OPENING_COST < 30 * listing.TASK_COST


# --- how it ends ---


def linger(folder: str, path: str) -> None:
    begun = Path(folder, f"{Path(path).name}-{os.getpid()}")
    try:
        begun.touch()
        time.sleep(0 if path.endswith("first") else 60)
    finally:
        begun.unlink(missing_ok=True)


@needs_proc
def test_a_run_that_is_stopped_early_leaves_nothing_running(tmp_path, processes, monkeypatch):
    monkeypatch.setattr(local, "_FILES_PER_TASK", 1)
    before, started = set(_children(os.getpid())), time.monotonic()
    rows = run(
        ["first", *map(str, range(20))], Work(Call(partial(linger, str(tmp_path))), Context())
    )
    next(rows)
    assert len(set(_children(os.getpid())) - before) == 2
    while not os.listdir(tmp_path):
        time.sleep(0.01)
    rows.close()
    assert time.monotonic() - started < 20
    assert set(_children(os.getpid())) <= before
    assert os.listdir(tmp_path) == []
    # The next run is as any other.
    assert [
        row.status
        for row in run(["first"] * 3, Work(Call(partial(linger, str(tmp_path))), Context()))
    ] == ["ok"] * 3


@needs_proc
@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_terminated_command_leaves_nothing(tmp_path, number, exit_code):
    """Also in the middle of files: their workers remove what they have begun."""
    lake = small_files(tmp_path / "lake", 60)
    for path in lake.iterdir():
        add_filters(path, ["id"], in_place=True)
    before = digests(lake)
    program = (
        "import os, signal, sys, time\n"
        # Also where this test runs in a shell's background, whose processes ignore SIGINT.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from sbbf_tool.storage import local\n"
        "def linger(fresh):\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(60)\n"
        "really = local.replace_local\n"
        "local.replace_local = lambda source, target, keep, pieces, verify, begun: really(source, "
        "target, keep, pieces, linger, begun)\n"
        "from sbbf_tool.__main__ import main\n"
        "main()\n"
    )
    command = [
        sys.executable,
        "-c",
        program,
        "add-filter",
        str(lake),
        "-c",
        "name",
        "--in-place",
        "--jobs",
        "2",
    ]
    started = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        workers = _children(process.pid)
        assert workers
        # Ctrl-C goes to all processes of a terminal, and so does its end.
        process.send_signal(number) if number == signal.SIGTERM else os.killpg(process.pid, number)
        process.wait(40)
        assert process.stderr is not None
        assert process.returncode == exit_code
        # One line says how far it came.
        (line,) = process.stderr.read().splitlines()
        assert line.startswith("sbbf: interrupted; no file is done yet; ")
    assert time.monotonic() - started < 40
    assert not [pid for pid in workers if _is_alive(pid)]
    assert digests(lake) == before


def test_what_is_left_behind_is_looked_for_between_the_rows_of_a_run(tmp_path):
    """A run lists each folder once; what its caller does between two rows is not of the run."""
    lake = small_files(tmp_path / "lake", 3)
    runs = [
        LocalRunner(1).run(Selection(lake), Work(AddFilter(FilterSpec(("id",))), Context(), EDIT))
        for _ in range(2)
    ]
    for rows in (*runs, *runs):
        next(rows)
    leftover = lake / ".part-00000.parquet.0123456789ab.sbbf-tmp"
    leftover.touch()
    sweep(str(lake), "part-00000.parquet")
    assert not leftover.exists()
    for rows in runs:
        list(rows)
    leftover.touch()
    sweep(str(lake), "part-00000.parquet")
    assert not leftover.exists()


@needs_proc
def test_workers_end_with_their_owner(tmp_path):
    program = (
        "import time\n"
        "from sbbf_tool.running.processes import Processes, Task\n"
        "def work(units): time.sleep(60)\n"
        "with Processes(2) as processes:\n"
        "    task = processes.submit(Task([1], work))\n"
        "    print('begun', flush=True)\n"
        "    processes.rows(task, print, print)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "begun\n"
    time.sleep(0.3)
    workers = _children(owner.pid)
    assert len(workers) == 2
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 10
    while [pid for pid in workers if _is_alive(pid)]:
        assert time.monotonic() < deadline, "workers outlive their owner"
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError):  # the thread ended meanwhile
            children += map(int, (task / "children").read_text().split())
    return children


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
