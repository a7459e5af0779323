"""What macOS does in another way, with its calls replaced: F_FULLFSYNC, and clones of files."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from sbbf_tool.storage import copying, reflinks, system_calls, temporary
from sbbf_tool.storage.local import LocalSource, begin_copy, replace
from support.tables import each

OLD = bytes(range(256)) * 1000
F_FULLFSYNC = 51


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "a.parquet"
    path.write_bytes(OLD)
    return path


class Disk:
    """`fcntl` and `fsync` of macOS, which record their calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, reason: int | None = None) -> None:
        self.calls: list[str] = []
        self._reason = reason
        monkeypatch.setattr(system_calls, "_FULL_SYNC", F_FULLFSYNC)
        monkeypatch.setattr(fcntl, "fcntl", self._fcntl)
        monkeypatch.setattr(os, "fsync", lambda fd: self.calls.append("fsync"))

    def _fcntl(self, fd: int, command: int) -> int:
        assert command == F_FULLFSYNC
        self.calls.append("full")
        if self._reason is not None:
            raise OSError(self._reason, os.strerror(self._reason))
        return 0


def test_a_file_is_written_to_the_disk_itself(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    with LocalSource(path) as source:
        replace(source, str(path), len(OLD), [b"new"], lambda file: None)
    assert disk.calls == ["full", "full"], "the file and its folder"
    assert path.read_bytes() == OLD + b"new"


@each("reason", [errno.ENOTSUP, errno.EINVAL, errno.ENOTTY])
def test_fsync_is_used_where_the_file_system_knows_nothing_else(path: Path, monkeypatch: pytest.MonkeyPatch, reason: int) -> None:
    disk = Disk(monkeypatch, reason)
    with LocalSource(path) as source:
        replace(source, str(path), len(OLD), [b"new"], lambda file: None)
    assert disk.calls == ["full", "fsync"] * 2


class Clones:
    """`fclonefileat` of macOS on a file system with clones, which records the names of the new files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, works: bool = True) -> None:
        self.names: list[str] = []
        self._works = works
        monkeypatch.setattr(reflinks, "_fclonefileat", lambda: self._clone)
        monkeypatch.setattr(os, "copy_file_range", lambda *more: pytest.fail("bytes were copied"))
        monkeypatch.setattr(LocalSource, "read", lambda *more: pytest.fail("bytes were read"))

    def _clone(self, source: int, folder: int, name: bytes, flags: int) -> int:
        path = Path(os.fsdecode(name))
        assert (folder, flags, path.exists()) == (-2, 2, False)
        self.names.append(path.name)
        if not self._works:
            return -1
        # Not by shutil.copy, which calls copy_file_range since Python 3.15.
        path.write_bytes(Path(f"/proc/self/fd/{source}").read_bytes())
        path.chmod(os.fstat(source).st_mode & 0o7777)
        return 0


@each("keep", [len(OLD), len(OLD) - 7, 0])
@each("mode", [0o640, 0o600])
def test_the_temporary_file_is_a_clone_cut_to_its_length(path: Path, monkeypatch: pytest.MonkeyPatch, keep: int, mode: int) -> None:
    path.chmod(mode)
    clones = Clones(monkeypatch)
    with LocalSource(path) as source:
        replace(source, str(path), keep, [b"new"], lambda file: None)
    assert path.read_bytes() == OLD[:keep] + b"new"
    assert path.stat().st_mode & 0o777 == mode
    assert [name.endswith(temporary.TEMPORARY_SUFFIX) for name in clones.names] == [True]
    assert os.listdir(path.parent) == ["a.parquet"]


def test_a_copy_that_a_thread_begins_is_a_clone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clones = Clones(monkeypatch)
    monkeypatch.setattr(copying.BegunCopy, "MIN_BYTES", 1)
    with LocalSource(path) as source:
        begun = begin_copy(source, str(path), len(OLD) - 7)
        assert begun is not None
        with begun:
            replace(source, str(path), len(OLD) - 7, [b"new"], lambda file: None, begun)
    assert path.read_bytes() == OLD[:-7] + b"new"
    assert len(clones.names) == 1
