"""A watched folder: every file gets its filters once, whenever and however it arrives, whatever ends the watch in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from lake_folders import REPOSITORY

from sbbf_tool import UnreadableError, UsageError, inspect, verify
from sbbf_tool.cli import run
from sbbf_tool.runner.partitions import parse_predicate
from sbbf_tool.runner.plan import Wish
from sbbf_tool.spark.arrivals import Arrivals

pytestmark = pytest.mark.engines
pytest.importorskip("pyspark")

WISH = Wish(("user_id",))


@pytest.fixture
def arrive(tmp_path, fixtures):
    """Puts a file into the folder: whole, or only its first bytes."""
    whole = (fixtures / "events.parquet").read_bytes()

    def arrive(name: str, length: int | None = None) -> str:
        path = tmp_path / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(whole[:length])
        return str(path)

    return arrive


@pytest.fixture
def watched(spark, tmp_path):
    """What one watch does, by path; by default with what is there."""
    from sbbf_tool.spark.watch import watch

    def watched(**options) -> dict[str, tuple[str, int]]:
        options = {"most_files": 2, **options}
        outcomes = watch(spark, str(tmp_path / "lake"), WISH, str(tmp_path / "checkpoint"), **options)
        return {outcome.path: (outcome.status, outcome.filters) for outcome in outcomes}

    return watched


def is_done(path: str) -> bool:
    report = inspect(path)
    return [row.column for row in report.filters] == ["user_id"] * report.row_groups and verify(path).is_sound


def test_each_file_once_and_none_lost(arrive, watched):
    first = [arrive("a.parquet"), arrive("dt=2026-01-01/with a space, 100%25 ü.parquet")]
    arrive("_hidden/x.parquet")
    arrive("c.txt")
    empty, unfinished = arrive("empty.parquet", 0), arrive("unfinished.parquet", 70_000)
    assert watched() == {**dict.fromkeys(first, ("ok", 3)), empty: ("failed", 0), unfinished: ("failed", 0)}
    assert all(map(is_done, first))

    # Rewritten by the watch itself, they are no new files; what could not be done is told again, and is as it was.
    assert watched() == {empty: ("failed", 0), unfinished: ("failed", 0)}

    late = [arrive("empty.parquet"), arrive("unfinished.parquet"), arrive("late.parquet")]
    assert watched() == dict.fromkeys(late, ("ok", 3))
    assert all(map(is_done, late))
    assert watched() == {}


def test_files_that_come_while_it_watches(spark, arrive, watched):
    there, growing = arrive("there.parquet"), arrive("growing.parquet", 50_000)
    expected = {there, growing, arrive("new.parquet", 0)}

    def bring() -> None:
        deadline = time.monotonic() + 90
        while not is_there(there) and time.monotonic() < deadline:
            time.sleep(0.2)
        arrive("growing.parquet")
        arrive("new.parquet")
        while not all(map(is_there, expected)) and time.monotonic() < deadline:
            time.sleep(0.2)
        for query in spark.streams.active:
            query.stop()

    def is_there(path: str) -> bool:
        try:
            return bool(inspect(path).filters)
        except UnreadableError:
            return False

    bringer = threading.Thread(target=bring)
    bringer.start()
    try:
        watched(every=1.0)
    finally:
        bringer.join()
    assert all(map(is_done, expected))


def test_only_the_partitions_that_are_meant(arrive, watched):
    old, new = arrive("dt=2026-01-01/a.parquet"), arrive("dt=2026-01-02/a.parquet")
    arrive("dt=2026-01-01/empty.parquet", 0)
    assert watched(where=parse_predicate("dt > '2026-01-01'")) == {new: ("ok", 3)}
    assert not inspect(old).filters


def test_what_was_not_done_is_remembered_through_a_crash(tmp_path, arrive):
    """The state of a checkpoint is what was settled last, and a list of Spark's that was not settled is named again."""
    lists = tmp_path / "checkpoint" / "stream" / "sources" / "0"
    lists.mkdir(parents=True)
    path = arrive("with space.parquet")
    address = f"file://{path.replace(' ', '%20')}"
    (lists / "0").write_text(f'v1\n{{"path":"{address}","timestamp":1,"batchId":0}}')
    arrivals = Arrivals(str(tmp_path / "checkpoint"))
    assert arrivals.arrived() == ([path], 0)
    assert Arrivals(str(tmp_path / "checkpoint")).arrived() == ([path], 0)
    arrivals.settle([], 0)
    assert Arrivals(str(tmp_path / "checkpoint")).arrived() == ([], 0)
    (lists / "9.compact").write_text((lists / "0").read_text() + f'\n{{"path":"{address}2","timestamp":1,"batchId":9}}')
    assert Arrivals(str(tmp_path / "checkpoint")).arrived() == ([f"{path}2"], 9)


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"through": 1}', '{"through": "x", "files": {}}', '{"through": 1, "files": {"a": 1}}'])
def test_a_checkpoint_that_is_none(tmp_path, text):
    (tmp_path / "unfinished.json").write_text(text)
    with pytest.raises(UnreadableError, match=r"unfinished\.json: not as this command wrote it"):
        Arrivals(str(tmp_path))


