"""Many files in local folders: new ones are whole or not there, under names that were free, and nothing is left beside them."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from sbbf_tool.storage.folders import LocalFolders
from sbbf_tool.storage.temporary import open_locked, temporary_path
from support.tables import each


@pytest.fixture
def files() -> LocalFolders:
    return LocalFolders()


def test_a_name_that_is_taken_stays_as_it_is(files: LocalFolders, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for name in ("a", "dangling"):
        with pytest.raises(FileExistsError):
            files.create(str(tmp_path / name), b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["a", "dangling"]


@each("url", ["s3://bucket/a", "hdfs://namenode:8020/a", "x-y.z+1://a"])
def test_a_url_of_another_store_is_no_local_path(files: LocalFolders, url: str) -> None:
    for call in (files.read, files.list, files.resolve):
        with pytest.raises(OSError, match="only local folders") as raised:
            call(url)
        assert raised.value.errno == errno.ENOTSUP


def test_a_pipe_is_not_waited_for(files: LocalFolders, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            files.read(str(tmp_path / name))


def test_what_a_dead_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    dead, alive = (temporary_path(str(tmp_path), "other") for _ in range(2))
    os.close(open_locked(dead))
    fd = open_locked(alive)
    foreign = tmp_path / ".someone.tmp"
    foreign.touch()
    files = LocalFolders()
    files.create(str(tmp_path / "a"), b"abc")
    assert not os.path.exists(dead)
    assert os.path.exists(alive)
    assert foreign.exists()
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


@each("code", [errno.EPERM, errno.EOPNOTSUPP])
def test_without_hard_links_nothing_is_created(files: LocalFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def link(*paths: str) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(PermissionError, match="no hard links"):
        files.create(str(tmp_path / "a"), b"abc")
    assert os.listdir(tmp_path) == []


@each("call", ["write", "fsync", "link"])
def test_a_call_that_fails_leaves_nothing_behind(files: LocalFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="Input/output error"):
        files.create(str(tmp_path / "a"), b"abc")
    assert os.listdir(tmp_path) == []
