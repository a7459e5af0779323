"""`--state`: a second run opens only files that are new or changed, or whose last outcome does not
answer the request."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from sbbf_tool.running.discover import discover
from sbbf_tool.storage import places
from sbbf_tool.storage.source import LocalSource
from support.lakes import small_files
from support.tables import each


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    small_files(tmp_path / "lake", 4)
    # A file that changed at the moment of its listing is not remembered.
    time.sleep(0.06)
    return tmp_path


@pytest.fixture
def open_names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that this process has opened."""
    names: list[str] = []

    class CountingSource(LocalSource):
        def __init__(self, path: str | os.PathLike[str]) -> None:
            if "/part-" in os.fsdecode(path):
                names.append(Path(os.fsdecode(path)).name)
            super().__init__(path)

    monkeypatch.setattr(places, "LocalSource", CountingSource)
    return names


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The listings that were made."""
    calls: list[object] = []

    def count(*args: object, **options: object) -> Iterator[object]:
        calls.append(args)
        return discover(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("sbbf_tool.running.discover.discover", count)
    return calls


def summary(
    arguments: list[str], capfd: pytest.CaptureFixture[str], code: int = 0
) -> dict[str, object]:
    capfd.readouterr()
    assert run([*arguments, "--format", "json", "--jobs", "1"]) == code
    document: dict[str, object] = json.loads(capfd.readouterr().out.splitlines()[-1])
    return document


def query(statement: str, *values: object) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect("s.sqlite", isolation_level=None)) as database:
        return database.execute(statement, values).fetchall()


def rows_of(columns: str) -> list[tuple[Any, ...]]:
    return query(f"select {columns} from outcomes")


ADD = ["add-filter", "lake", "-c", "id", "--in-place", "--state", "s.sqlite"]
VERIFY = ["verify", "lake", "--state", "s.sqlite"]
CHECK = ["check", "lake", "--state", "s.sqlite"]


@each("arguments", [VERIFY, CHECK, ADD])
def test_a_second_run_makes_one_listing_and_opens_no_file(
    arguments, open_names, listings, capfd
) -> None:
    assert summary(arguments, capfd)["unchanged"] == 0
    assert len(set(open_names)) == 4
    open_names.clear()
    listings.clear()
    second = summary(arguments, capfd)
    assert (second["files"], second["unchanged"]) == (4, 4)
    assert open_names == []
    assert len(listings) == 1


@pytest.mark.slow
@each("arguments", [VERIFY, CHECK])
def test_reports_from_the_state_are_those_of_the_first_run(arguments, capfd) -> None:
    run(ADD[:-2])
    run(
        [
            "add-filter",
            "lake/part-00001.parquet",
            "-c",
            "x",
            "--in-place",
            "--fpp",
            "0.9",
            "--allow",
            "weak-filters",
            "-q",
        ]
    )
    time.sleep(0.06)
    outputs = []
    for _ in range(2):
        capfd.readouterr()
        code = run([*arguments, "--format", "json"])
        *documents, _summary = map(json.loads, capfd.readouterr().out.splitlines())
        outputs.append((code, documents))
    assert outputs[0] == outputs[1]
    assert any(document["findings"] for document in outputs[0][1]) == (arguments is CHECK)


def test_only_new_and_changed_files_are_opened(open_names, capfd) -> None:
    run(VERIFY)
    small_files(Path("more"), 5)
    shutil.move("more/part-00004.parquet", "lake/part-00004.parquet")
    os.utime("lake/part-00001.parquet", (0, 0))
    # Size and mtime as before, but another inode.
    status = os.stat("lake/part-00002.parquet")
    shutil.copy("lake/part-00002.parquet", "copy")
    os.utime("copy", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.rename("copy", "lake/part-00002.parquet")
    # All three as before: only the time of the change tells.
    path = Path("lake/part-00003.parquet")
    status = path.stat()
    path.write_bytes(path.read_bytes())
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    time.sleep(0.06)
    open_names.clear()
    assert summary(VERIFY, capfd)["unchanged"] == 1
    assert set(open_names) == {f"part-0000{number}.parquet" for number in (1, 2, 3, 4)}
    assert summary(VERIFY, capfd)["unchanged"] == 5


def test_another_request_opens_the_files(open_names, capfd) -> None:
    run(ADD)
    time.sleep(0.06)
    for change in (["-c", "name"], ["--fpp", "0.001"], ["--rebuild", "all"]):
        assert summary([*ADD, *change], capfd)["unchanged"] == 0
        assert summary([*ADD, *change], capfd)["unchanged"] == 4
        time.sleep(0.06)
    for arguments in (
        VERIFY,
        [*VERIFY, "-c", "id"],
        CHECK,
        [*CHECK, "--max-fpp", "0.5"],
        [*CHECK, "--quick"],
    ):
        assert summary(arguments, capfd)["unchanged"] == 0
        assert summary(arguments, capfd)["unchanged"] == 4
    # One row per file and command: the last request.
    assert len(rows_of("path")) == 12
    assert summary([*CHECK, "--max-fpp", "0.5"], capfd)["unchanged"] == 0


def test_a_file_that_was_skipped_fails_a_strict_run() -> None:
    pq.write_table(pa.table({"other": [1]}), "lake/part-00004.parquet")
    time.sleep(0.06)
    assert [run(ADD), run([*ADD, "--strict"])] == [0, 2]


def test_rows_of_a_folder_with_a_longer_name_stay(capfd) -> None:
    shutil.copytree("lake", "lake-2025")
    time.sleep(0.06)
    other = ["verify", "lake-2025", "--state", "s.sqlite"]
    for arguments in (other, VERIFY):
        assert summary(arguments, capfd)["unchanged"] == 0
    assert summary(other, capfd)["unchanged"] == 4


def test_a_dry_run_reads_the_state_and_does_not_write_it(capfd) -> None:
    assert summary([*ADD, "-n"], capfd)["unchanged"] == 0
    assert not Path("s.sqlite").exists()
    run(ADD)
    data = Path("s.sqlite").read_bytes()
    os.utime("lake/part-00001.parquet", (0, 0))
    assert summary([*ADD, "-n"], capfd)["unchanged"] == 3
    assert Path("s.sqlite").read_bytes() == data


@each(
    "kind",
    [
        "empty",
        "text",
        "data",
        "other database",
        "other application",
        "log of writes",
        "folder",
        "fifo",
    ],
)
def test_a_file_that_is_no_state_is_one_line_and_stays(kind: str, capfd) -> None:
    path = Path("s.sqlite")
    if kind in ("empty", "text"):
        path.write_bytes(b"" if kind == "empty" else b"{}\n" * 100)
    elif kind == "data":
        shutil.copy("lake/part-00000.parquet", path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "other database":
        query("create table outcomes (path, command)")
    else:
        run(VERIFY)
        query(
            "pragma application_id = 7"
            if kind == "other application"
            else "pragma journal_mode = wal"
        )
    before = path.read_bytes() if path.is_file() else None
    for arguments in (VERIFY, ADD, CHECK, [*ADD, "-n"]):
        capfd.readouterr()
        assert run(arguments) == 2
        error = capfd.readouterr().err
        assert error.startswith("sbbf: s.sqlite: the file is not a state of sbbf: ")
        assert len(error.splitlines()) == 1
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.slow
@each(
    "kind",
    ["a cut", "zeros", "another table", "another form", "a view", "a long value", "bytes as text"],
)
def test_a_damaged_state_is_set_aside_and_begun_again(kind: str, capfd) -> None:
    path = Path("s.sqlite")
    run(VERIFY)
    statements = {
        "another table": ("create table other (path)",),
        "another form": ("drop table outcomes", "create table outcomes (path, command)"),
        "a view": (
            "drop table outcomes",
            "create view outcomes as with recursive n(i) as (select 1 union all select i + 1 "
            "from n) select i from n",
        ),
        "a long value": ("update outcomes set report = zeroblob(30000000)",),
        "bytes as text": ("update outcomes set status = cast(x'ff' as text)",),
    }
    for statement in statements.get(kind, ()):
        query(statement)
    if kind == "a cut":
        path.write_bytes(path.read_bytes()[:-4096])
    elif kind == "zeros":
        path.write_bytes(path.read_bytes()[:4096] + bytes(4096 * 2))
    before = path.read_bytes()
    assert run([*ADD, "-n", "-c", "name"]) == 0
    assert path.read_bytes() == before
    capfd.readouterr()
    assert run(VERIFY) == 0
    error = capfd.readouterr().err
    assert error.startswith("sbbf: warning: s.sqlite: the state is damaged (")
    assert error.endswith(") and is now s.sqlite.damaged-1; its files are worked on again\n")
    assert Path("s.sqlite.damaged-1").read_bytes() == before
    assert summary(VERIFY, capfd)["unchanged"] == 4


@pytest.mark.slow
@each("values", [
        {"report": zlib.compress(text.encode())} for text in ("{}", "[", "[" * 100_000,
            '{"file": 1}', "7")
    ] + [
        {"report": None}, {"report": "{}"}, {"report": b"{}"},
        {"report": zlib.compress(bytes(100 << 20), 1)}, {"status": "perfect"},
        {"status": None}, {"exit_code": 1}, {"exit_code": -(2**60)}, {"exit_code": "0"},
        {"request": ""}, {"version": "[]"}, {"version": 7},
        {"reason": b"x"},
    ])  # fmt: skip
def test_a_forged_row_is_not_used(values: dict[str, object], open_names, capfd) -> None:
    run(VERIFY)
    for name, value in values.items():
        query(f"update outcomes set {name} = ?", value)
    open_names.clear()
    assert summary(VERIFY, capfd)["unchanged"] == 0
    assert len(set(open_names)) == 4
    assert summary(VERIFY, capfd)["unchanged"] == 4


def test_what_another_user_made_is_not_followed(monkeypatch, capfd) -> None:
    run(VERIFY)
    os.rename("s.sqlite", "elsewhere")
    os.symlink("elsewhere", "s.sqlite")
    assert summary(VERIFY, capfd)["unchanged"] == 4
    if os.geteuid():
        pytest.skip("only root can give files away")
    monkeypatch.setattr("sbbf_tool.storage.whole.user_id", lambda: 7)
    monkeypatch.setattr("sbbf_tool.running.state.user_id", lambda: 7)
    for name in ("s.sqlite", "elsewhere-journal"):
        Path("elsewhere-journal").touch()
        os.lchown(name, 8, 8)
        capfd.readouterr()
        assert run(VERIFY) == 4
        assert "another user" in capfd.readouterr().err
        os.lchown(name, 7, 7)


@each("make", [os.mkfifo, lambda path: os.symlink("elsewhere", path)])
@each("words", [VERIFY, [*ADD, "-n", "-c", "name"]])
def test_a_journal_that_is_no_regular_file_is_refused(make, words, capfd) -> None:
    run(VERIFY)
    make("s.sqlite-journal")
    capfd.readouterr()
    assert run(words) == 4
    assert "s.sqlite-journal: the journal of the state is no regular file" in capfd.readouterr().err
    os.remove("s.sqlite-journal")


@pytest.mark.slow
def test_two_runs_share_a_state(capfd) -> None:
    first, second = (
        [sys.executable, "-m", "sbbf_tool", command, "lake", "--state", "s.sqlite"]
        for command in ("verify", "check")
    )
    small_files(Path("lake"), 60)
    time.sleep(0.06)
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for command in (first, second, first, second)
    ]
    assert [(process.communicate()[1], process.returncode) for process in processes] == [
        (b"", 0)
    ] * 4
    assert [summary(arguments, capfd)["unchanged"] for arguments in (VERIFY, CHECK)] == [60, 60]


def test_a_state_that_others_can_change(capfd) -> None:
    run(VERIFY)
    Path("s.sqlite").chmod(0o666)
    capfd.readouterr()
    assert run(VERIFY) == 0
    assert (
        "s.sqlite: the state can be changed by every user, who can thus choose the outcomes of "
        "files" in capfd.readouterr().err
    )


def test_apply_keeps_a_state_too(open_names, capfd) -> None:
    Path("sbbf.toml").write_text('[[filters]]\npaths = "lake"\ncolumns = ["id"]\n')
    apply = ["apply", "--state", "s.sqlite"]
    assert summary([*apply, "-n"], capfd, code=1)["unchanged"] == 0
    for unchanged in (0, 4):
        assert summary(apply, capfd, code=1)["unchanged"] == unchanged
    assert summary(apply, capfd, code=1)["unchanged"] == 4
    assert summary([*apply, "--in-place"], capfd)["unchanged"] == 0
    open_names.clear()
    assert summary([*apply, "--in-place"], capfd)["unchanged"] == 4
    assert open_names == []


def test_a_state_is_no_file_of_the_lake() -> None:
    assert (
        run(["verify", "lake", "--state", "lake/_s.parquet"])
        == run(["verify", "lake", "--state", "lake/s"])
        == 0
    )


def test_a_dry_run_refuses_the_folder_that_the_run_refuses(fixtures, tmp_path, capfd):
    state = str(tmp_path / "nowhere" / "state.db")
    for target in ("--in-place", "-n"):
        words = ["add-filter", str(fixtures), "-c", "user_id", "--state", state, target]
        assert run(words) == 4
        assert "the folder of the state does not exist" in capfd.readouterr().err