def test_a_checkpoint_that_this_machine_does_not_see():
    with pytest.raises(UsageError, match="a checkpoint is a folder of this machine"):
        Arrivals("s3://bucket/checkpoint")


def test_the_command(spark, tmp_path, arrive, capfd):
    done, broken = arrive("a.parquet"), arrive("b.parquet", 1000)
    command = ["lake", "watch", str(tmp_path / "lake"), "-c", "user_id", "--checkpoint", str(tmp_path / "checkpoint"), "--available-now"]
    assert run(command) == 3
    said = capfd.readouterr()
    assert said.out.splitlines()[0].startswith(f"{done}: 3 filters added, ")
    assert said.out.splitlines()[-1] == "2 files: 1 done, 1 failed"
    assert f"sbbf: {broken}: " in said.err
    assert "PAR1" in said.err
    arrive("b.parquet")
    assert run(command) == 0
    assert is_done(broken)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--available-now", "--interval", "1m"], "give one of the two"),
        (["--interval", "soon"], "'soon' is not a length of time"),
        (["--interval", "0s"], "'0s' is not a length of time"),
        (["--where", "dt >"], "dt >"),
    ],
)
def test_the_command_refuses(tmp_path, capfd, options, said):
    assert run(["lake", "watch", str(tmp_path), "-c", "id", "--checkpoint", str(tmp_path / "checkpoint"), *options]) == 2
    assert said in capfd.readouterr().err


@pytest.mark.heavy
def test_killed_at_any_moment_it_goes_on_from_its_checkpoint(tmp_path, arrive):
    files = [arrive(f"{number:02d}.parquet") for number in range(40)]
    command = [sys.executable, "-m", "sbbf_tool", "lake", "watch", str(tmp_path / "lake"), "-c", "user_id", "--master", "local[2]"]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--max-files", "4"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    for kill in range(3):
        watch = subprocess.Popen(
            [*command, "--interval", "1s"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert watch.stdout is not None
        for _ in range(4 + kill):  # somewhere in the batch that follows
            watch.stdout.readline()
        os.killpg(watch.pid, signal.SIGKILL)
        watch.communicate()
        assert all(verify(path).is_sound for path in files)
    assert 8 <= sum(bool(inspect(path).filters) for path in files) < len(files)
    assert subprocess.run([*command, "--available-now"], env=environment, timeout=300).returncode == 0
    assert all(map(is_done, files))
    assert not [name for name in os.listdir(tmp_path / "lake") if name.endswith(".sbbf-tmp")]


def test_a_folder_that_is_not_there(watched):
    with pytest.raises(UnreadableError, match="no such folder"):
        watched()


def test_links_in_the_folder_are_skipped(arrive, watched, tmp_path):
    done, elsewhere = arrive("a.parquet"), arrive("../elsewhere/b.parquet")
    empty = arrive("../elsewhere/empty.parquet", 0)
    links = [tmp_path / "lake" / name for name in ("link.parquet", "empty.parquet", "linked")]
    for link, target in zip(links, (elsewhere, empty, os.path.dirname(elsewhere)), strict=True):
        link.symlink_to(target)
    for _ in range(2):
        assert {status for path, (status, _) in watched().items() if path != done} <= {"skipped"}
        arrive("../elsewhere/empty.parquet")
        assert is_done(done)
        assert not inspect(elsewhere).filters
        assert not inspect(tmp_path / "lake" / "empty.parquet").filters
