"""`sbbf repair` as a user meets it."""

from __future__ import annotations

import shutil

import pytest

from sbbf_tool.cli import run
from support.defects import DEFECTS, SOUND


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


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
