"""The lake by processes of this machine: in order, in bounded memory, whatever becomes of a file or of a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from lakes import MIXED, assert_filled, digests, large_file, mixed, small_files

from sbbf_tool.editing.edit import Edit
from sbbf_tool.editing.filter_spec import FilterSpec
from sbbf_tool.reports.add import AddRow
from sbbf_tool.reports.inspect import InspectRow
from sbbf_tool.reports.rows import FileRow, FoundFile
from sbbf_tool.reports.verify import VerifyRow
from sbbf_tool.runner.discover import discover
from sbbf_tool.runner.local_engine import add_filters, read_files, verify_files
from sbbf_tool.runner.pack import TASK_COST
from sbbf_tool.runner.read import inspecting, verifying

EDIT = Edit(in_place=True, jobs=1)
SPEC = FilterSpec(("id", "name"))


def outcomes(folder: Path, spec: FilterSpec = SPEC, jobs: int | None = 2) -> dict[str, AddRow]:
    found = list(add_filters(discover([str(folder)]), spec, EDIT, jobs=jobs))
    assert [one.path for one in found] == [one.path for one in discover([str(folder)])]
    return {one.path.removeprefix(f"{folder}/").removesuffix(".parquet"): one for one in found}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_mixed_lake_is_done_as_far_as_it_can_be(tmp_path, jobs):
    lake = mixed(tmp_path / "lake")
    before = digests(lake)
    found = outcomes(lake, jobs=jobs)
    assert {name: one.status for name, one in found.items()} == MIXED
    assert (len(found["half-filtered"].report.filters), found["half-filtered"].report.skipped) == (1, 1)
    assert len(found["good-1"].report.filters) == 2
    assert found["empty"].reason == "not a Parquet file: 0 bytes, and the smallest has 12"
    assert found["no-such-column"].reason == "no column 'id'; the file has other"
    assert "encrypted" in found["encrypted"].reason
    assert "Delta table" in found["managed/orders/part"].reason
    assert "column id, row group 0" in found["unreadable-pages"].reason
    after = digests(lake)
    changed = {name.removesuffix(".parquet") for name in before if before[name] != after.get(name)}
    assert changed == {name for name, one in found.items() if one.status == "ok" and one.report.filters}
    assert after.keys() == before.keys()
    again = outcomes(lake, jobs=jobs)
    assert digests(lake) == after
    assert {one.status for name, one in again.items() if MIXED[name] in ("ok", "skipped")} == {"skipped"}


def test_reading_a_mixed_lake(tmp_path):
    lake = mixed(tmp_path / "lake")
    rows = {Path(row.path).stem: row for row in read_files(discover([str(lake)]), inspecting(), InspectRow, jobs=2)}
    assert {name for name, row in rows.items() if row.status != "ok"} == {"broken", "empty", "encrypted"}
    assert [len(rows[name].report.filters) for name in ("filtered", "half-filtered", "good-1")] == [2, 1, 0]


def test_a_file_of_many_row_groups_is_work_for_all(tmp_path, monkeypatch):
    import sbbf_tool.runner.local_engine as local_engine

    builders = tmp_path / "builders"
    builders.mkdir()

    def build(path, print_of_plan, row_groups, spec, edit):
        (builders / str(os.getpid())).touch()
        time.sleep(0.05)
        return really(path, print_of_plan, row_groups, spec, edit)

    really = local_engine.build_piece
    monkeypatch.setattr(local_engine, "build_piece", build)
    lake = tmp_path / "lake"
    large_file(lake / "large.parquet", row_groups=12)
    large_file(lake / "larger.parquet", row_groups=15)
    found = list(add_filters(discover([str(lake)]), FilterSpec(("id", "key")), EDIT, jobs=2, task_cost=1, piece_bytes=1))
    assert [(one.status, len(one.report.filters)) for one in found] == [("ok", 24), ("ok", 30)]
    assert_filled(lake, ("id", "key"))
    assert len(list(builders.iterdir())) == 2
    assert str(os.getpid()) not in os.listdir(builders)


def test_a_file_of_large_filters_is_built_by_one_process_on_all_cores(tmp_path, monkeypatch):
    """No filter of it is in another process, or waits in this one."""
    import sbbf_tool.editing.build as building
    import sbbf_tool.runner.local_engine as local_engine

    builders = tmp_path / "builders"
    builders.mkdir()

    def build(work, keys, jobs):
        (builders / f"{len(keys)} {os.getpid()} {jobs}").touch()
        return really(work, keys, jobs)

    really = building.in_parallel
    monkeypatch.setattr(building, "in_parallel", build)
    monkeypatch.setattr(local_engine, "HANDED_BYTES", 12 << 20)
    lake = small_files(tmp_path / "lake", 3)
    large_file(lake / "x-large.parquet", row_groups=12)
    large_file(lake / "y-larger.parquet", row_groups=15)
    spec = FilterSpec(("id",), ndv=600_000)
    found = list(add_filters(discover([str(lake)]), spec, EDIT, jobs=2, task_cost=1 << 20, piece_bytes=1))
    assert [(one.status, len(one.report.filters)) for one in found] == [("ok", 1)] * 3 + [("ok", 12), ("ok", 15)]
    assert_filled(lake, ("id",))
    done = [name.split() for name in os.listdir(builders)]
    assert {(filters, jobs) for filters, _, jobs in done} == {("1", "1"), ("0", "1"), ("15", "2")}
    assert str(os.getpid()) not in {process for _, process, _ in done}


def test_a_file_of_many_row_groups_is_proven_by_all(tmp_path, monkeypatch):
    import sbbf_tool.runner.local_engine as local_engine

    provers = tmp_path / "provers"
    provers.mkdir()

    def prove(*asked):
        (provers / str(os.getpid())).touch()
        time.sleep(0.05)
        return really(*asked)

    really = local_engine.prove_piece
    monkeypatch.setattr(local_engine, "prove_piece", prove)
    lake = mixed(tmp_path / "lake")
    large_file(lake / "large.parquet", row_groups=12)
    outcomes(lake, FilterSpec(("id",)))
    alone = [row.report for row in verify_files(discover([str(lake)]), jobs=1)]
    rows = list(verify_files(discover([str(lake)]), jobs=2, task_cost=1, piece_bytes=1))
    assert [row.report for row in rows] == alone
    assert {Path(row.path).stem for row in rows if row.status != "ok"} == {"broken", "empty", "encrypted"}
    assert len(list(provers.iterdir())) == 2
    assert str(os.getpid()) not in os.listdir(provers)


def kill_at(number: int, path: str) -> FileRow:
    if path.endswith(f"{number:05d}.parquet"):
        os.kill(os.getpid(), signal.SIGKILL)
    return inspecting()(path)


def test_a_file_that_kills_its_process_is_the_only_one_that_is_lost(tmp_path):
    path = str(small_files(tmp_path, 1) / "part-00000.parquet")
    files = [FoundFile(path if number != 123 else str(tmp_path / "part-00123.parquet")) for number in range(1500)]
    rows = list(read_files(files, partial(kill_at, 123), InspectRow, jobs=2))
    assert len(rows) == 1500
    assert [(Path(row.path).stem, row.exit_code) for row in rows if row.status != "ok"] == [("part-00123", 70)]
    assert "was killed" in rows[123].reason


def defective(path: str) -> VerifyRow:
    from sbbf_tool.runner.read import _reported

    return _reported(VerifyRow, lambda path: {}[path], path)


def test_a_defect_of_ours_is_told_of_its_file(tmp_path):
    row = next(read_files([FoundFile("a")], defective, VerifyRow))
    assert (row.status, row.exit_code, row.reason) == ("failed", 70, "internal error: KeyError: 'a'; please report it")


def test_files_are_listed_no_faster_than_they_are_answered(tmp_path):
    path = str(small_files(tmp_path, 1) / "part-00000.parquet")
    listed = 0

    def files():
        nonlocal listed
        for _ in range(100_000):
            listed += 1
            yield FoundFile(path, 1)

    rows = read_files(files(), inspecting(), InspectRow, jobs=2)
    for _ in range(500):
        next(rows)
    assert listed < 2000
    rows.close()
    listed = 0
    rows = read_files(files(), verifying(), VerifyRow, jobs=2, reads_data=True)
    for _ in range(500):
        next(rows)
    assert listed * 256 * 1024 < 30 * TASK_COST
    rows.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="asks /proc for the children of a process")
def test_workers_end_with_their_owner(tmp_path):
    program = (
        "import time\n"
        "from sbbf_tool.runner.processes import Processes, Task\n"
        "def work(units): time.sleep(60)\n"
        "with Processes(2) as processes:\n"
        "    task = processes.submit(Task([1], work))\n"
        "    print('begun', flush=True)\n"
        "    processes.rows(task, print)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "begun\n"
    time.sleep(0.3)
    workers = [int(pid) for pid in Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()]
    assert len(workers) == 2
    owner.kill()
    owner.wait()
    owner.stdout.close()
    deadline = time.monotonic() + 10
    while [pid for pid in workers if _is_alive(pid)]:
        assert time.monotonic() < deadline, "workers outlive their owner"
        time.sleep(0.05)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
