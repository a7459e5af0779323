"""`--state` and `--since`: a second run opens only files that are new or changed, or whose last outcome does not answer the request."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sbbf_tool.cli import run
from sbbf_tool.runner.discover import discover
from sbbf_tool.storage import local
from support.lakes import small_files


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

    class CountingSource(local.LocalSource):
        def __init__(self, path: str | os.PathLike[str]) -> None:
            if "/part-" in os.fsdecode(path):
                names.append(Path(os.fsdecode(path)).name)
            super().__init__(path)

    monkeypatch.setattr(local, "LocalSource", CountingSource)
    return names


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The listings that were made."""
    calls: list[object] = []

    def count(*args: object, **options: object) -> Iterator[object]:
        calls.append(args)
        return discover(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("sbbf_tool.runner.discover.discover", count)
    return calls


def summary(arguments: list[str], capfd: pytest.CaptureFixture[str], code: int = 0) -> dict[str, object]:
    capfd.readouterr()
    assert run([*arguments, "--json", "--jobs", "1"]) == code
    document: dict[str, object] = json.loads(capfd.readouterr().out.splitlines()[-1])
    return document


ADD = ["add-filter", "lake", "-c", "id", "--in-place", "--state", "s.parquet"]
VERIFY = ["verify", "lake", "--state", "s.parquet"]
CHECK = ["check", "lake", "--state", "s.parquet"]


@pytest.mark.parametrize("arguments", [ADD, VERIFY, CHECK], ids=lambda words: words[0])
def test_a_second_run_makes_one_listing_and_opens_no_file(arguments, open_names, listings, capfd) -> None:
    assert summary(arguments, capfd)["unchanged"] == 0
    assert len(set(open_names)) == 4
    open_names.clear()
    listings.clear()
    second = summary(arguments, capfd)
    assert (second["files"], second["unchanged"]) == (4, 4)
    assert open_names == []
    assert len(listings) == 1


@pytest.mark.parametrize("arguments", [VERIFY, CHECK], ids=lambda words: words[0])
def test_reports_from_the_state_are_those_of_the_first_run(arguments, capfd) -> None:
    run(ADD[:-2])
    run(["add-filter", "lake/part-00001.parquet", "-c", "x", "--in-place", "--fpp", "0.9", "--force", "-q"])
    time.sleep(0.06)
    outputs = []
    for _ in range(2):
        capfd.readouterr()
        code = run([*arguments, "--json"])
        *documents, _summary = map(json.loads, capfd.readouterr().out.splitlines())
        outputs.append((code, documents))
    assert outputs[0] == outputs[1]
    assert any(document["findings"] for document in outputs[0][1]) == (arguments is CHECK)


def test_findings_of_unchanged_files_count_for_the_exit_code(open_names, capfd) -> None:
    arguments = [*CHECK, "--require", "name"]
    assert run(arguments) == 1
    open_names.clear()
    second = summary(arguments, capfd, code=1)
    assert (second["unchanged"], second["exit_code"]) == (4, 1)
    assert open_names == []
    assert run([*CHECK, "--require", "absent"]) == 2
    assert run([*CHECK, "--require", "absent"]) == 2


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
    time.sleep(0.06)
    open_names.clear()
    assert summary(VERIFY, capfd)["unchanged"] == 2
    assert set(open_names) == {f"part-0000{number}.parquet" for number in (1, 2, 4)}
    assert summary(VERIFY, capfd)["unchanged"] == 5


def test_another_request_opens_the_files(open_names, capfd) -> None:
    run(ADD)
    time.sleep(0.06)
    for change in (["-c", "name"], ["--fpp", "0.001"], ["--replace"]):
        assert summary([*ADD, *change], capfd)["unchanged"] == 0
        assert summary([*ADD, *change], capfd)["unchanged"] == 4
        time.sleep(0.06)
    for arguments in (VERIFY, [*VERIFY, "-c", "id"], CHECK, [*CHECK, "--max-fpp", "0.5"], [*CHECK, "--quick"]):
        assert summary(arguments, capfd)["unchanged"] == 0
        assert summary(arguments, capfd)["unchanged"] == 4
    # One row per file and command: the last request.
    assert pq.read_metadata("s.parquet").num_rows == 12
    assert summary([*CHECK, "--max-fpp", "0.5"], capfd)["unchanged"] == 0


def test_failed_files_are_worked_on_again(open_names, capfd) -> None:
    path = Path("lake/part-00003.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    time.sleep(0.06)
    for _ in range(2):
        assert summary(VERIFY, capfd, code=3)["failed"] == 1
    assert open_names.count(path.name) >= 2
    path.write_bytes(data)
    time.sleep(0.06)
    assert summary(VERIFY, capfd)["failed"] == 0
    assert summary(VERIFY, capfd)["unchanged"] == 4


def test_a_dry_run_reads_the_state_and_does_not_write_it(capfd) -> None:
    assert summary([*ADD, "-n"], capfd)["unchanged"] == 0
    assert not Path("s.parquet").exists()
    run(ADD)
    data = Path("s.parquet").read_bytes()
    os.utime("lake/part-00001.parquet", (0, 0))
    assert summary([*ADD, "-n"], capfd)["unchanged"] == 3
    assert Path("s.parquet").read_bytes() == data


def test_since_leaves_out_what_is_unchanged(open_names, capfd) -> None:
    run(ADD)
    data = Path("s.parquet").read_bytes()
    open_names.clear()
    since = ["check", "lake", "--since", "s.parquet"]
    assert summary(since, capfd)["left_out"] == 4
    assert run(since) == 0
    assert "0 files: 4 more unchanged and left out" in capfd.readouterr().out
    assert open_names == []
    run(["add-filter", "lake/part-00001.parquet", "-c", "x", "--in-place", "-q"])
    open_names.clear()
    assert {name: summary(since, capfd)[name] for name in ("files", "left_out")} == {"files": 1, "left_out": 3}
    assert set(open_names) == {"part-00001.parquet"}
    assert summary(["check", "lake/part-00000.parquet", "--since", "s.parquet"], capfd)["left_out"] == 1
    assert Path("s.parquet").read_bytes() == data


def test_files_that_are_left_out_may_have_the_column(capfd) -> None:
    run(CHECK)
    for number in (4, 5):
        pq.write_table(pa.table({"other": [1]}), f"lake/part-0000{number}.parquet")
    since = ["check", "lake", "--require", "id", "--since", "s.parquet"]
    assert {name: summary(since, capfd)[name] for name in ("files", "left_out", "failed")} == {"files": 2, "left_out": 4, "failed": 0}
    assert run(["check", "lake/part-00004.parquet", *since[2:]]) == 2


def test_rows_of_files_that_no_longer_exist_are_dropped(capfd) -> None:
    run(ADD)
    run(VERIFY)
    os.unlink("lake/part-00000.parquet")
    run(["verify", "lake/part-00001.parquet", "--state", "s.parquet"])
    assert pq.read_metadata("s.parquet").num_rows == 8
    run(VERIFY)
    rows = pq.read_table("s.parquet", columns=["path", "command"]).to_pylist()
    assert sorted((row["command"], Path(row["path"]).name[5:10]) for row in rows) == [
        *(("add-filter", f"0000{number}") for number in range(4)),
        *(("verify", f"0000{number}") for number in range(1, 4)),
    ]


def test_the_folder_of_the_command_does_not_matter(monkeypatch, capfd) -> None:
    run(VERIFY)
    monkeypatch.chdir("lake")
    assert summary(["verify", ".", "--state", "../s.parquet"], capfd)["unchanged"] == 4


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "data", "report", "folder", "fifo", "other types", "other version"])
def test_a_file_that_is_no_state_is_one_line_and_stays(kind: str, capfd) -> None:
    path = Path("s.parquet")
    run(VERIFY)
    if kind == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    elif kind == "other types":
        table = pq.read_table(path)
        pq.write_table(table.set_column(0, "path", pa.array(range(len(table)))), path)
    elif kind == "other version":
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata({b"sbbf.state": b"0"}), path)
    else:
        path.unlink()
    if kind in ("empty", "text"):
        path.write_bytes(b"" if kind == "empty" else b"{}\n" * 100)
    elif kind == "data":
        shutil.copy("lake/part-00000.parquet", path)
    elif kind == "report":
        run(["check", "lake", "--report", str(path)])
    elif kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    before = path.read_bytes() if path.is_file() else None
    for arguments in (VERIFY, ADD, CHECK, ["check", "lake", "--since", str(path)]):
        capfd.readouterr()
        assert run(arguments) == 2
        error = capfd.readouterr().err
        assert error.startswith("sbbf: s.parquet: the file is not a state of this version of sbbf: ")
        assert len(error.splitlines()) == 1
    assert (path.read_bytes() if path.is_file() else None) == before


