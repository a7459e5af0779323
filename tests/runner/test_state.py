"""The state file: rows of many commands and files, saved as a whole, read with bounded memory."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sbbf_tool
from sbbf_tool.cli import run
from sbbf_tool.errors import UsageError, WriteError
from sbbf_tool.reports.findings import CheckReport, CheckRow
from sbbf_tool.reports.rows import ListedFile
from sbbf_tool.reports.state import StateRow
from sbbf_tool.runner import state as module
from sbbf_tool.runner import works
from sbbf_tool.runner.incremental import IncrementalRunner
from sbbf_tool.runner.local import LocalRunner
from sbbf_tool.runner.selection import Selection
from sbbf_tool.runner.state import State
from sbbf_tool.runner.works import Work
from sbbf_tool.storage import local
from support.lakes import small_files


def row(number: int, command: str = "check", **fields: object) -> StateRow:
    version = {"bytes": number, "modified": float(number), "change_time": None, "inode": number, "etag": None, "fingerprint": None}
    outcome = {"request": "r", "status": "ok", "reason": None, "exit_code": 0, "report": f'{{"file": {number}}}'}
    return StateRow(**{"path": f"/lake/{number:06d}.parquet", "command": command, **version, **outcome, **fields})  # type: ignore[arg-type]


def find_rows(state: State, number: int) -> dict[str, StateRow]:
    return {each.command: each for each in state.find(f"/lake/{number:06d}.parquet")}


def test_each_save_keeps_all_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    rows = 20_000
    state = State(path)
    for number in range(rows):
        state.record(row(number))
    state.save()
    for number in range(0, rows, 7):
        state.record(row(number, "verify"))
        state.record(row(number, bytes=-1))
    state.save()
    state.close()
    assert pq.read_metadata(path).num_rows == rows + len(range(0, rows, 7))
    for state in (State(path), State(path, writes=False)):
        for number in range(0, rows, 11):
            expected = {"check": row(number, bytes=-1 if number % 7 == 0 else number)}
            if number % 7 == 0:
                expected["verify"] = row(number, "verify")
            assert find_rows(state, number) == expected
        assert find_rows(state, rows) == {}
        state.close()


def test_rows_are_saved_each_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.parquet"
    now = time.monotonic()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    state = State(path)
    state.record(row(1))
    assert not path.exists()
    now += 61
    state.record(row(2))
    assert pq.read_metadata(path).num_rows == 2
    state.record(row(3))
    assert pq.read_metadata(path).num_rows == 2
    now += 61
    state.record(row(4))
    assert pq.read_metadata(path).num_rows == 4


def test_a_state_that_cannot_be_saved_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.parquet"
    state = State(path)
    state.record(row(1))
    state.save()
    before = path.read_bytes()

    def fail(*args: object, **options: object) -> None:
        raise WriteError("no space left on device", file=str(path))

    state.record(row(2))
    monkeypatch.setattr(module, "write_whole", fail)
    state.save()
    assert state.warnings == [f"the state is not saved: {path}: no space left on device"]
    assert path.read_bytes() == before
    monkeypatch.undo()
    state.save()
    assert pq.read_metadata(path).num_rows == 2


def test_small_row_groups_are_joined(tmp_path: Path) -> None:
    state = State(tmp_path / "s.parquet")
    for number in range(50):
        state.record(row(number))
        state.save()
    assert pq.read_metadata(tmp_path / "s.parquet").num_row_groups == 1


def test_a_damaged_row_group_is_reported_and_the_others_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    state = State(path)
    for number in range(12_000):
        state.record(row(number, report=os.urandom(40).hex()))
    state.save()
    column = pq.read_metadata(path).row_group(1).column(12)
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    path.write_bytes(data)
    state = State(path)
    assert find_rows(state, 0)
    assert find_rows(state, 5000) == {}
    assert len(state.warnings) == 1
    assert "row group 1 of the state cannot be read" in state.warnings[0]
    assert find_rows(state, 11_999)
    state.record(row(5000))
    state.save()
    assert [bool(find_rows(state, number)) for number in (0, 4999, 5000, 11_999)] == [True, False, True, True]


@pytest.mark.parametrize("repetition", ["of one value", "of many pages"])
def test_a_state_that_decompresses_to_gigabytes_is_refused_in_little_memory(repetition: str, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    plain = module.schema_of(StateRow)
    size = 400 << 20 if repetition == "of one value" else 1 << 20
    count = 2 if repetition == "of one value" else 500
    columns = {field.name: [getattr(row(number), field.name) for number in range(count)] for field in plain}
    columns["report"] = ["x" * size] * 2 if repetition == "of one value" else [f"{number}{'x' * size}" for number in range(count)]
    table = pa.table(columns, schema=plain)
    schema = module._dictionary_schema()
    writer = pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False)
    writer.write_table(module._encode(table, schema))
    writer.close()
    del table, columns
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UsageError, match="decompress to more than"):
        State(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10


def test_more_rows_than_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    plain = module.schema_of(StateRow)
    table = pa.table({field.name: [getattr(row(1), field.name)] * 8000 for field in plain}, schema=plain)
    schema = module._dictionary_schema()
    with pq.ParquetWriter(path, schema) as writer:
        for _ in range(10):
            writer.write_table(module._encode(table, schema))
    with pytest.raises(UsageError, match="it has other rows"):
        State(path)


@pytest.mark.parametrize("number", range(40))
def test_any_cut_of_a_state_is_refused_or_read(number: int, tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    state = State(path)
    for each in range(100):
        state.record(row(each))
    state.save()
    state.close()
    data = bytearray(path.read_bytes())
    data[(number * 7919) % len(data)] ^= 1 + number
    path.write_bytes(data)
    try:
        state = State(path)
    except UsageError:
        return
    for each in range(100):
        find_rows(state, each)
    state.record(row(1))
    state.save()


def test_in_python(tmp_path: Path) -> None:
    files = sbbf_tool.open_files(small_files(tmp_path / "lake", 3))
    time.sleep(0.06)
    state = tmp_path / "s.parquet"
    assert len(list(files.add_filters("id", in_place=True, dry_run=True, state=state))) == 3
    assert not state.exists()
    for skipped in (0, 1):
        assert [report.skipped for report in files.add_filters("id", in_place=True, state=state)] == [skipped] * 3
    time.sleep(0.06)
    first, second = (list(files.check(state=state)) for _ in range(2))
    assert first == second
    assert list(files.verify(state=state)) == list(files.verify(state=state))
    assert (list(files.check(since=state)), files.left_out) == ([], 3)
    with pytest.raises(UsageError):
        files.check(state=state, since=state)
    with pytest.raises(UsageError):
        files.check(since=tmp_path / "none")


@pytest.mark.parametrize(("age", "is_unchanged"), [(0.5, False), (5, True)])
def test_a_listing_that_may_count_in_seconds_is_trusted_later(age: float, is_unchanged: bool, tmp_path: Path) -> None:
    """Such a listing, by Hadoop's file systems, states size and modification alone."""
    folder = small_files(tmp_path / "lake", 1)
    (path,) = Path(folder).glob("*.parquet")
    listed_file = ListedFile(str(path), path.stat().st_size, time.time() - age)
    state = State(tmp_path / "s.parquet")
    runs = [IncrementalRunner(LocalRunner(1), state).run(Selection(()).only([listed_file]), works.verify()) for _ in range(2)]
    assert [[row.is_unchanged for row in rows] for rows in runs] == [[False], [is_unchanged]]


