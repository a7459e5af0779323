"""The state file: rows of many commands and files, committed one by one."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from sbbf_tool.cli import run
from sbbf_tool.errors import UsageError
from sbbf_tool.file.context import Context
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.running import state as module
from sbbf_tool.running.incremental import IncrementalRunner
from sbbf_tool.running.local import LocalRunner
from sbbf_tool.running.selection import Selection
from sbbf_tool.running.state import State, StateRow
from sbbf_tool.running.work import Work
from sbbf_tool.verbs.verify import Verify
from support.lakes import small_files
from support.tables import each


def row(number: int, command: str = "check", **fields: object) -> StateRow:
    values = {
        "path": f"/lake/{number:06d}.parquet",
        "command": command,
        "version": str(number),
        "request": "r",
        "status": "ok",
    }
    return StateRow(
        **{**values, "reason": None, "exit_code": 0, "report": f'{{"file": {number}}}', **fields}
    )  # type: ignore[arg-type]


def find_rows(state: State, number: int) -> dict[str, StateRow]:
    return {each.command: each for each in state.find(f"/lake/{number:06d}.parquet")}


def count_rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("select count(*) from outcomes").fetchone()[0])


def test_a_row_is_saved_at_once_and_replaces_the_one_of_the_same_file_and_command(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.sqlite"
    state = State(path)
    for number in range(100):
        state.record(row(number))
        assert count_rows(path) == number + 1
    for number in range(0, 100, 7):
        state.record(row(number, "verify"))
        state.record(row(number, version="x"))
    for opened in (state, State(path), State(path, writes=False)):
        for number in range(100):
            expected = {"check": row(number, version="x") if number % 7 == 0 else row(number)}
            if number % 7 == 0:
                expected["verify"] = row(number, "verify")
            assert find_rows(opened, number) == expected
        assert find_rows(opened, 100) == {}
        opened.close()


def test_a_state_that_cannot_be_saved_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.01)
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    state = State(path)
    state.record(row(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("begin exclusive")
        state.record(row(2))
        assert find_rows(state, 1) == {}
    assert state.warnings == [f"{path}: the state cannot be saved: database is locked"]
    assert count_rows(path) == 1
    now += 61
    state.record(row(3))
    assert count_rows(path) == 2
    state.close()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    state = State(tmp_path / "s.sqlite")
    for number in range(100):
        state.record(row(number))
    state.close()
    return tmp_path / "s.sqlite"


@each("number", range(40))
def test_a_state_with_any_changed_byte_is_refused_or_read_or_begun_again(
    number: int, saved: Path
) -> None:
    path, data = saved, bytearray(saved.read_bytes())
    data[number * 7919 % len(data) if number > 10 else number * 10] ^= 1 + number
    path.write_bytes(data)
    try:
        state = State(path)
    except UsageError:
        assert path.read_bytes() == data
        return
    for other in range(100):
        find_rows(state, other)
    state.record(row(1))
    assert find_rows(state, 1) in ({}, {"check": row(1)})
    state.close()


@each("age, is_unchanged", [(0.5, False), (5, True)])
def test_a_listing_that_may_count_in_seconds_is_trusted_later(
    age: float, is_unchanged: bool, tmp_path: Path
) -> None:
    """Such a listing, by Hadoop's file systems, states size and modification alone."""
    folder = small_files(tmp_path / "lake", 1)
    (path,) = Path(folder).glob("*.parquet")
    listed_file = ListedFile(str(path), path.stat().st_size, time.time() - age)
    state = State(tmp_path / "s.sqlite")
    runs = [
        IncrementalRunner(LocalRunner(1), state).run(
            Selection(()).only([listed_file]), Work(Verify(), Context())
        )
        for _ in range(2)
    ]
    assert [[row.is_unchanged for row in rows] for rows in runs] == [[False], [is_unchanged]]


def test_a_table_keeps_a_state_of_its_live_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        deltalake.write_deltalake(
            "orders", pa.table({"id": range(100 * number, 100 * number + 100)}), mode="append"
        )
    time.sleep(0.06)
    for arguments in (["add-filter", "-c", "id", "--in-place"], ["verify"], ["check"]):
        command = [arguments[0], "orders", *arguments[1:], "--state", "s.sqlite"]
        time.sleep(0.06)
        assert run(command) == 0
        capfd.readouterr()
        assert run(command) == 0
        assert "3 of them unchanged and not opened" in capfd.readouterr().out
    # The rows of the files that the commit replaced are gone.
    assert count_rows(Path("s.sqlite")) == 9
