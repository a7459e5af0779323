"""Links in folders that commands work on: read through, and not written through."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from sbbf_tool.cli import run


@pytest.fixture
def lake(tmp_path, fixtures):
    lake, elsewhere = tmp_path / "lake", tmp_path / "elsewhere"
    for folder in (lake, elsewhere):
        folder.mkdir()
        shutil.copy(fixtures / "events.parquet", folder / "a.parquet")
    (lake / "link.parquet").symlink_to(elsewhere / "a.parquet")
    (lake / "linked").symlink_to(elsewhere)
    (lake / "loop").symlink_to("loop")
    return lake


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def column_of(path: Path) -> str:
    import pyarrow.parquet as pq

    return str(pq.read_schema(path).names[0])


def test_commands_that_change_files_skip_links_that_a_folder_holds(lake, capsys):
    column, elsewhere = column_of(lake / "a.parquet"), lake.parent / "elsewhere" / "a.parquet"
    before = digest(lake / "a.parquet"), digest(elsewhere)
    assert run(["add-filter", str(lake), "-c", column, "--in-place"]) == 0
    assert "2 links skipped" in capsys.readouterr().out
    assert digest(lake / "a.parquet") != before[0]
    assert digest(elsewhere) == before[1]
    assert run(["repair", str(lake / "*.parquet"), "--in-place"]) == 0
    assert "1 link skipped" in capsys.readouterr().out
    assert digest(elsewhere) == before[1]
    assert run(["add-filter", str(lake / "link.parquet"), "-c", column, "--in-place"]) == 0
    assert capsys.readouterr().err == ""
    assert digest(elsewhere) != before[1]
    assert (lake / "link.parquet").is_symlink()


def test_a_folder_of_links_alone_has_nothing_to_change(lake, capsys):
    (lake / "a.parquet").unlink()
    assert run(["add-filter", str(lake), "-c", "x", "--in-place"]) == 0
    assert capsys.readouterr().out.startswith("2 files: 2 links skipped; ")
