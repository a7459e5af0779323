"""`sbbf repair` as a user meets it."""

from __future__ import annotations

import json
import shutil

import pytest

from sbbf_tool.cli import run
from sbbf_tool.operations.repair import FIXES
from support.defects import DEFECTS, SOUND
from support.tables import each


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_many_paths_with_one_that_is_no_file(folder, capfd):
    DEFECTS["missing-length"].make(folder / "a.parquet")
    (folder / "b.parquet").write_text("PAR1, it says")
    DEFECTS["false-negatives"].make(folder / "c.parquet")
    assert run(["repair", ".", "--drop", "--in-place"]) == 3
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert [line for line in lines if line.startswith("./")] == [line for line in lines if "bytes added" in line]
    assert out.count("bytes added") == 2
    assert err.startswith("sbbf: ./b.parquet: ")
    assert run(["repair", "a.parquet", "c.parquet", "--in-place"]) == 0
    assert capfd.readouterr().out == "2 files: 2 done; 0 filters repaired, 0 findings remaining\n"
    assert run(["repair", "a.parquet", "--in-place"]) == 0
    assert capfd.readouterr().out == "a.parquet: nothing to repair\n"


def test_a_dry_run_ends_with_1_where_something_would_be_done(folder, capfd):
    DEFECTS["unreadable-filter"].make(folder / "a.parquet")
    shutil.copyfile(SOUND, "b.parquet")
    assert run(["repair", "a.parquet", "--dry-run"]) == 1
    output = capfd.readouterr().out
    assert "rebuild" in output
    assert "2 filters would be repaired" in output
    assert run(["repair", "a.parquet", "--drop", "--dry-run"]) == 1
    assert "2 filters would be dropped" in capfd.readouterr().out
    assert run(["repair", "b.parquet", "--dry-run"]) == 0


def test_an_error_that_is_left_ends_with_1(folder, capfd):
    DEFECTS["partial-block"].make(folder / "a.parquet")
    assert run(["repair", "a.parquet", "--drop", "--in-place"]) == 1
    assert "partial-block" in capfd.readouterr().out
    assert run(["repair", "a.parquet", "--in-place"]) == 0


# Of an overlap the other filter is dropped; the bitset of 256 MiB takes a while.
TAKE_REBUILD = {rule for rule, (light, _) in FIXES.items() if light is None} - {"overlapping-filter", "over-128-mib"}


@each("rule", sorted(TAKE_REBUILD))
@each("dry_run", [False, True])
def test_what_takes_rebuilding_is_named(folder, capfd, rule, dry_run):
    DEFECTS[rule].make(folder / "a.parquet")
    mode = "--dry-run" if dry_run else "--in-place"
    run(["repair", "a.parquet", mode, "--drop"])
    out = capfd.readouterr().out
    last = out.splitlines()[-1]
    assert last.startswith("a.parquet: ")
    assert "nothing to repair" not in last
    assert rule in last.partition("; without --drop, the command repairs ")[2].split(", ")
    run(["repair", "a.parquet", mode])
    assert "--drop" not in capfd.readouterr().out.splitlines()[-1]


def test_json_says_it_all(folder, capfd):
    DEFECTS["false-negatives"].make(folder / "a.parquet")
    assert run(["repair", "a.parquet", "-o", "b.parquet", "--format", "json"]) == 0
    document = json.loads(capfd.readouterr().out)
    (step,) = document["steps"]
    assert (step["row_group"], step["column"], step["fix"], step["rules"]) == (1, "id", "rebuild", ["false-negatives"])
    assert step["new_filter"]["bitset_bytes"] == 2048
    assert run(["verify", "b.parquet"]) == 0
