"""A run over many files finds their journals without a search beside each file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sbbf_tool.storage import journal_folders
from sbbf_tool.storage.journal import journal_of
from sbbf_tool.storage.journal_folders import JournalFolders

FILES = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of which one has a journal, in a folder that did not change for a while, and a link to a file with a journal elsewhere."""
    (tmp_path / "lake").mkdir()
    (tmp_path / "other").mkdir()
    for number in range(FILES):
        (tmp_path / "lake" / f"{number:02}.parquet").touch()
    Path(journal_of(str(tmp_path / "lake" / "50.parquet"))).touch()
    (tmp_path / "other" / "a.parquet").touch()
    Path(journal_of(str(tmp_path / "other" / "a.parquet"))).touch()
    (tmp_path / "lake" / "link.parquet").symlink_to("../other/a.parquet")
    os.utime(tmp_path / "lake", (1_700_000_000, 1_700_000_000))
    return tmp_path / "lake"


def files_in_question(folders: JournalFolders, folder: Path) -> list[str]:
    return [name for name in sorted(os.listdir(folder)) if name[0] != "." and folders.may_have_journal(str(folder / name))]


def test_only_files_with_a_journal_and_links_are_in_question(folder, monkeypatch):
    listings, listdir = [], os.listdir  # this test lists a Path
    monkeypatch.setattr(journal_folders.os, "listdir", lambda path: listings.append(path) or listdir(path))
    folders = JournalFolders()
    first = [f"{number:02}.parquet" for number in range(20)]
    assert files_in_question(folders, folder) == [*first, "50.parquet", "link.parquet"]
    assert files_in_question(folders, folder) == ["50.parquet", "link.parquet"]
    assert listings.count(str(folder)) == 1


def test_a_folder_that_changes_is_not_relied_on(folder):
    folders = JournalFolders()
    files_in_question(folders, folder)
    assert not folders.may_have_journal(str(folder / "40.parquet"))
    Path(journal_of(str(folder / "40.parquet"))).touch()
    assert folders.may_have_journal(str(folder / "40.parquet"))
    assert len(files_in_question(JournalFolders(), folder)) == FILES + 1


@pytest.mark.parametrize("path", ["missing/a.parquet", "file:///missing/a.parquet"])
def test_a_folder_that_cannot_be_listed_is_not_relied_on(path):
    folders = JournalFolders()
    assert all(folders.may_have_journal(path) for _ in range(50))


def test_names_in_the_working_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    folders = JournalFolders()
    names = [f"{number:02}.parquet" for number in range(FILES)]
    assert [name for name in names if folders.may_have_journal(name)] == [*names[:20], "50.parquet"]