def forge(**values: object) -> None:
    """Change a column of the state."""
    table = pq.read_table("s.parquet")
    for name, value in values.items():
        position = table.schema.get_field_index(name)
        plain = table.schema.field(name).type.value_type if pa.types.is_dictionary(table.schema.field(name).type) else None
        column = pa.array([value] * len(table), plain or table.schema.field(name).type)
        encoded = column if plain is None else column.dictionary_encode()
        table = table.set_column(position, table.schema.field(name), encoded)
    pq.write_table(table, "s.parquet")


@pytest.mark.parametrize(
    "values",
    [
        {"report": "{}"}, {"report": "["}, {"report": "[" * 100_000}, {"report": None}, {"report": '{"file": 1}'}, {"report": "7"},
        {"status": "perfect"}, {"exit_code": 1}, {"exit_code": -(2**60)}, {"request": ""}, {"bytes": None, "modified": None},
        {"modified": float("nan")}, {"inode": -1},
    ],
    ids=lambda values: str(values)[:40],
)  # fmt: skip
def test_a_forged_row_is_not_used(values: dict[str, object], open_names, capfd) -> None:
    run(VERIFY)
    forge(**values)
    open_names.clear()
    assert summary(VERIFY, capfd)["unchanged"] == 0
    assert len(set(open_names)) == 4
    assert "Traceback" not in capfd.readouterr().err