def test_an_interrupted_run_saves_what_it_has(tmp_path: Path) -> None:
    files = sbbf_tool.open_files(small_files(tmp_path / "lake", 5), jobs=1)
    time.sleep(0.06)
    results = files.verify(state=tmp_path / "s.parquet")
    next(results)
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert pq.read_metadata(tmp_path / "s.parquet").num_rows >= 2


def test_a_table_keeps_a_state_of_its_live_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    deltalake = pytest.importorskip("deltalake")
    monkeypatch.chdir(tmp_path)
    for number in range(3):
        deltalake.write_deltalake("orders", pa.table({"id": range(100 * number, 100 * number + 100)}), mode="append")
    time.sleep(0.06)
    for arguments in (["add-filter", "-c", "id", "--in-place"], ["verify"], ["check"]):
        command = [arguments[0], "orders", *arguments[1:], "--state", "s.parquet"]
        time.sleep(0.06)
        assert run(command) == 0
        capfd.readouterr()
        assert run(command) == 0
        assert "3 of them unchanged and not opened" in capfd.readouterr().out
    # The rows of the files that the commit replaced are gone.
    assert pq.read_metadata("s.parquet").num_rows == 9


class OneReport:
    """A runner that returns the report of one file for each, without opening any."""

    most_files: int | None = 10_000

    def __init__(self, report: CheckReport) -> None:
        self._report = report

    def list_files(self, selection: Selection, *, links: bool) -> Iterator[ListedFile]:
        return selection.files(links=links)

    def run(self, selection: Selection, work: Work[CheckRow]) -> Iterator[CheckRow]:
        for file in selection.files():
            yield CheckRow(file.path, "ok", None, 0, 0.0, replace(self._report, file=file.path))


@pytest.mark.heavy
def test_a_second_run_over_100_000_files_makes_one_listing_and_opens_none(tmp_path: Path, monkeypatch, capfd) -> None:
    source = small_files(tmp_path / "source", 1) / "part-00000.parquet"
    for number in range(100_000):
        folder = tmp_path / "lake" / f"day={number // 1000}"
        if number % 1000 == 0:
            folder.mkdir(parents=True)
        if number % 10_000 == 0:
            original = folder / f"{number}.parquet"
            original.write_bytes(source.read_bytes())
        else:
            (folder / f"{number}.parquet").hardlink_to(original)
    time.sleep(0.06)
    monkeypatch.chdir(tmp_path)
    report = sbbf_tool.check(source, sbbf_tool.Policy(quick=True))
    started = time.process_time()
    state = State("s.parquet")
    runner = IncrementalRunner(OneReport(report), state)  # type: ignore[arg-type]
    work = works.check(sbbf_tool.Policy(quick=True))
    assert sum(1 for _ in runner.run(Selection("lake"), work)) == 100_000
    state.close()
    first = time.process_time() - started

    folders: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: folders.append(path) or scandir(path))
    state = State("s.parquet")
    monkeypatch.setattr(local.LocalSource, "__init__", lambda self, path: pytest.fail(f"{path} is opened"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    second_run = IncrementalRunner(LocalRunner(1), state).run(Selection("lake"), work)
    assert sum(each.is_unchanged for each in second_run) == 100_000
    second = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(folders) == len(set(folders)) == 101
    with capfd.disabled():
        size = os.path.getsize("s.parquet")
        print(f"\n100,000 files: state of {size:,} bytes written in {first:.1f} s, used in {second:.1f} s, {memory / 1024:.0f} MiB more")