def test_usage(capfd) -> None:
    run(VERIFY)
    for arguments in (
        ["check", "lake", "--since", "s.parquet", "--state", "t.parquet"],
        ["check", "lake", "--since", "none.parquet"],
        ["add-filter", "lake", "-c", "id", "--plan-only", "--state", "s.parquet"],
        ["add-filter", "lake/part-00000.parquet", "-c", "id", "-o", "out.parquet", "--state", "s.parquet"],
        ["verify", "lake", "--state", "s3://bucket/state.parquet"],
    ):
        assert run(arguments) == 2
    assert run(["verify", "lake", "--state", "no/such/folder.parquet"]) == 4
    Path("s.parquet").chmod(0o666)
    capfd.readouterr()
    assert run(VERIFY) == 0
    assert "s.parquet: the state can be changed by every user, who can thus choose the outcomes of files" in capfd.readouterr().err


def test_apply_keeps_a_state_too(open_names, capfd) -> None:
    Path("sbbf.toml").write_text('[[filters]]\npaths = "lake"\ncolumns = ["id"]\n')
    apply = ["apply", "--state", "s.parquet"]
    for _ in range(2):
        assert summary(apply, capfd, code=1)["totals"]
    assert summary(apply, capfd, code=1)["unchanged"] == 4
    assert summary([*apply, "--in-place"], capfd)["unchanged"] == 0
    open_names.clear()
    assert summary([*apply, "--in-place"], capfd)["unchanged"] == 4
    assert open_names == []


def test_apply_drops_the_rows_of_files_that_no_longer_exist(capfd) -> None:
    Path("sbbf.toml").write_text('[[filters]]\npaths = "lake/**"\ncolumns = "id"\n')
    for number in range(4):
        os.mkdir(f"lake/part={number}")
        os.rename(f"lake/part-0000{number}.parquet", f"lake/part={number}/x.parquet")
    apply = ["apply", "--state", "s.parquet"]
    run(apply)
    os.unlink("lake/part=0/x.parquet")
    assert summary([*apply, "lake", "--where", "part = 1"], capfd, code=1)["files"] == 1
    assert pq.read_metadata("s.parquet").num_rows == 4
    run(apply)
    assert pq.read_metadata("s.parquet").num_rows == 3


def test_filters_that_a_limit_weakens_are_limited_in_the_first_run_and_from_the_state(capfd) -> None:
    pq.write_table(pa.table({"id": range(20_000)}), "large.parquet")
    Path("sbbf.toml").write_text('[[filters]]\npaths = "large.parquet"\ncolumns = "id"\nmax_bytes = 16384\n')
    apply = ["apply", "--in-place"]
    runs = [summary([*apply, *state], capfd) for state in (["--state", "s.parquet"], ["--state", "s.parquet"], [])]
    assert [(run.get("unchanged"), run["totals"]["limited"]) for run in runs] == [(0, 1), (1, 1), (None, 1)]


@pytest.mark.parametrize("name", ["lake/s.parquet", "lake/day/s.parquet"])
def test_a_state_is_no_file_of_the_lake(name: str, capfd) -> None:
    Path("lake/day").mkdir()
    assert run(["verify", "lake", "--state", name]) == 2
    assert "the state would be one of the files of lake" in capfd.readouterr().err
    assert run(["verify", "lake", "--state", "lake/_s.parquet"]) == run(["verify", "lake", "--state", "lake/s"]) == 0
    assert run(["verify", "lake", "--state", "-"]) == 2


def test_another_process_finds_the_files_of_a_table(capfd) -> None:
    """Sets of names have another order in each process."""
    names = [f"c{number}" for number in range(8)]
    deltalake.write_deltalake("orders", pa.table({name: [1, 2] for name in names}))
    command = [sys.executable, "-m", "sbbf_tool", "verify", "orders", "--state", "s.parquet", "--json"]
    counts = []
    for seed in ("1", "2", "3"):
        done = subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True)
        counts.append(json.loads(done.stdout.splitlines()[-1])["unchanged"])
        time.sleep(0.06)
    assert counts == [0, 1, 1]
